"""Router processes become neighbours, and peers of all other kinds do not.

The tests check what each peer is told, and what the others notice of it.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

from proton import Message

from router.amqp.framing import AMQP_HEADER
from router.amqp.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Open,
    Source,
    Target,
    Transfer,
)
from router.amqp.types import Symbol, UInt
from router.control.network.codec import encode_control
from router.control.network.messages import Hello

from support.management_tool import Tool
from support.ports import free_port
from support.proton_peers import ProtonPeers
from support.raw_peers import RawPeer
from support.raw_routers import CONTROL, ControlLink, RawRouter
from support.router_lines import interior, start_line
from support.routers import RouterProcess, StartRouter

PATIENCE_S = 60.0
BEGIN = Begin(next_outgoing_id=0, incoming_window=1000, outgoing_window=1000)


def until(router: RouterProcess, what: Callable[[Tool], Any]) -> Any:
    """Ask a router until the answer is true, and return it."""
    tool = Tool(router)
    deadline = time.monotonic() + PATIENCE_S
    try:
        while not (found := what(tool)):
            assert time.monotonic() < deadline, router.log_text()
        return found
    finally:
        tool.close()


def reached(*names: str) -> Callable[[Tool], bool]:
    """Whether a router reaches these, and no others."""

    def are(tool: Tool) -> bool:
        nodes = tool.query("router.node", "id", "cost")
        return {each["id"] for each in nodes if each["cost"]} == set(names)

    return are


def failure(words: str, number: int = 0) -> Callable[[Tool], bool]:
    """Whether a connector of a router tells of this failure, which somebody has to see to."""

    def tells(tool: Tool) -> bool:
        connector = tool.query("connector", "connectionStatus", "lastError")[number]
        is_it = words in str(connector["lastError"])
        return is_it and connector["connectionStatus"] == "FAILED"

    return tells


def works(proton: ProtonPeers, router: RouterProcess, address: str) -> None:
    """Check that a router serves its clients."""
    receiver = proton.connect(router.url()).receiver(address, 10)
    sender = proton.connect(router.url()).sender(address)
    assert sender.outcome(Message("still here")).outcome == "accepted"
    receiver.get(1)


def test_three_in_a_line_agree_on_costs(routers: StartRouter) -> None:
    last = routers(interior("C"))
    middle = routers(interior("B", last, costs=(7,)))
    first = routers(interior("A", middle, costs=(3,)))
    until(first, reached("B", "C"))
    until(last, reached("A", "B"))

    def costs(tool: Tool) -> dict[str, int]:
        return {each["id"]: each["cost"] for each in tool.query("router.node", "id", "cost")}

    assert until(first, costs) == {"A": 0, "B": 3, "C": 10}
    assert until(last, costs) == {"C": 0, "B": 7, "A": 10}
    nodes = until(first, lambda tool: tool.query("router.node", "id", "nextHop", "linkState"))
    assert {each["id"]: each["nextHop"] for each in nodes} == {"A": "(self)", "B": None, "C": "B"}
    assert until(first, lambda tool: tool.query("router", "nodeCount")) == [{"nodeCount": 2}]
    roles = until(middle, lambda tool: tool.query("connection", "role", "container"))
    between = [each for each in roles if each["role"] == "inter-router"]
    assert {each["container"] for each in between} == {"A", "C"}


def test_a_router_that_is_killed_and_comes_back(routers: StartRouter) -> None:
    port = free_port()
    listening = (
        f'[router]\nid = "B"\nmode = "interior"\n[[listener]]\nport = 0\n'
        f'[[listener]]\nname = "mesh"\nport = {port}\nrole = "inter-router"\n'
    )
    dialling = (
        f'[router]\nid = "A"\nmode = "interior"\n[[listener]]\nport = 0\n'
        f'[[connector]]\nname = "to-b"\nport = {port}\nrole = "inter-router"\n'
    )
    there, here = routers(listening), routers(dialling)
    until(here, reached("B"))
    there.stop(signal.SIGKILL)
    until(here, reached())
    again = routers(listening)
    until(here, reached("B"))
    until(again, reached("A"))
    log = here.log_text()
    assert log.count("neighbour found") == 2
    assert "neighbour lost" in log
    assert "routers unreachable" in log


def test_a_router_that_stands_still_is_cut_off(routers: StartRouter) -> None:
    first, middle, last = start_line(routers, "A", "B", "C")
    until(first, reached("B", "C"))
    until(last, reached("A", "B"))
    middle.process.send_signal(signal.SIGSTOP)
    try:
        until(first, reached())
        until(last, reached())
    finally:
        middle.process.send_signal(signal.SIGCONT)
    until(first, reached("B", "C"))
    until(last, reached("A", "B"))
    assert "trioute:neighbour-silent" in last.log_text()


def test_a_duplicate_id_is_told_at_both_ends(routers: StartRouter) -> None:
    one = routers(interior("A"))
    other = routers(interior("A", one))
    until(other, failure("trioute:duplicate-id: the router A has the same id as another router"))
    for router in (one, other):
        log = router.log_text()
        assert "trioute:duplicate-id" in log
        assert "two routers have the same id" in log
    assert until(one, reached())


def test_two_neighbours_of_one_id(routers: StartRouter) -> None:
    centre = routers(interior("A"))
    first = routers(interior("B", centre))
    until(centre, reached("B"))
    second = routers(interior("B", centre))
    until(second, failure("trioute:duplicate-id: A already has another neighbour with the id B"))
    assert until(centre, reached("B"))
    assert until(first, reached("A"))
    assert "two routers have the same id" in centre.log_text()


def test_the_wrong_port(routers: StartRouter) -> None:
    one = routers(interior("A"))
    wrong = '[[connector]]\nname = "wrong"\nrole = "inter-router"\nport = '
    other = routers(interior("B", more=f"{wrong}{one.port}\n"))
    words = "trioute:not-a-router: the peer 'A' does not declare itself a router in its open"
    until(other, failure(words))
    edge = '[router]\nid = "E"\nmode = "edge"\n[[listener]]\nport = 0\n[[connector]]\nport = '
    ship = routers(f'{edge}{one.addresses[1][1]}\nrole = "edge"\n')
    words = "trioute:wrong-mode: the peer 'E' is an edge router, and the listener"
    until(ship, lambda tool: words in str(tool.query("connector", "lastError")))


def condition_of(peer: RawPeer) -> str:
    """Why the router closes the connection."""
    error = peer.hear_until(Close).error
    assert error.description
    return str(error.condition)


def test_opens_that_are_refused(routers: StartRouter) -> None:
    router = routers(interior("A"))
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"protocol": [UInt(2), UInt(9)]}, "trioute:protocol-version"),
        ({"protocol": "1"}, "trioute:malformed-open"),
        ({"instance": -1}, "trioute:malformed-open"),
        ({"mode": Symbol("edge")}, "trioute:wrong-mode"),
        ({"name": "A"}, "trioute:duplicate-id"),
    ]
    for changed, condition in wrong:
        with RawRouter(router.addresses[1][1], **changed) as peer:
            assert condition_of(peer) == condition
        assert condition in router.log_text()


def test_a_client_at_the_port_of_routers(
    proton: ProtonPeers, routers: StartRouter, address: str
) -> None:
    router = routers(interior("A"))
    with RawPeer(router.addresses[1][1]) as peer:
        peer.send(AMQP_HEADER)
        peer.say(Open("client"))
        peer.header()
        assert condition_of(peer) == "trioute:not-a-router"
    works(proton, router, address)


HELLO = encode_control(Hello("X", 1, 0))


NONSENSE = [
    (b"", "amqp:decode-error"),
    (b"\x00Sw\xa1\x02hi", "trioute:malformed-control-message"),
    (HELLO[:-1], "amqp:decode-error"),
    (HELLO + b"\x40", "trioute:malformed-control-message"),
    (b"\x00Sw\xc0\x03\x01\xa3\x00", "trioute:malformed-control-message"),
    (b"\x00Sw" + b"\xf0\xff\xff\xff\xff\xff\xff\xff\xff\xa1" * 3, "amqp:decode-error"),
    (b"\x00Sw" + b"\xc0\x05\x01" * 500, "amqp:decode-error"),
    (encode_control(Hello("Y", 1, 0)), "trioute:other-router"),
]


def test_control_messages_that_make_no_sense(
    proton: ProtonPeers, routers: StartRouter, address: str
) -> None:
    router = routers(interior("A"))
    other = routers(interior("B", router))
    until(router, reached("B"))
    for octets, condition in NONSENSE:
        with RawRouter(router.addresses[1][1]) as peer:
            ControlLink(peer).send(octets)
            assert condition_of(peer) == condition
    # nobody else notices
    assert until(router, reached("B"))
    assert router.log_text().count("neighbour lost") == 0
    works(proton, router, address)
    assert until(other, reached("A"))


def test_a_control_message_may_not_be_endless(
    proton: ProtonPeers, routers: StartRouter, address: str
) -> None:
    router = routers(interior("A"))
    with RawRouter(router.addresses[1][1]) as peer:
        ControlLink(peer)
        for number in range(24):
            more = (
                Transfer(0, 0, b"0", 0, settled=True, more=True)
                if not number
                else Transfer(0, more=True)
            )
            peer.transfer(more, b"x" * 50_000)
        assert condition_of(peer) == "trioute:control-link-lost"
    works(proton, router, address)


def test_a_peer_that_says_nothing_is_cut_off(routers: StartRouter) -> None:
    router = routers(interior("A"))
    with RawRouter(router.addresses[1][1]) as peer:
        error = peer.hear_until(Close).error
        assert error.condition == "trioute:neighbour-silent"
        assert "for 3 s" in error.description


def test_links_of_clients_have_no_business_between_routers(routers: StartRouter) -> None:
    router = routers(interior("A"))
    with RawRouter(router.addresses[1][1]) as peer:
        peer.say(BEGIN)
        peer.say(Attach("mine", 0, False, source=Source(), target=Target(address="q"),
                        initial_delivery_count=0))  # fmt: skip
        detached = peer.hear_until(Detach)
        assert str(detached.error.condition) == "qd:connection-role"
    with RawPeer(router.port) as client:
        client.send(AMQP_HEADER)
        client.say(Open("client"), BEGIN)
        client.say(Attach("qd.router.X", 0, False, source=Source(), target=CONTROL,
                          initial_delivery_count=0))  # fmt: skip
        client.header()
        assert str(client.hear_until(Detach).error.condition) == "qd:forbidden"
