"""Peers that claim to be edge routers and behave badly: nobody else notices anything."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator

import attrs
import pytest
from proton import Message

from router.amqp.performatives import Attach, Detach, Source, Target
from router.control.edge.messages import (
    Beat,
    Reached,
    Routes,
    UplinkUse,
    Watch,
    encode_message,
)

from support.management_tool import Tool
from support.memory import MIB, most_resident_bytes, resident_bytes
from support.proton_peers import ProtonPeers, ProtonReceiver, ProtonSender
from support.raw_edges import RawEdge
from support.router_lines import EDGES, edge, interior
from support.routers import RouterProcess, StartRouter

# What one of these may take, however much it says: most of it is 200,000 addresses that it watches.
MOST_BYTES = 128 * MIB


@attrs.define
class Bystanders:
    """Interior and an edge, with clients of each that send to the other one's."""

    centre: RouterProcess
    ship: RouterProcess
    flows: list[tuple[ProtonSender, ProtonReceiver]] = attrs.Factory(list)
    sent: int = 0
    bytes_before: int = 0

    @property
    def port(self) -> int:
        """Return the port of the interior's listener for edges."""
        return self.centre.addresses[2][1]

    def go_on(self, count: int = 20) -> None:
        """Check that messages go on, on the links that were there before."""
        for _ in range(count):
            self.sent += 1
            for sender, receiver in self.flows:
                assert sender.outcome(Message(self.sent)).outcome == "accepted"
                receiver.get(self.sent)
        for _, receiver in self.flows:
            assert receiver.bodies() == list(range(1, self.sent + 1))
        grown = most_resident_bytes(self.centre.pid) - self.bytes_before
        assert grown < MOST_BYTES, f"{grown / MIB:.0f} MiB"


@pytest.fixture
def bystanders(proton: ProtonPeers, routers: StartRouter) -> Bystanders:
    """Start an interior and an edge with clients, and send the first messages."""
    centre = routers(interior("A", more=EDGES))
    found = Bystanders(centre, routers(edge("E", centre)))
    for address, source, to in (("in", found.ship, centre), ("out", centre, found.ship)):
        receiver = proton.connect(to.url()).receiver(address, 1000)
        sender = proton.connect(source.url()).sender(address)
        found.flows.append((sender, receiver))
    found.bytes_before = resident_bytes(centre.pid)
    found.go_on()
    return found


NONSENSE = {
    "nothing": (b"", "amqp:decode-error"),
    "no list": (b"\x00Sw\xa1\x02hi", "amqp:decode-error"),
    "cut off": (encode_message(Watch(("M0q",)))[:-1], "amqp:decode-error"),
    "too long": (encode_message(Beat(1, 8000)) + b"\x40", "amqp:decode-error"),
    "nested": (b"\x00Sw" + b"\xc0\x05\x01" * 500, "amqp:decode-error"),
    "too large": (encode_message(Watch(("M0" + "q" * 60_000,))), "amqp:decode-error"),
    "wrong type": (encode_message(UplinkUse("yes")), "amqp:decode-error"),  # type: ignore[arg-type]
    "the interior's": (encode_message(Reached(())), "amqp:not-allowed"),
    "no address": (encode_message(Watch(("?",))), "amqp:invalid-field"),
    "no route": (encode_message(Routes(("Mq",))), "amqp:invalid-field"),
}


def test_control_messages_that_make_no_sense(bystanders: Bystanders) -> None:
    for octets, condition in NONSENSE.values():
        with RawEdge(bystanders.port, "W") as wild:
            wild.attach_control()
            wild.control(octets)
            assert wild.why_closed() == condition, octets[:50]
        bystanders.go_on(3)


def batches(kind: type[Routes | Watch], letters: str) -> Iterator[Routes | Watch]:
    """Yield messages with more and more keys, without an end."""
    for number in itertools.count():
        yield kind(tuple(f"{letters}{number}.{each}" for each in range(500)))


@pytest.mark.parametrize(
    ("kind", "letters"), [(Routes, "Croute"), (Watch, "M0watched")], ids=["routes", "addresses"]
)
def test_more_than_an_edge_may_say(
    bystanders: Bystanders, kind: type[Routes | Watch], letters: str
) -> None:
    with RawEdge(bystanders.port, "W") as wild:
        wild.attach_control()
        condition = wild.control_until_closed(batches(kind, letters))
        assert condition == "amqp:resource-limit-exceeded"
        bystanders.go_on()
    bystanders.go_on()


def test_one_that_never_reads(bystanders: Bystanders) -> None:
    """Each heartbeat is answered, and each watched address is reported."""
    with RawEdge(bystanders.port, "W", receive_buffer_bytes=4096) as wild:
        wild.attach_control()
        wild.socket.settimeout(1)
        sent = 0
        with contextlib.suppress(TimeoutError, ConnectionResetError, BrokenPipeError):
            # the router stops to read from it, or has enough
            for message in itertools.islice(batches(Watch, "M0unread"), 390):
                wild.control(message, *[Beat(1, 2**32 - 1)] * 200, waits=False)
                sent += 1
        bystanders.go_on()
    bystanders.go_on()


def test_the_id_of_another_edge(bystanders: Bystanders) -> None:
    for instance in (0, 1, 2**63 - 1):
        with RawEdge(bystanders.port, "E", instance) as wild:
            assert wild.why_closed() == "trioute:duplicate-id"
        bystanders.go_on(3)
    assert "neighbour lost" not in bystanders.centre.log_text()


def test_addresses_at_other_routers(proton: ProtonPeers, bystanders: Bystanders) -> None:
    """An edge advertises link routes to them, and attaches receivers to them."""
    centre, ship = bystanders.centre, bystanders.ship
    # of clients that wait for replies
    receivers = [
        proton.connect(ship.url()).receiver("_edge/E/reply", 100),
        *(proton.connect(at.url()).receiver(None, 100, dynamic=True) for at in (ship, centre)),
    ]
    places = ["_edge/E/reply"] + [each.link.remote_source.address for each in receivers[1:]]
    assert [each.split("/")[:3] for each in places[2:]] == [["amqp:", "_topo", "0"]]
    managed = ["_edge/E/$management", "_topo/0/A/$management"]
    with RawEdge(bystanders.port, "W") as wild:
        wild.attach_control()
        wild.control(
            Routes(tuple(letter + place for letter in "CD" for place in places + managed)),
            Watch(tuple(f"M0{place}" for place in places + managed)),
        )
        # whoever receives from a router's own management there gets answers, and no requests
        wild.say(Attach("m", 9, True, source=Source(address=managed[1]), target=Target()))
        for handle, place in enumerate([*places, managed[0]], 1):
            wild.say(Attach(place, handle, True, source=Source(address=place), target=Target()))
            assert wild.hear_until(Detach).error.condition == "amqp:not-allowed", place
        bystanders.go_on(3)
        for place, receiver in zip(places, receivers, strict=True):
            for source in (centre, ship):
                sender = proton.connect(source.url()).sender(None)
                sent = [sender.outcome(Message(each, address=place)) for each in range(5)]
                assert [each.outcome for each in sent] == ["accepted"] * 5, place
            assert receiver.bodies() == [*range(5), *range(5)], place
        for asked, node in zip((centre, ship), managed, strict=True):
            tool = Tool(asked, node)
            assert tool.query("router", "id") == [{"id": node.split("/")[-2]}]
            tool.close()
        bystanders.go_on(3)
