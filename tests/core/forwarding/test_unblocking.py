"""When there is room again, those that wait for it go on: the most urgent first, and each."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.amqp.message import Data, Header, Message, Properties, encode_message
from router.core.forwarding.unblocking import urgency_of
from router.engine.states import LinkState

from support.examples import examples
from support.in_memory import Client, Received, ReceivingLink, Router, SendingLink

LARGE = 60_000
# of unsent output, when nothing more is written (`engine.outbox`)
CONGESTED_BYTES = 512 * 1024
# how often the less urgent are passed over at most (`engine.blocking`)
PATIENCE = 16
# what it counts that a message which waited is sent (`queue_service`)
MESSAGE_WORK = 64


def message(priority: int | None = None, size: int = 10) -> bytes:
    header = None if priority is None else Header(priority=priority)
    return encode_message(Message(header=header, body=(Data(b"x" * size),)))


def congest(router: Router, client: Client) -> SendingLink:
    """Have a client's socket take nothing, and so much be there for it that nothing is written."""
    client.receiver("congesting", 100)
    sender = router.client().sender("congesting")
    client.read(reads=False)
    while not client.connection.outbox.congested:
        sender.send(message(size=LARGE))
    return sender


def received(link: SendingLink | ReceivingLink) -> list[Received]:
    assert isinstance(link, ReceivingLink)
    return link.received


def order(client: Client) -> list[str | None]:
    """Return the addresses whose messages have come, in order."""
    came = [
        (each.number, link.address)
        for link in client.links
        if isinstance(link, ReceivingLink)
        for each in link.received
        if link.address != "congesting"
    ]
    return [address for _, address in sorted(came)]


def test_a_window_that_opens_has_those_go_on_that_wait_for_it_and_looks_at_no_others() -> None:
    router = Router()
    client = router.client(window=1)
    for number in range(50):
        client.receiver(f"idle{number}", 10)
    busy = client.receiver("busy", 10)
    senders = [router.client().sender("busy") for _ in range(4)]
    for sender in senders:
        sender.send(message())
    session = client.connection.local_sessions[0]
    assert [link.name for link in waiting(session.blocked_links)] == [busy.name]
    before = client.connection.turn_end
    client.open_window(10)
    assert len(busy.received) == 4
    assert session.blocked_links is not None
    assert session.blocked_links.count == 0
    work = before - client.connection.turn_end - 3 * MESSAGE_WORK
    assert work <= 1 + client.connection.frames_received


def test_a_window_that_opens_for_many_links_is_much_work() -> None:
    router = Router()
    client = router.client(window=0)
    receivers = [client.receiver(f"q{number}", 1) for number in range(200)]
    sender = router.client().sender(None)
    for number in range(200):
        sender.send(encode_message(Message(properties=Properties(to=f"q{number}"))))
    before, heard = client.connection.turn_end, client.connection.frames_received
    client.open_window(1000)
    assert [len(receiver.received) for receiver in receivers] == [1] * 200
    frames = client.connection.frames_received - heard
    assert before + frames - client.connection.turn_end == 200 * (1 + MESSAGE_WORK)


def test_very_many_links_go_on_over_several_turns() -> None:
    router = Router()
    client = router.client(window=0)
    receivers = [client.receiver(f"q{number}", 1) for number in range(600)]
    sender = router.client(window_limit=1000, link_capacity=1000).sender(None)
    for number in range(600):
        sender.send(encode_message(Message(properties=Properties(to=f"q{number}"))))
    router.is_patient = True
    client.open_window(1000)
    assert sum(len(receiver.received) for receiver in receivers) == 256
    # there is no more room than there was
    client.open_window(1000)
    assert sum(len(receiver.received) for receiver in receivers) == 256
    router.go_on()
    assert sum(len(receiver.received) for receiver in receivers) == 272
    router.catch_up()
    assert [len(receiver.received) for receiver in receivers] == [1] * 600
    blocked = client.connection.local_sessions[0].blocked_links
    assert blocked is not None
    assert blocked.count == 0


def test_links_that_go_on_later_stop_where_the_window_is_closed_again() -> None:
    router = Router()
    client = router.client(window=0)
    receivers = [client.receiver(f"q{number}", 1) for number in range(600)]
    sender = router.client(window_limit=1000, link_capacity=1000).sender(None)
    for number in range(600):
        sender.send(encode_message(Message(properties=Properties(to=f"q{number}"))))
    router.is_patient = True
    client.open_window(300)
    router.catch_up()
    assert sum(len(receiver.received) for receiver in receivers) == 300
    client.open_window(1000)
    assert [len(receiver.received) for receiver in receivers] == [1] * 600


def waiting(blocked: Any) -> list[Any]:
    found = []
    while (link := blocked.take()) is not None:
        found.append((link, link.blocked_level))
    for link, level in found:
        blocked.add(link, level)
    return [link for link, _ in found]


def test_a_window_that_opens_is_of_no_interest_to_other_sessions() -> None:
    router = Router()
    client = router.client(window=0)
    client.receiver("q", 10)
    router.client().sender("q").send(message())
    session = client.connection.local_sessions[0]
    router.forwarder.room_made(client.connection, None)
    assert session.blocked_links is not None
    assert session.blocked_links.count == 1


def test_the_most_urgent_goes_first_when_the_socket_has_room() -> None:
    router = Router()
    client = router.client()
    for name in "abc":
        client.receiver(name, 10)
    congest(router, client)
    for name, priority in (("a", 4), ("b", 1), ("c", 8)):
        router.client().sender(name).send(message(priority))
    client.read()
    assert order(client) == ["c", "a", "b"]


def test_who_gets_something_more_urgent_moves_up() -> None:
    router = Router()
    client = router.client()
    for name in "abc":
        client.receiver(name, 10)
    senders = [router.client().sender(name) for name in "abcc"]
    congest(router, client)
    for sender, priority in zip(senders, (None, 6, 5, 7), strict=True):
        sender.send(message(priority))
    client.read()
    # the other one of c is not as urgent as that of b
    assert order(client) == ["c", "b", "c", "a"]


@pytest.mark.parametrize("default", ["balanced", "multicast"])
def test_what_is_less_urgent_gives_way_on_its_own_link_too(default: str) -> None:
    router = Router(default=default)
    client = router.client()
    for name in "ab":
        client.receiver(name, 10)
    senders = [router.client().sender(name) for name in "ab"]
    congest(router, client)
    for priority in (2, 9, 4):
        for sender in senders:
            sender.send(message(priority))
    client.read()
    came = sorted(
        (each.number, each.payload) for link in client.links[:2] for each in received(link)
    )
    assert [payload for _, payload in came] == [message(each) for each in (9, 9, 4, 4, 2, 2)]


def test_the_next_in_line_begins_when_there_is_room_again() -> None:
    """One that fills the socket by itself waits behind the others then."""
    router = Router()
    client = router.client()
    for name in "abc":
        client.receiver(name, 100_000)
    senders = [router.client().sender(name) for name in "aabbcc"]
    congest(router, client)
    for sender in senders:
        for _ in range(10):
            sender.send(message(size=LARGE))
    client.read_some(CONGESTED_BYTES)
    blocked = client.connection.outbox.blocked_links
    assert blocked is not None
    while blocked.count:
        client.read_some(CONGESTED_BYTES // 2)
    client.read()
    assert [name for name, _ in groupby(order(client))][:6] == list("abcabc")
    assert len(order(client)) == 60


def test_a_stream_of_what_is_less_urgent_goes_on_all_the_same() -> None:
    router = Router()
    client = router.client()
    for name in ("urgent", "low"):
        client.receiver(name, 100_000)
    senders = [(router.client().sender("urgent"), 8) for _ in range(24)]
    senders += [(router.client().sender("low"), 1) for _ in range(2)]
    congest(router, client)
    for sender, priority in senders:
        for _ in range(10):
            sender.send(message(priority, LARGE))
    while "low" not in order(client):
        client.read_some(CONGESTED_BYTES // 2)
    assert PATIENCE * 4 < order(client).count("urgent") < 240
    client.read()
    assert len(order(client)) == 260


def test_a_sender_gets_its_credit_back_when_the_socket_has_room() -> None:
    router = Router()
    client = router.client()
    client.receiver("q", 100)
    congest(router, client)
    sender = router.client().sender("q")
    assert sender.credit == 1
    client.read()
    assert sender.credit == 100


def test_how_urgent_a_link_is() -> None:
    router = Router()
    client = router.client(window=1)
    client.receiver("q", 10)
    found = router.table.in_use("q")
    assert found is not None
    consumer = found.consumers[0]
    assert urgency_of(consumer) == 4
    senders = [router.client().sender("q") for _ in range(4)]
    senders[0].send(message(1))
    for sender, priority, level in ((senders[1], 2, 2), (senders[2], 0, 2), (senders[3], 7, 7)):
        sender.send(message(priority))
        assert urgency_of(consumer) == level
    client.open_window(100)
    consumer.link.urgency = 9
    assert urgency_of(consumer) == 9


# Nobody waits for ever.

STEPS = st.one_of(
    st.tuples(
        st.just("send"), st.integers(0, 5), st.sampled_from([0, 1, 4, 4, 8]),
        st.sampled_from([10, 10, LARGE, 4 * LARGE]), st.booleans(),
    ),
    st.tuples(st.just("go on"), st.integers(0, 5), st.sampled_from([10, LARGE]), st.booleans()),
    st.tuples(st.just("abort"), st.integers(0, 5)),
    st.tuples(st.just("credit"), st.integers(0, 7), st.integers(0, 12), st.booleans()),
    st.tuples(st.just("window"), st.integers(0, 3), st.integers(0, 6)),
    st.tuples(st.just("read"), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("read some"), st.integers(0, 3), st.sampled_from([1000, 300_000, 600_000])),
    st.tuples(st.just("settle"), st.integers(0, 7)),
    st.tuples(st.just("detach"), st.integers(0, 7)),
    st.tuples(st.just("attach"), st.integers(0, 3), st.integers(0, 2)),
    st.tuples(st.just("wait")),
)  # fmt: skip


class Play:
    """Three addresses, senders and receivers of each; whatever happens to windows and sockets."""

    def __init__(self, default: str) -> None:
        self.router = Router(default=default)
        self.clients = [self.router.client(window=3) for _ in range(4)]
        self.receivers: list[ReceivingLink] = []
        for client in self.clients:
            for name in range(2):
                self.attach(client, name)
        self.senders = [self.router.client().sender(f"q{number % 3}") for number in range(6)]

    def attach(self, client: Client, address: int) -> None:
        name = f"receiver {len(self.receivers)}"
        self.receivers.append(client.receiver(f"q{address}", 2, name=name))

    def step(self, what: str, at: int = 0, *args: Any) -> None:
        match what:
            case "send":
                sender, (priority, size, more) = self.senders[at], args
                if sender.can_send():
                    sender.send(message(priority, size), more=more)
            case "go on":
                sender, (size, more) = self.senders[at], args
                if sender.current is not None and sender.client.router_window > 0:
                    body = b"\0\x53\x75\xb0" + size.to_bytes(4, "big") + b"y" * size
                    sender.go_on(body, more=more)
            case "abort":
                sender = self.senders[at]
                if sender.current is not None and sender.client.router_window > 0:
                    sender.abort()
            case "credit":
                receiver = self.receivers[at]
                if receiver.attached:
                    # what has not been read may have used up all of the credit
                    least = 0 if receiver.client.reads else receiver.credit
                    receiver.grant(max(least, args[0]), drain=args[1])
            case "window":
                self.clients[at].open_window(args[0])
            case "read":
                self.clients[at].read(reads=args[0])
            case "read some":
                self.clients[at].read_some(args[0])
            case "settle":
                self.receivers[at].settle()
            case "detach":
                receiver = self.receivers[at]
                if receiver.attached:
                    receiver.detach()
            case "attach":
                self.attach(self.clients[at], args[0])
            case "wait":
                self.router.wait(1.0)

    def check(self) -> None:
        """Whoever could take what waits, but for room, waits for room."""
        for address in self.router.table.addresses():
            for consumer in address.consumers:
                link = consumer.link
                session = link.session
                is_blocked = session.remote_incoming_window <= 0 or session.outbox.congested
                current = link.current
                if link.state != LinkState.ATTACHED:
                    continue
                if current is not None:
                    has_something = current.chunks is not None or current.discarded
                else:
                    has_something = consumer.waiting.count > 0 and link.credit > 0
                if has_something:
                    assert is_blocked
                    assert link.blocked_in is not None
                if link.blocked_in is not None:
                    assert link.blocked_in in (session.blocked_links, session.outbox.blocked_links)
                    if link.blocked_in is session.blocked_links:
                        assert session.remote_incoming_window <= 0
                    else:
                        assert session.outbox.congested

    def end(self) -> None:
        """All read, and have room for everything; the senders end what they have begun."""
        for sender in self.senders:
            if sender.current is not None:
                while sender.client.router_window <= 0:
                    self.make_room()
                sender.go_on(b"", more=False)
        self.make_room()

    def make_room(self) -> None:
        for client in self.clients:
            client.read()
            client.open_window(10_000)
        for receiver in self.receivers:
            if receiver.attached:
                receiver.grant(1000)


@examples(150)
@given(st.sampled_from(["balanced", "closest", "multicast"]), st.lists(STEPS, max_size=60))
def test_whatever_happens_to_windows_and_sockets_nothing_waits_once_there_is_room(
    default: str, steps: list[tuple[Any, ...]]
) -> None:
    play = Play(default)
    for step in steps:
        play.step(*step)
        play.check()
    play.end()
    play.check()
    for address in play.router.table.addresses():
        for consumer in address.consumers:
            assert consumer.waiting.count == 0
            assert consumer.link.current is None
    for client in play.clients:
        assert (
            client.connection.outbox.blocked_links is None
            or client.connection.outbox.blocked_links.count == 0
        )
