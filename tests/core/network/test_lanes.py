"""Large messages hold up neither urgent ones nor each other on the way to another router."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from router.amqp.constants import Condition, ReceiverSettleMode
from router.amqp.message import Data, Header, Message, Properties, decode_message, encode_message
from router.amqp.types import ULong
from router.core.network import in_links
from router.core.network.lane_numbers import FIRST_LANE, Lane, lane_of, priority_of
from router.core.network.lanes import IDLE_S
from router.core.network.out_links import OutLink
from router.core.routers.link_properties import LANE
from router.errors import AmqpError, Scope

from support.far_routers import Mesh
from support.in_memory import Received, ReceivingLink, Sending, SendingLink
from support.waypoints import message, texts

PART = 16384


def line(*names: str, **fields: Any) -> Mesh:
    mesh = Mesh(*names, **fields)
    for one, other in pairwise(names):
        mesh.join(one, other)
    mesh.learn()
    return mesh


def base(mesh: Mesh, router: str = "a", name: str = "q") -> OutLink:
    address = mesh[router].table.in_use(name)
    assert address is not None
    (link,) = mesh[router].forwarder.network.outward.links(address)
    return link


def of(priority: int, text: bytes = b"x", size: int = 0) -> bytes:
    """Encode a message with a priority."""
    body = text + bytes(size - len(text)) if size else text
    length = len(body)
    return (
        b"\x00\x53\x70\xc0\x04\x02\x41\x50"
        + bytes([priority])
        + b"\x00\x53\x75\xb0"
        + length.to_bytes(4, "big")
        + body
    )


class Stream:
    """A large message that is sent as fast as the router takes it."""

    def __init__(self, sender: SendingLink, priority: int, size: int, text: bytes = b"big") -> None:
        self.sender = sender
        self.left = of(priority, text, size)
        self.sending: Sending | None = None

    def go_on(self) -> bool:
        """Send what there is a window for; whether anything was sent."""
        has_sent = False
        client = self.sender.client
        while self.left and client.router_window > 0:
            if self.sending is None and not self.sender.can_send():
                break
            part, self.left = self.left[:PART], self.left[PART:]
            if self.sending is None:
                self.sending = self.sender.send(part, more=bool(self.left))
            else:
                self.sender.go_on(part, more=bool(self.left))
            has_sent = True
        return has_sent


def carry(mesh: Mesh, streams: list[Stream], until: Callable[[], bool]) -> None:
    """Send streams over slow lines until something is so."""
    for _ in range(100_000):
        if until():
            return
        has_sent = [stream.go_on() for stream in streams]
        if not mesh.step() and not any(has_sent):
            mesh.run()
            assert until(), "nothing moves any more"
    raise AssertionError("it takes too long")


def got(receivers: list[ReceivingLink], text: bytes) -> list[bool]:
    """Whether messages with a text have come whole, of those that have begun to come."""
    received = [each for one in receivers for each in one.received if text in each.payload[:32]]
    return [each.complete for each in received]


def test_an_urgent_message_overtakes_a_large_one_on_a_slow_line() -> None:
    mesh = line("a", "b", "c")
    receivers = [mesh["c"].client(window=100_000).receiver("q", credit=5) for _ in range(2)]
    senders = [mesh["a"].client().sender("q") for _ in range(2)]
    mesh.run()
    mesh.slow("a", "b", 20_000)
    stream = Stream(senders[0], 1, 10_000_000)
    carry(mesh, [stream], lambda: got(receivers, b"big") == [False])
    assert senders[1].can_send()
    senders[1].send(of(8, b"urgent"))
    carry(mesh, [stream], lambda: got(receivers, b"urgent") == [True])
    assert got(receivers, b"big") == [False]
    carry(mesh, [stream], lambda: got(receivers, b"big") == [True])
    (large,) = [each for one in receivers for each in one.received if b"big" in each.payload[:32]]
    assert len(large.payload) == len(of(1, b"big", 10_000_000))


def test_a_small_message_goes_beside_a_large_one_of_the_same_priority() -> None:
    mesh = line("a", "b", "c")
    receivers = [mesh["c"].client(window=100_000).receiver("q", credit=5) for _ in range(2)]
    senders = [mesh["a"].client().sender("q") for _ in range(2)]
    mesh.run()
    mesh.slow("b", "c", 20_000)
    stream = Stream(senders[0], 4, 3_000_000)
    carry(mesh, [stream], lambda: got(receivers, b"big") == [False])
    senders[1].send(of(4, b"small"))
    carry(mesh, [stream], lambda: got(receivers, b"small") == [True])
    assert got(receivers, b"big") == [False]


def test_streams_of_several_senders_go_side_by_side() -> None:
    mesh = line("a", "b", "c")
    receivers = [mesh["c"].client(window=100_000).receiver("q", credit=5) for _ in range(4)]
    senders = [mesh["a"].client().sender("q") for _ in range(3)]
    mesh.run()
    mesh.slow("a", "b", 20_000)
    streams = [Stream(sender, 4, 2_000_000) for sender in senders]
    carry(mesh, streams, lambda: got(receivers, b"big") == [False] * 3)
    assert len(base(mesh).lanes) == 3
    carry(mesh, streams, lambda: got(receivers, b"big") == [True] * 3)


def test_what_most_messages_need_is_one_link() -> None:
    mesh = line("a", "b", "c")
    mesh["c"].client().receiver("q", credit=10)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    sender.send(of(4))
    sender.send(message("no header"))
    mesh.run()
    assert base(mesh).lanes == {}
    assert [key[2] for key in mesh["b"].table.transit] == [FIRST_LANE]


def test_a_lane_has_its_priority_on_all_its_way() -> None:
    mesh = line("a", "b", "c")
    receiver = mesh["c"].client().receiver("q", credit=10)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    sender.send(of(7))
    mesh.run()
    assert len(receiver.received) == 1
    assert list(base(mesh).lanes) == [lane_of(7, 0)]
    address = mesh["c"].table.in_use("q")
    assert address is not None
    assert [priority_of(each.link) for each in address.producers] == [4, 7]
    ways = [way.consumers[0].link for way in mesh["b"].table.transit.values()]
    assert [priority_of(link) for link in ways] == [4, 7]


def test_what_waits_is_looked_at_for_the_first_of_several_routers_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assigned = []

    def lane_counted(priority: int, stripe: int, *, settles_second: bool = False) -> int:
        assigned.append(priority)
        return lane_of(priority, stripe, settles_second=settles_second)

    monkeypatch.setattr("router.core.network.lanes.lane_of", lane_counted)
    mesh = Mesh("a", "b", "c", "d")
    for name in "bcd":
        mesh.join("a", name)
    mesh.learn()
    mesh["a"].client().receiver("q")
    sender = mesh["a"].client().sender(None)
    priorities = [4, 9, 4, 2]
    for priority in priorities:
        octets = Message(
            Header(priority=priority), properties=Properties(to="q"), body=(Data(b"x"),)
        )
        sender.send(encode_message(octets))
    receivers = [mesh[name].client().receiver("q", credit=10) for name in "bcd"]
    mesh.settle()
    address = mesh["a"].table.in_use("q")
    assert address is not None
    links = mesh["a"].forwarder.network.outward.links(address)
    assert len(links) == 3
    # of priorities 9 and 2
    assert [len(link.lanes) for link in links] == [2] * 3
    assert sorted(assigned) == sorted(priorities)
    assert sum(len(receiver.received) for receiver in receivers) == len(priorities)


def test_where_very_many_wait_there_are_lanes_once_the_link_has_been_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("router.core.network.lanes.MAX_ASSIGNED", 3)
    mesh = line("a", "b")
    client = mesh["a"].client()
    client.receiver("q")
    sender = client.sender(None)
    for number in range(4):
        properties = Properties(to="q", message_id=ULong(number))
        octets = Message(Header(priority=9 - number), properties=properties, body=(Data(b"x"),))
        sender.send(encode_message(octets))
    receiver = mesh["b"].client().receiver("q", credit=100)
    mesh.settle()
    found = [decode_message(each.payload).properties for each in receiver.received]
    assert [each and each.message_id for each in found] == [0, 1, 2, 3]
    address = base(mesh).address
    named = mesh["a"].client().sender("q")
    mesh.run()

    def carry_one() -> None:
        before = len(receiver.received)
        named.send(of(8))
        mesh.run()
        assert len(receiver.received) == before + 1

    # it was not idle for long enough, and then one is not settled, and then it has carried one more
    mesh.wait(IDLE_S - 1)
    carry_one()
    assert (address.lanes, base(mesh).lanes) == (0, {})
    for _ in range(int(IDLE_S) + 2):
        mesh.wait(1)
    carry_one()
    receiver.settle()
    mesh.run()
    mesh.wait(1)
    mesh.wait(IDLE_S - 2)
    assert address.lanes == 0
    for _ in range(3):
        mesh.wait(1)
    assert address.lanes == 1
    carry_one()
    assert list(base(mesh).lanes) == [lane_of(8, 0)]


def test_lanes_that_were_to_be_made_later_are_forgotten_with_their_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("router.core.network.lanes.MAX_ASSIGNED", 0)
    mesh = line("a", "b")
    mesh["a"].client().receiver("q")
    sender = mesh["a"].client().sender(None)
    octets = Message(properties=Properties(to="q"), body=(Data(b"x"),))
    sender.send(encode_message(octets))
    mesh["b"].client().receiver("q", credit=1)
    mesh.settle()
    lanes = mesh["a"].forwarder.network.outward.lanes
    assert len(lanes) == 1
    mesh.cut("a", "b")
    mesh.settle()
    assert len(lanes) == 0


def test_the_priority_of_an_address_goes_before_those_of_its_messages() -> None:
    mesh = line("a", "b", rules=[(True, "q", "balanced", True, None, 0, 0, False, None, 6)])
    receiver = mesh["b"].client().receiver("q", credit=10)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    for priority in (9, 4, 0):
        sender.send(of(priority, b"%d" % priority))
    mesh.run()
    assert [each.payload[-1:] for each in receiver.received] == [b"9", b"4", b"0"]
    assert list(base(mesh).lanes) == [lane_of(6, 0)]


def test_what_waits_for_its_lane_holds_up_nothing_else() -> None:
    mesh = line("a", "b")
    receiver = mesh["b"].client().receiver("q", credit=10)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    (there, _) = mesh.wires
    mesh.hold("a", "b")
    sender.send(of(9, b"first"))
    sender.send(of(9, b"second"))
    sender.send(of(4, b"ordinary"))
    assert there.under_way
    # what was said so far: a begin, an attach, and the one message that could leave
    address = mesh["a"].table.in_use("q")
    assert address is not None
    assert address.waiting.count == 2
    mesh.hold("a", "b", held=False)
    mesh.run()
    order = [each.payload[-8:].lstrip() for each in receiver.received]
    assert [text[-4:] for text in order] == [b"nary", b"irst", b"cond"]


def test_a_lane_goes_when_nothing_takes_it_and_comes_again() -> None:
    mesh = line("a", "b", "c")
    receiver = mesh["c"].client().receiver("q", credit=10)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    for count in (1, 2):
        sender.send(of(8))
        mesh.run()
        assert len(receiver.received) == count
        receiver.settle()
        mesh.run()
        assert len(base(mesh).lanes) == 1
        assert len(mesh["b"].table.transit) == 2
        for _ in range(int(IDLE_S) + 2):
            mesh.wait(1)
        assert base(mesh).lanes == {}
        assert base(mesh).address.lanes == 1
        assert len(mesh["b"].table.transit) == 1
    sender.detach()
    for _ in range(int(IDLE_S) + 2):
        mesh.wait(1)
    assert mesh["a"].table.in_use("q") is None


def test_a_lane_stays_as_long_as_a_message_of_its_is_under_way() -> None:
    mesh = line("a", "b")
    receiver = mesh["b"].client().receiver("q", credit=10)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    sender.send(of(4, b"xxxx")[:-2], more=True, settled=True)
    mesh.run()
    for _ in range(int(IDLE_S) + 2):
        mesh.wait(1)
    assert len(base(mesh).lanes) == 1
    sender.go_on(b"xx")
    mesh.run()
    assert receiver.take() == of(4, b"xxxx")


def test_a_router_that_knows_no_lanes_gets_none() -> None:
    mesh = Mesh("a", "b", "c")
    mesh.features["b"] = ()
    mesh.join("a", "b")
    mesh.join("b", "c")
    mesh.learn()
    receiver = mesh["c"].client().receiver("q", credit=10)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    for priority in range(10):
        sender.send(of(priority))
    mesh.run()
    assert len(receiver.received) == 10
    assert base(mesh).lanes == {}


def test_what_a_refused_lane_was_for_goes_by_the_first_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mesh = line("a", "b", "c")
    receiver = mesh["c"].client().receiver("q", credit=10)
    sender = mesh["a"].client().sender("q")
    mesh.run()

    def refuse(properties: dict[Any, Any], mode: ReceiverSettleMode) -> Lane:
        if LANE in properties:
            raise AmqpError(Condition.NOT_IMPLEMENTED, "no lanes", Scope.LINK)
        return FIRST_LANE

    monkeypatch.setattr(in_links, "lane_in", refuse)
    for priority in (8, 4, 8, 2):
        sender.send(of(priority))
    mesh.run()
    assert len(receiver.received) == 4
    assert base(mesh).lanes == {}
    monkeypatch.undo()
    # as long as this link is there: what it has sent is not to be overtaken
    sender.send(of(8))
    mesh.run()
    assert base(mesh).lanes == {}
    assert len(receiver.received) == 5


def test_where_channels_are_short_there_are_no_lanes() -> None:
    mesh = Mesh("a", "b")
    mesh.settings = {"channel_max": 3}
    mesh.join("a", "b")
    mesh.learn()
    receiver = mesh["b"].client().receiver("q", credit=10)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    for priority in (8, 8, 3, 4):
        sender.send(of(priority))
    mesh.run()
    assert len(receiver.received) == 4
    assert len(base(mesh).lanes) == 1


def test_lanes_go_with_the_connection_and_come_with_the_next() -> None:
    mesh = line("a", "b")
    receiver = mesh["b"].client().receiver("q", credit=10)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    sender.send(of(8))
    mesh.run()
    mesh.cut("a", "b")
    mesh.learn()
    mesh.join("a", "b")
    mesh.learn()
    mesh.settle()
    sender.send(of(8))
    sender.send(of(3))
    mesh.run()
    assert len(receiver.received) == 3
    assert sorted(base(mesh).lanes) == sorted((lane_of(8, 0), lane_of(3, 0)))


def test_who_has_nothing_waiting_may_send_something_urgent() -> None:
    mesh = line("a", "b")
    receiver = mesh["b"].client().receiver("q", credit=4)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    sender.send(of(8, b"first"))
    mesh.run()
    while sender.can_send():
        sender.send(of(4, b"small"))
        mesh.run()
    link = base(mesh)
    lane = link.lanes[lane_of(8, 0)].consumer
    assert link.address.waiting.count >= 1
    assert lane is not None
    # there is as much credit as there are messages, but not for these
    assert 1 <= lane.link.credit <= link.address.waiting.count
    assert not sender.can_send()
    other = mesh["a"].client().sender("q")
    mesh.run()
    assert other.credit == 1
    other.send(of(8, b"urgent"))
    mesh.run()
    assert not other.can_send() or lane.link.credit > 0
    # it waits there for the receiver, before what came first
    receiver.grant(1)
    mesh.run()
    assert b"urgent" in receiver.received[-1].payload


def test_an_anonymous_senders_order_is_kept_from_its_first_message_on() -> None:
    mesh = line("a", "b")
    receiver = mesh["b"].client().receiver("q", credit=10)
    sender = mesh["a"].client().sender(None)
    mesh.run()
    for number in range(4):
        header = Header(priority=8)
        sender.send(message(str(number), "q", header=header))
    mesh.run()
    assert texts(receiver) == ["0", "1", "2", "3"]
    assert list(base(mesh).lanes) == [lane_of(8, 0)]


def test_senders_take_a_stripe_only_while_nothing_can_be_overtaken() -> None:
    mesh = line("a", "b")
    receiver = mesh["b"].client().receiver("q", credit=10)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    sender.send(of(4))
    mesh.run()
    sender.send(of(4, b"xx")[:-1], more=True)
    mesh.run()
    sender.go_on(b"x")
    mesh.run()
    assert base(mesh).lanes == {}
    receiver.settle()
    mesh.run()
    sender.send(of(4, b"xx")[:-1], more=True)
    sender.go_on(b"x")
    mesh.run()
    assert list(base(mesh).lanes) == [lane_of(4, 1)]
    assert len(receiver.received) == 3


@pytest.mark.parametrize("settled", [True, False])
def test_who_settles_first_has_nothing_overtaken(settled: bool) -> None:
    mesh = line("a", "b", "c")
    receiver = mesh["c"].client(window=100_000).receiver("q", credit=10)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    # on the way where nobody hears of them any more
    mesh.hold("b", "c")
    for text in (b"1.", b"2."):
        sending = sender.send(of(4, text), settled=settled)
        if not settled:
            sender.settle(sending)
        mesh.run()
    stream = Stream(sender, 4, 100_000, b"3.")
    while stream.go_on():
        mesh.run()
    assert base(mesh).lanes == {}
    mesh.hold("b", "c", held=False)
    carry(mesh, [stream], lambda: got([receiver], b"3.") == [True])
    order = [next(text for text in b"123" if b"%c." % text in each.payload[:32])
             for each in receiver.received]  # fmt: skip
    assert order == sorted(order)


def test_who_sends_a_large_message_first_has_a_lane_though_it_is_settled() -> None:
    mesh = line("a", "b")
    mesh["b"].client(window=100_000).receiver("q", credit=10)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    for _ in range(2):
        sender.send(of(4, b"xx")[:-1], more=True, settled=True)
        sender.go_on(b"x")
        mesh.run()
    assert list(base(mesh).lanes) == [lane_of(4, 1)]


def test_what_is_urgent_is_so_on_a_link_that_stands_in_for_its_lane() -> None:
    mesh = Mesh("a", "b")
    mesh.settings = {"channel_max": 6}
    mesh.join("a", "b")
    mesh.learn()
    receivers = {name: mesh["b"].client(window=100_000).receiver(name, credit=50) for name in "qrs"}
    senders = {name: mesh["a"].client().sender(name) for name in "qrs"}
    mesh.run()
    # there is a channel for this one, and none for those that are more urgent
    senders["q"].send(of(3))
    mesh.run()
    senders["q"].send(of(8))
    senders["r"].send(of(5))
    mesh.run()
    assert list(base(mesh).lanes) == [lane_of(3, 0)]
    for receiver in receivers.values():
        receiver.settle()
    mesh.slow("a", "b", 20_000)
    stream = Stream(senders["s"], 4, 10_000_000)
    carry(mesh, [stream], lambda: got([receivers["s"]], b"big") == [False])
    for _ in range(50):
        stream.go_on()
        mesh.step()
    for _ in range(8):
        senders["r"].send(of(5, b"rather urgent", 16_000))
    senders["q"].send(of(8, b"urgent"))
    carry(mesh, [stream], lambda: len(receivers["q"].received) == 3)
    assert got([receivers["r"]], b"rather") in ([], [False], [True])


class Crowd:
    """Senders of random sizes and priorities on slow lines, to receivers with little credit."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.mesh = line("a", "b", "c", "d")
        self.at_rest = self.mesh["d"].client(window=100_000)
        self.receivers = [
            self.at_rest.receiver("q", credit=self.random.randrange(5)) for _ in range(3)
        ]
        self.senders = [self.mesh["a"].client().sender("q") for _ in range(4)]
        self.senders.append(self.mesh["a"].client().sender(None))
        self.mesh.run()
        for one, other in ("ab", "bc", "cd"):
            self.mesh.slow(one, other, self.random.choice((500, 5_000, 50_000)))
        self.rest: dict[int, bytes] = {}
        self.count = 0
        self.is_settled = self.random.random() < 0.5

    def send(self) -> None:
        """Somebody sends something, or more of it."""
        number = self.random.randrange(len(self.senders))
        sender = self.senders[number]
        if sender.client.router_window <= 0:
            return
        if number in self.rest:
            rest = self.rest[number]
            cut = self.random.randrange(1, min(len(rest), PART) + 1)
            if cut < len(rest):
                self.rest[number] = rest[cut:]
            else:
                del self.rest[number]
            sender.go_on(rest[:cut], more=cut < len(rest))
        elif sender.can_send():
            self.count += 1
            priority = self.random.choice((0, 4, 4, 4, 8, 9))
            size = self.random.choice((100, 100, 100, 10_000, 100_000))
            text = b"%d.%d.%06d." % (number, priority, self.count)
            to = "q" if sender.address is None else None
            octets = encode_message(
                Message(
                    header=Header(priority=priority),
                    properties=Properties(to=to),
                    body=(Data(text + bytes(size)),),
                )
            )
            is_small = len(octets) < PART and self.random.random() < 0.5
            head = len(octets) if is_small else 80
            is_settled = self.is_settled and self.random.random() < 0.3
            sender.send(octets[:head], more=head < len(octets), settled=is_settled)
            if head < len(octets):
                self.rest[number] = octets[head:]

    def step(self) -> None:
        """Something happens."""
        what = self.random.random()
        if what < 0.4:
            self.send()
        elif what < 0.9:
            self.mesh.step()
        elif what < 0.95:
            self.random.choice(self.receivers).settle()
        elif what < 0.99:
            receiver = self.random.choice(self.receivers)
            receiver.grant(receiver.credit + self.random.randrange(3))
        else:
            self.mesh.wait(self.random.choice((0.1, 1, 3)))

    def finish(self) -> None:
        """All is sent, and received."""
        for _ in range(500):
            for number, rest in list(self.rest.items()):
                while rest and self.senders[number].client.router_window > 0:
                    part, rest = rest[:PART], rest[PART:]
                    self.senders[number].go_on(part, more=bool(rest))
                self.rest[number] = rest
            self.rest = {number: rest for number, rest in self.rest.items() if rest}
            self.mesh.run()
            for receiver in self.receivers:
                receiver.settle()
                receiver.grant(5)
            if not self.rest and len(self.at_rest_received()) == self.count:
                break

    def at_rest_received(self) -> list[Received]:
        """All that has come, in the order in which it began to."""
        received = [each for one in self.receivers for each in one.received]
        return sorted(received, key=lambda each: each.number)

    def check(self) -> None:
        """Each message came once, and none before an earlier one of its sender and priority."""
        last: dict[tuple[bytes, bytes], int] = {}
        assert len(self.at_rest_received()) == self.count
        for each in self.at_rest_received():
            assert each.complete
            (body,) = decode_message(each.payload).body
            assert isinstance(body, Data)
            sender, priority, number, _ = body.octets.split(b".", 3)
            assert last.get((sender, priority), 0) < int(number)
            last[sender, priority] = int(number)


@pytest.mark.parametrize("seed", range(12))
def test_the_order_of_each_sender_and_priority_is_kept(seed: int) -> None:
    crowd = Crowd(seed)
    for _ in range(1500):
        crowd.step()
    crowd.finish()
    crowd.check()
    for client in [crowd.at_rest, *(sender.client for sender in crowd.senders)]:
        client.close()
    for _ in range(16):
        crowd.mesh.wait(1)
    for router in crowd.mesh.routers.values():
        assert not router.table.transit
        assert len(router.table) == 0
        assert router.forwarder.backlog.held_bytes == 0
    assert not any(wire.connection.local_sessions for wire in crowd.mesh.wires)
