"""Log lines for ends of links and connections have the reason, its origin and the names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from router.amqp.constants import TerminusExpiryPolicy
from router.amqp.framing import AMQP_HEADER
from router.amqp.performatives import Attach, Begin, Close, Detach, End, Error, Flow, Open, Source
from router.amqp.types import Symbol
from router.config.listeners import ListenerSettings
from router.config.model import AddressSettings, Configuration
from router.config.redirects import RedirectSettings
from router.config.router_settings import RouterSettings
from router.net.endpoint_names import endpoint_name

from support.flow_talks import flow
from support.loopback import WIDE, dialled, running_node
from support.raw_peers import RawPeer
from support.routers import RouterProcess
from support.transcripts import attach_receiver, attach_sender

THERE: dict[str, Any] = {
    "to_network_host": "10.0.0.2",
    "to_port": 5673,
    "to_hostname": "there",
}
CONFIGURATION = Configuration(
    listeners=(ListenerSettings(port=0),),
    addresses=(AddressSettings(prefix="closed", distribution="unavailable"),),
    redirects=(
        RedirectSettings(prefix="moved", **THERE),
        RedirectSettings(hostname="moved.example.org", **THERE),
    ),
)
REASON = Error(Symbol("x:reason"), description="for a reason")


@contextmanager
def captured() -> Iterator[list[EventDict]]:
    """All that is logged, of which every line has the ids of what it is about.

    What is about a connection has a peer, and what is about a link a direction.
    """
    with capture_logs() as lines:
        yield lines
    for line in lines:
        if "peer" in line:
            assert isinstance(line["connection"], int), line
        if "direction" in line:
            number, _, _ = line["link_id"].split(".")
            assert number == str(line["connection"]), line
        if "other_peer" in line:
            number, _, _ = line["other_link_id"].split(".")
            assert number == str(line["other_connection"]), line


async def logged(*said: Any, heard: type = Detach) -> list[EventDict]:
    """Return what is logged of a connection that says this.

    The peer has attached a sender and a receiver; it leaves once it has heard a `heard`.
    """
    with captured() as logs:
        async with running_node(CONFIGURATION) as running, dialled(running.address) as peer:
            await peer.begin()
            await peer.attach_receiver("q", credit=1, handle=1)
            await peer.attach_sender("q", 0)
            await peer.say(*said)
            await peer.hear_until(heard)
            name = endpoint_name(*peer.stream.socket.getsockname())
    lines = [line for line in logs if "connection" in line]
    assert {line["peer"] for line in lines} == {name}
    return lines


def of(lines: list[EventDict], event: str) -> list[EventDict]:
    """Return the lines of one event, without the keys that all lines have."""
    common = ("event", "connection", "peer")
    return [
        {key: value for key, value in line.items() if key not in common}
        for line in lines
        if line["event"] == event
    ]


@pytest.mark.parametrize(
    ("attach", "direction", "address", "condition", "description"),
    [
        (attach_sender(5, "closed/x"), "in", "closed/x", "amqp:not-found", "Node not found"),
        (attach_receiver(5, "closed/x"), "out", "closed/x", "amqp:not-found", "Node not found"),
        (
            attach_sender(5, ""),
            "in",
            "",
            "amqp:invalid-field",
            "a source or target needs an address",
        ),
    ],
)
async def test_a_refused_link(
    attach: Attach, direction: str, address: str, condition: str, description: str
) -> None:
    lines = await logged(attach)
    (line,) = of(lines, "link refused")
    assert line.pop("description").startswith(description)
    assert line == {
        "log_level": "warning",
        "link_id": "1.0.2",
        "link": attach.name,
        "direction": direction,
        "address": address,
        "condition": condition,
        "by_peer": False,
    }
    # a link that is refused was not attached
    assert len(of(lines, "link attached")) == 2


@pytest.mark.parametrize(
    ("attach", "direction"),
    [(attach_sender(5, "moved/x"), "in"), (attach_receiver(5, "moved/x"), "out")],
)
async def test_a_redirected_link(attach: Attach, direction: str) -> None:
    lines = await logged(attach)
    assert of(lines, "link redirected") == [
        {
            "log_level": "info",
            "link_id": "1.0.2",
            "link": attach.name,
            "direction": direction,
            "address": "moved/x",
            "to": "amqp://10.0.0.2:5673/moved/x (hostname there)",
        }
    ]
    assert of(lines, "link refused") == []


async def test_a_redirected_connection() -> None:
    with captured() as logs:
        async with running_node(CONFIGURATION) as running, dialled(running.address) as peer:
            await peer.say(AMQP_HEADER, Open("ada's laptop", hostname="moved.example.org"))
            assert await peer.octets(8) == AMQP_HEADER
            await peer.hear(Open)
            closed = await peer.hear(Close)
            assert closed.error is not None
            name = endpoint_name(*peer.stream.socket.getsockname())
            (counters,) = running.node.hub.connection_counters
            assert (counters.opened, counters.failed) == (0, 0)
    lines = [line for line in logs if "connection" in line]
    assert {line["peer"] for line in lines} == {name}
    assert of(lines, "connection redirected") == [
        {
            "log_level": "info",
            "container": "ada's laptop",
            "hostname": "moved.example.org",
            "user": None,
            "to": "amqp://10.0.0.2:5673 (hostname there)",
        }
    ]
    (line,) = of(lines, "connection closed")
    assert line["condition"] == "amqp:connection:redirect"
    # nothing went wrong
    assert (line["log_level"], line["by_peer"]) == ("info", False)


@pytest.mark.parametrize(
    ("error", "level", "reason"),
    [
        (None, "info", {}),
        (REASON, "warning", {"condition": "x:reason", "description": "for a reason"}),
    ],
)
async def test_a_detached_link(error: Error | None, level: str, reason: dict[str, object]) -> None:
    (line, *_) = of(await logged(Detach(0, True, error)), "link detached")
    facts = {"link_id": "1.0.1", "link": "sender-0", "direction": "in", "address": "q"}
    ended = {"closed": True, "lost": False, "by_peer": True}
    assert line == {"log_level": level, **facts, **ended, **reason}


async def test_links_that_go_with_their_session() -> None:
    lines = await logged(End(REASON), heard=End)
    reason = {"condition": "x:reason", "description": "for a reason", "by_peer": True}
    assert of(lines, "session ended") == [{"log_level": "warning", "channel": 0, **reason}]
    # one warning is enough
    for line in of(lines, "link detached"):
        assert {**line, **reason, "lost": True, "log_level": "info"} == line


async def test_links_that_go_with_a_session_that_we_end() -> None:
    lines = await logged(Detach(9), heard=End)
    reason = {"condition": "amqp:session:unattached-handle", "by_peer": False}
    (ended,) = of(lines, "session ended")
    assert {**ended, **reason} == ended
    assert [line["link"] for line in of(lines, "link detached")] == ["receiver-1", "sender-0"]
    for line in of(lines, "link detached"):
        assert {**line, **reason, "lost": True} == line
        assert line["description"] == ended["description"] != ""


async def test_links_that_go_with_their_connection() -> None:
    lines = await logged(Close(REASON), heard=Close)
    reason = {"condition": "x:reason", "description": "for a reason", "by_peer": True}
    assert of(lines, "connection closed") == [{"log_level": "warning", **reason}]
    assert of(lines, "session ended") == []
    for line in of(lines, "link detached"):
        assert {**line, **reason, "lost": True, "log_level": "info"} == line


async def test_an_orderly_end_is_no_warning() -> None:
    lines = await logged(End(), Close(), heard=Close)
    assert of(lines, "connection closed") == [{"log_level": "info", "by_peer": True}]
    assert {line["log_level"] for line in lines} == {"info", "debug"}


async def test_a_dynamic_node_is_called_as_it_was_made() -> None:
    lines = await logged(attach_receiver(5, source=Source(dynamic=True)), Detach(5), heard=Detach)
    names = [
        line["address"]
        for event in ("link attached", "link detached")
        for line in of(lines, event)
        if line["link"] == "receiver-5"
    ]
    assert len(names) == 2
    assert names[0] == names[1] != ""
    assert "/temp." in names[0]


async def test_a_flow_that_answers_a_drain_too_late_ends_nothing() -> None:
    with captured() as logs:
        async with running_node(CONFIGURATION) as running, dialled(running.address) as peer:
            await peer.begin()
            await peer.attach_receiver("q", credit=1, handle=1)
            await peer.attach_sender("q", 0)
            await peer.say(Detach(1, True))
            while not (await peer.hear_until(Flow)).drain:
                pass
            # as fe2o3-amqp may: the sender is closed, and then says that it has no more to send
            answer = flow(handle=0, delivery_count=1, link_credit=0, drain=True)
            await peer.say(Detach(0, True), answer, attach_receiver(2))
            # its session goes on
            await peer.hear_until(Attach)
    (line,) = of(logs, "flow ignored")
    assert line == {
        "log_level": "debug",
        "link_id": "1.0.1",
        "reason": "it answers a drain of a link that the peer has already detached",
    }
    assert of(logs, "session ended") == []


def test_a_running_router_says_why_it_refused(router_process: RouterProcess) -> None:
    with RawPeer(router_process.port) as peer:
        peer.open()
        begin = Begin(next_outgoing_id=0, incoming_window=WIDE, outgoing_window=WIDE)
        peer.say(begin, channel=3)
        peer.say(attach_sender(0, "unavailable/why-it-refused"), channel=3)
        peer.hear_until(Detach)
        name = endpoint_name(*peer.socket.getsockname())
        (line,) = (
            line
            for line in router_process.log_text().splitlines()
            if "link refused" in line and "unavailable/why-it-refused" in line
        )
    for fact in (
        "condition=amqp:not-found",
        "description='Node not found'",
        "by_peer=False",
        "link=sender-0",
        "address=unavailable/why-it-refused",
        f"peer={name}",
    ):
        assert fact in line


# the link of the second connection in what follows
FACTS = {"link_id": "2.0.0", "link": "receiver-1", "direction": "out", "address": "q"}


def elsewhere(name: str) -> dict[str, object]:
    """Return the log fields of the link of the first connection, whose peer has this name."""
    ids = {"other_connection": 1, "other_link_id": "1.0.0"}
    return {**ids, "other_peer": name, "other_user": None}


async def test_a_stolen_link_is_told_with_both_peers() -> None:
    with captured() as logs:
        async with (
            running_node() as running,
            dialled(running.address) as old,
            dialled(running.address) as new,
        ):
            names = []
            for peer in (old, new):
                await peer.begin(container_id="same")
                await peer.attach_receiver("q")
                names.append(endpoint_name(*peer.stream.socket.getsockname()))
            await old.hear_until(Detach)
    lines = [line for line in logs if line["event"].startswith("link ")]
    (stolen,) = of(lines, "link stolen")
    assert stolen == {"log_level": "info", **elsewhere(names[0]), **FACTS}
    at = [line["event"] for line in lines].index("link stolen")
    assert lines[at]["peer"] == names[1]
    detached, attached = lines[at + 1], lines[at + 2]
    assert (detached["event"], detached["peer"]) == ("link detached", names[0])
    assert detached["log_level"] == "warning"
    assert detached["condition"] == "amqp:link:stolen"
    assert (attached["event"], attached["peer"]) == ("link attached", names[1])


async def test_a_link_that_may_not_be_stolen_is_told_with_both_peers() -> None:
    configuration = Configuration(
        router=RouterSettings(link_stealing="never"), listeners=(ListenerSettings(port=0),)
    )
    with captured() as logs:
        async with (
            running_node(configuration) as running,
            dialled(running.address) as old,
            dialled(running.address) as new,
        ):
            for peer in (old, new):
                await peer.begin(container_id="same")
                await peer.attach_receiver("q")
            await new.hear_until(Detach)
            names = [endpoint_name(*each.stream.socket.getsockname()) for each in (old, new)]
    lines = [line for line in logs if line["event"] in {"link stealing refused", "link refused"}]
    assert {line["peer"] for line in lines} == {names[1]}
    (held,) = of(lines, "link stealing refused")
    assert held == {"log_level": "warning", **elsewhere(names[0]), **FACTS}
    (refused,) = of(lines, "link refused")
    assert refused["condition"] == "amqp:resource-locked"


async def test_a_link_that_is_suspended_and_resumed_is_told() -> None:
    lasts = Source(address="q", expiry_policy=TerminusExpiryPolicy.LINK_DETACH, timeout=60)
    with captured() as logs:
        async with (
            running_node() as running,
            dialled(running.address) as old,
            dialled(running.address) as new,
        ):
            for peer in (old, new):
                await peer.begin(container_id="same")
            await old.say(attach_receiver(source=lasts))
            await old.hear_until(Attach)
            await old.say(Detach(1, closed=False))
            await old.hear_until(Detach)
            await new.say(attach_receiver(source=lasts, unsettled={}))
            await new.hear_until(Attach)
            name = endpoint_name(*old.stream.socket.getsockname())
    facts = {"log_level": "info", **FACTS, "unsettled": 0}
    # the second goes with its connection, when the test is over
    first, second = of(logs, "link suspended")
    assert first == {**facts, "link_id": "1.0.0"}
    assert second == facts
    (resumed,) = of(logs, "link resumed")
    assert resumed == {**facts, **elsewhere(name)}
