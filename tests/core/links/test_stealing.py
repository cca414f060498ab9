"""A link attached again, elsewhere, is taken from where it was; nothing is lost or doubled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from router.amqp.constants import ReceiverSettleMode, TerminusExpiryPolicy as Policy
from router.amqp.framing import AMQP_HEADER
from router.amqp.performatives import (
    Accepted,
    Attach,
    Detach,
    Disposition,
    Flow,
    Modified,
    Open,
    Rejected,
    Released,
    Source,
    Target,
    Transfer,
)
from router.engine.connection import Connection
from router.engine.events import LinkAttachReceived, LinkDetached, LinkStealingRefused, LinkStolen

from support.in_memory import Client, ReceivingLink, Router, SendingLink
from support.schedules import to_section
from support.transcripts import (
    OPAQUE,
    On,
    attach_receiver,
    attach_sender,
    begin,
    read_frame,
    server_settings,
    wire,
)

STOLEN = "amqp:link:stolen"
FAILED = Modified(delivery_failed=True)
Link = SendingLink | ReceivingLink
Where = Callable[[Router, Client], Client]


def condition(link: Link) -> str | None:
    """Return the condition that a link was closed with, or None if it was not closed."""
    if link.detached is None:
        return None
    assert link.detached.closed
    assert link.detached.error is not None
    return str(link.detached.error.condition)


def elsewhere(router: Router, client: Client) -> Client:
    """On another connection of the same container."""
    return router.client(container=client.container)


def here(_: Router, client: Client) -> Client:
    """On the same session, with another handle."""
    return client


places = pytest.mark.parametrize("where", [elsewhere, here])


# Receivers.


@places
@pytest.mark.spec("2.6.1-2")
def test_a_receiver_attached_again_is_taken_from_where_it_was(where: Where) -> None:
    router = Router()
    old = router.client().receiver("q", 5, name="r")
    new = where(router, old.client).receiver("q", 1, name="r")
    assert condition(old) == STOLEN
    assert new.detached is None
    sending = router.client().sender("q").send(b"x")
    assert old.received == []
    assert new.take() == b"x"
    new.settle()
    assert sending.outcome == Accepted()
    assert router.forwarder.link_names.stolen == 1


@places
def test_what_a_stolen_receiver_had_unsettled_is_modified(where: Where) -> None:
    router = Router()
    old = router.client().receiver("q", 5, name="r")
    sender = router.client().sender("q")
    settled, *unsettled = (sender.send(b"%d" % n) for n in range(3))
    old.client.dispose([0])
    new = where(router, old.client).receiver("q", 5, name="r")
    assert settled.outcome == Accepted()
    assert [each.outcome for each in unsettled] == [FAILED, FAILED]
    # what the old one says of it now comes too late, and does no harm
    old.client.dispose([1, 2])
    assert not old.client.over
    assert router.table.total().modified == 2
    sender.send(b"again")
    assert new.take() == b"again"


@places
def test_what_waits_for_a_stolen_receiver_waits_for_the_new_one(where: Where) -> None:
    router = Router()
    old = router.client().receiver("q", 5, name="r")
    sender = router.client().sender("q")
    first = [sender.send(b"1"), sender.send(b"2")]
    old.grant(0)
    waiting = sender.send(b"3")
    new = where(router, old.client).receiver("q", 0, name="r")
    assert [each.outcome for each in first] == [FAILED, FAILED]
    assert not waiting.is_over
    assert new.received == []
    new.grant(5)
    assert new.take() == b"3"
    new.settle()
    assert waiting.outcome == Accepted()


def test_what_waits_is_released_if_the_new_one_receives_from_elsewhere() -> None:
    router = Router()
    old = router.client().receiver("q", 5, name="r")
    sender = router.client().sender("q")
    sent = sender.send(b"1")
    old.grant(0)
    waiting = sender.send(b"2")
    new = elsewhere(router, old.client).receiver("other", 5, name="r")
    assert sent.outcome == FAILED
    assert waiting.outcome == Released()
    assert new.received == []


@places
def test_a_message_that_a_stolen_receiver_has_half(where: Where) -> None:
    router = Router()
    old = router.client().receiver("q", 5, name="r")
    sender = router.client().sender("q")
    sending = sender.send(b"half", more=True)
    assert old.current is not None
    new = where(router, old.client).receiver("q", 5, name="r")
    assert sending.outcome == FAILED
    sender.go_on(b" and rest")
    assert new.received == []
    sender.send(b"whole")
    assert new.take() == b"whole"
    assert router.forwarder.backlog.held_bytes == 0


def test_a_message_of_which_a_stolen_receiver_s_window_let_through_a_part() -> None:
    router = Router()
    client = router.client(max_frame_size=512, window=1)
    old = client.receiver("q", 5, name="r")
    sending = router.client().sender("q").send(b"x" * 2000)
    new = elsewhere(router, client).receiver("q", 5, name="r")
    assert sending.outcome == FAILED
    assert condition(old) == STOLEN
    client.open_window(1000)
    assert len(old.received) == 1
    assert new.received == []
    assert router.forwarder.backlog.held_bytes == 0


def test_a_multicast_keeps_for_the_new_receiver_what_it_kept_for_the_old() -> None:
    router = Router(default="multicast")
    old = router.client().receiver("q", 9, name="r")
    other = router.client().receiver("q", 9)
    sender = router.client().sender("q")
    sent = sender.send(b"1")
    old.grant(0)
    waiting = sender.send(b"2")
    half = sender.send(b"3", more=True)
    new = elsewhere(router, old.client).receiver("q", 9, name="r")
    sender.go_on(b"4")
    assert new.take() == b"2"
    assert new.take() == b"34"
    for receiver in (other, new):
        receiver.settle()
    assert sent.outcome == Accepted()
    assert waiting.outcome == half.outcome == Accepted()
    assert len(other.received) == 3
    assert router.forwarder.backlog.held_bytes == 0


def test_a_multicast_keeps_nothing_for_a_receiver_that_has_to_resume_first() -> None:
    router = Router([(False, "all", "multicast")])
    source = Source("all", expiry_policy=Policy.LINK_DETACH, timeout=30)
    old = router.client().receiver("all", 1, name="r", source=source)
    sender = router.client().sender("all")
    old.grant(0)
    sending = sender.send(b"x")
    fields = {"source": source, "unsettled": {}, "incomplete_unsettled": True}
    new = elsewhere(router, old.client).receiver("all", 0, name="r", **fields)
    assert condition(old) == STOLEN
    assert sending.outcome == Released()
    assert router.forwarder.backlog.held_bytes == 0
    new.grant(5)
    assert new.received == []


def test_a_multicast_s_copy_is_modified_with_its_stolen_receiver() -> None:
    router = Router(default="multicast")
    old = router.client().receiver("q", 5, name="r")
    sending = router.client().sender("q").send(b"x")
    new = elsewhere(router, old.client).receiver("q", 5, name="r")
    assert sending.outcome == FAILED
    assert new.received == []


def test_an_outcome_that_was_told_is_not_contradicted() -> None:
    """The receiver told it, and was stolen before its sender settled."""
    router = Router()
    old = router.client().receiver("q", 5, name="r")
    sender = router.client().sender("q")
    states = [Accepted(), Released(), Rejected(), Modified(undeliverable_here=True)]
    sendings = [sender.send(b"x") for _ in states]
    for number, state in enumerate(states):
        old.client.dispose([number], state, settled=False)
    elsewhere(router, old.client).receiver("q", 5, name="r")
    for sending, state in zip(sendings, states, strict=True):
        assert sending.is_over
        assert sending.states[0] == state
        assert sending.outcome in (state, None)
    assert [s.outcome for s in sendings[:2]] == states[:2]
    total = router.table.total()
    assert (total.accepted, total.released, total.rejected, total.modified) == (1, 1, 1, 1)


# Senders.


@places
@pytest.mark.spec("2.6.1-2")
def test_a_sender_attached_again_is_taken_from_where_it_was(where: Where) -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    old = router.client().sender("q", name="s")
    new = where(router, old.client).sender("q", name="s")
    assert condition(old) == STOLEN
    sending = new.send(b"x")
    assert receiver.take() == b"x"
    receiver.settle()
    assert sending.outcome == Accepted()


@places
def test_what_a_stolen_sender_is_told(where: Where) -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    old = router.client().sender("q", name="s")
    settled, sent = old.send(b"1"), old.send(b"2")
    receiver.client.dispose([0])
    receiver.grant(0)
    waiting = old.send(b"3")
    new = where(router, old.client).sender("q", name="s")
    assert [s.outcome for s in (settled, sent, waiting)] == [Accepted(), FAILED, Released()]
    receiver.grant(9)
    # what was released is the sender's again, and nobody gets it from here
    assert len(receiver.received) == 2
    receiver.settle()
    again = new.send(b"3")
    receiver.settle()
    assert again.outcome == Accepted()
    assert [each.payload for each in receiver.received] == [b"1", b"2", b"3"]
    total = router.table.total()
    assert (total.accepted, total.released, total.modified) == (3, 1, 0)
    assert router.forwarder.backlog.held_bytes == 0


def test_what_a_stolen_sender_had_settled_goes_on() -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    old = router.client().sender("q", name="s")
    old.send(b"1")
    receiver.grant(0)
    old.send(b"2", settled=True)
    elsewhere(router, old.client).sender("q", name="s")
    receiver.grant(5)
    assert [each.payload for each in receiver.received] == [b"1", b"2"]


@places
@pytest.mark.parametrize("credit", [5, 0])
def test_a_stolen_sender_is_half_way_through_a_message(where: Where, credit: int) -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    old = router.client().sender("q", name="s")
    receiver.grant(credit)
    half = old.send(b"half", more=True)
    new = where(router, old.client).sender("q", name="s")
    assert half.outcome == Released()
    receiver.grant(9)
    new.send(b"whole")
    assert receiver.received[-1].payload == b"whole"
    assert [r.aborted for r in receiver.received] == ([True, False] if credit else [False])
    assert router.table.total().aborted == 1
    assert router.forwarder.backlog.held_bytes == 0


def test_a_message_of_a_stolen_sender_that_is_half_way_out() -> None:
    """It came whole, and the receiver's window has let through a part of it."""
    router = Router()
    receiver = router.client(max_frame_size=512, window=1).receiver("q", 5)
    old = router.client().sender("q", name="s")
    half, waiting = old.send(b"x" * 2000), old.send(b"y")
    new = elsewhere(router, old.client).sender("q", name="s")
    assert half.outcome == waiting.outcome == Released()
    receiver.client.open_window(1000)
    assert [r.aborted for r in receiver.received] == [True]
    receiver.grant(5)
    new.send(b"z")
    assert receiver.received[1].payload == b"z"
    assert router.forwarder.backlog.held_bytes == 0
    assert router.table.total().released == 2


def test_what_a_receiver_said_before_it_had_all_is_not_contradicted() -> None:
    router = Router()
    receiver = router.client(max_frame_size=512, window=1).receiver("q", 5)
    old = router.client().sender("q", name="s", rcv_settle_mode=ReceiverSettleMode.SECOND)
    half = old.send(b"x" * 2000)
    receiver.client.dispose([0], settled=False)
    elsewhere(router, old.client).sender("q", name="s")
    assert half.states == [Accepted()]
    receiver.client.open_window(1000)
    assert [r.complete for r in receiver.received] == [True]
    assert router.table.total().accepted == 1


def test_others_who_wait_are_not_passed_over() -> None:
    """Another sender's messages wait among those that are taken back."""
    router = Router()
    receiver = router.client().receiver("q", 8)
    old, other = router.client().sender("q", name="s"), router.client().sender("q")
    receiver.grant(8)
    old.send(b"1")
    other.send(b"2")
    receiver.grant(0)
    gone, kept = old.send(b"3"), other.send(b"4")
    elsewhere(router, old.client).sender("q", name="s")
    assert gone.outcome == Released()
    assert not kept.is_over
    receiver.grant(9)
    assert [each.payload for each in receiver.received] == [b"1", b"2", b"4"]
    receiver.settle()
    assert kept.outcome == Accepted()


def test_a_stolen_sender_of_a_multicast() -> None:
    """One receiver has accepted, one has it unsettled, for one it waits."""
    router = Router(default="multicast")
    receivers = [router.client().receiver("q", 3) for _ in range(3)]
    old = router.client().sender("q", name="s")
    sendings = [old.send(b"1"), old.send(b"2")]
    receivers[2].grant(0)
    third = old.send(b"3")
    receivers[0].client.dispose([0])
    new = elsewhere(router, old.client).sender("q", name="s")
    assert [each.outcome for each in sendings] == [Accepted(), FAILED]
    assert third.outcome == FAILED
    # what the receivers say of it now, nobody hears
    for receiver in receivers:
        receiver.settle(settled=False)
        receiver.settle()
        receiver.grant(9)
        assert receiver.unsettled == {}
    assert len(receivers[2].received) == 2
    assert router.forwarder.backlog.held_bytes == 0
    again = new.send(b"4")
    for receiver in receivers:
        receiver.settle()
    assert again.outcome == Accepted()


def test_a_stolen_sender_of_a_multicast_is_half_way_through_a_message() -> None:
    router = Router(default="multicast")
    first, second = (router.client().receiver("q", 3) for _ in range(2))
    old = router.client().sender("q", name="s")
    second.grant(0)
    half = old.send(b"half", more=True)
    elsewhere(router, old.client).sender("q", name="s")
    assert half.outcome == Released()
    assert first.received[0].aborted
    second.grant(3)
    assert second.received == []
    assert router.forwarder.backlog.held_bytes == 0


def test_an_anonymous_sender_is_stolen() -> None:
    router = Router()
    receivers = {name: router.client().receiver(name, 1) for name in "ab"}
    old = router.client().sender(None, name="s")
    sent = [old.send(to_section(name) + b"\0\x53\x75\xa0\x01" + name.encode()) for name in "aabb"]
    new = elsewhere(router, old.client).sender(None, name="s")
    assert [s.outcome for s in sent] == [FAILED, Released(), FAILED, Released()]
    for name, receiver in receivers.items():
        receiver.grant(5)
        assert len(receiver.received) == 1
        new.send(to_section(name) + b"\0\x53\x75\xa0\x05again")
        assert len(receiver.received) == 2
    assert router.forwarder.backlog.held_bytes == 0


def test_what_a_stolen_sender_had_waiting_makes_room_for_others() -> None:
    """It was anonymous, and so no sender of that address."""
    router = Router()
    receiver = router.client(window=1).receiver("q", 5)
    old = router.client().sender(None, name="s")
    for _ in range(5):
        old.send(to_section("q") + b"\0\x53\x75\xa0\x01x")
    other = router.client().sender("q")
    assert other.credit == 0
    elsewhere(router, old.client).sender(None, name="s")
    assert other.credit == 4
    other.send(b"y")
    receiver.client.open_window(10)
    assert [each.payload[-1:] for each in receiver.received] == [b"x", b"y"]


def test_receivers_that_await_settlement_of_a_stolen_sender_get_it() -> None:
    """Whether they told their outcome before it was stolen or after (rcv-settle-mode second)."""
    router = Router()
    receiver = router.client().receiver("q", 5)
    old = router.client().sender("q", name="s", rcv_settle_mode=ReceiverSettleMode.SECOND)
    before, after = old.send(b"1"), old.send(b"2")
    receiver.client.dispose([0], Accepted(), settled=False)
    assert list(receiver.unsettled) == [0, 1]
    elsewhere(router, old.client).sender("q", name="s")
    assert before.states == [Accepted()]
    assert after.states == [FAILED]
    assert list(receiver.unsettled) == [1]
    receiver.settle(settled=False)
    assert receiver.unsettled == {}
    assert router.table.total().accepted == 2


@pytest.mark.parametrize("address", ["q", None])
def test_what_has_not_even_come_with_all_of_its_head_is_released(address: str | None) -> None:
    router = Router()
    router.client().receiver("q", 5)
    old = router.client().sender(address, name="s")
    half = old.send(b"\x00", more=True, message_format=0)
    elsewhere(router, old.client).sender(address, name="s")
    assert half.states == [Released()]
    assert half.is_over
    assert router.forwarder.intake.held_bytes == 0


def test_what_a_stolen_sender_wanted_to_resume_is_not_spoken_of() -> None:
    router = Router()
    router.client().receiver("q", 5)
    old = router.client().sender("q", name="s")
    sending = old.send(b"x", resume=True)
    elsewhere(router, old.client).sender("q", name="s")
    assert sending.states == []
    assert condition(old) == STOLEN


@places
def test_credit_starts_afresh(where: Where) -> None:
    router = Router()
    receiver = router.client().receiver("q", 3)
    old = router.client().sender("q", name="s")
    for _ in range(3):
        old.send(b"x")
    receiver.settle()
    receiver.grant(2)
    new = where(router, old.client).sender("q", name="s")
    assert new.credit == 2
    assert new.delivery_count == 0
    stolen = where(router, receiver.client)
    router.client().receiver("q", 1, name="r")
    again = stolen.receiver("q", 7, name=receiver.name)
    assert isinstance(again.attach, Attach)
    assert again.attach.initial_delivery_count == 0
    for _ in range(2):
        new.send(b"y")
    assert new.client.over is False


# What is another link, and what is none yet, or no more.


def test_another_name_direction_or_container_is_another_link() -> None:
    router = Router()
    client = router.client()
    links: list[Link] = [client.receiver("q", 1, name="l"), client.sender("q", name="l")]
    links += [client.receiver("q", 1, name="m"), router.client().receiver("q", 1, name="l")]
    assert [condition(link) for link in links] == [None] * 4
    assert len(router.forwarder.link_names) == 4


def test_who_has_no_container_id_steals_from_nobody() -> None:
    router = Router()
    links = [router.client(container="").receiver("q", 1, name="l") for _ in range(2)]
    assert [condition(link) for link in links] == [None, None]
    links[0].detach()
    assert len(router.forwarder.link_names) == 0


@pytest.mark.parametrize("address", ["closed", "", None])
def test_an_attach_that_is_refused_steals_nothing(address: str | None) -> None:
    router = Router([(True, "closed", "unavailable")])
    old = router.client().receiver("q", 5, name="l")
    new = elsewhere(router, old.client).receiver(address, name="l")
    assert new.detached is not None
    assert condition(old) is None
    router.client().sender("q").send(b"x")
    assert old.take() == b"x"
    # and what was refused has no name
    third = elsewhere(router, old.client).receiver("q", 5, name="l")
    assert condition(old) == STOLEN
    assert condition(third) is None


def test_an_attach_that_cannot_be_answered_steals_nothing() -> None:
    router = Router()
    old = router.client().receiver("q", 5, name="l")
    small = router.client(container=old.client.container, max_frame_size=512)
    small.receiver("q" * 600, name="l")
    assert small.over
    assert condition(old) is None
    assert len(router.forwarder.link_names) == 1
    assert len(router.table) == 1


@pytest.mark.parametrize("how", ["detach", "suspend", "close", "lose", "end"])
def test_a_link_that_is_over_has_no_name(how: str) -> None:
    router = Router()
    for make in (Client.sender, Client.receiver):
        old = make(router.client(), "q", name="l")
        if how in {"detach", "suspend"}:
            old.detach(closed=how == "detach")
        else:
            getattr(old.client, how)()
        assert len(router.forwarder.link_names) == 0
        new = make(elsewhere(router, old.client), "q", name="l")
        assert old.detached is None or old.detached.error is None
        assert condition(new) is None
        new.detach()
    assert router.forwarder.link_names.stolen == 0


def test_a_link_that_is_being_closed_is_not_stolen() -> None:
    """Its detach has left, and the answer has not come."""
    router = Router()
    old = router.client().receiver("q", 5, name="l")
    old.client.read(reads=False)
    second = elsewhere(router, old.client).receiver("q", 5, name="l")
    third = elsewhere(router, old.client).receiver("q", 5, name="l")
    old.client.read()
    assert [condition(link) for link in (old, second, third)] == [STOLEN, STOLEN, None]
    assert [f for f in old.client.heard if isinstance(f, Detach)] == [old.detached]
    assert router.forwarder.link_names.stolen == 2


# What goes over the wire.


class Wire:
    """A peer of which every frame is seen, on as many sessions as it likes."""

    def __init__(self, router: Router, container: str) -> None:
        self.router = router
        settings = server_settings(sasl_mechanisms=())
        self.connection = Connection(settings, router.forwarder, router.turn, "wire", False)
        self.connection.owner = self
        self.heard: list[On] = []
        self.say(AMQP_HEADER, Open(container), begin(), On(1, begin()))
        self.heard.clear()

    def say(self, *things: Any) -> None:
        octets = b"".join(wire(thing) for thing in things)
        self.connection.receive(memoryview(bytearray(octets)), len(octets))
        self.router.finish_turn()

    def carry(self) -> None:
        self.connection.write_due()
        octets = bytes(self.connection.outbox.output.waiting())
        self.connection.sent(len(octets))
        octets = octets.removeprefix(AMQP_HEADER)
        while octets:
            size = int.from_bytes(octets[:4], "big")
            self.heard.append(read_frame(octets[:size]))
            octets = octets[size:]

    def kinds(self) -> list[tuple[int, type[Any]]]:
        return [(each.channel, type(each.performative)) for each in self.heard]


def credit(handle: int, count: int) -> Flow:
    """Let the router send this many on a link that has had none."""
    return Flow(
        incoming_window=99,
        next_outgoing_id=0,
        outgoing_window=99,
        handle=handle,
        delivery_count=0,
        link_credit=count,
    )


@pytest.mark.parametrize("channel", [0, 1])
@pytest.mark.spec("2.5-1", "2.6.1-2")
def test_a_receiver_on_another_session_or_handle(channel: int) -> None:
    router = Router()
    sender = router.client()
    peer = Wire(router, "c")
    peer.say(attach_receiver(0, name="l"), credit(0, 5))
    assert peer.heard
    sending = sender.sender("q").send(b"x")
    peer.heard.clear()
    peer.say(On(channel, attach_receiver(7, name="l")))
    # first the answer, then the end of the old one; its handle is still ours to name
    assert peer.kinds() == [(channel, Attach), (0, Detach)]
    attach, detach = (each.performative for each in peer.heard)
    assert attach.handle != 0 or channel == 1
    assert detach.handle == 0
    assert detach.closed
    assert str(detach.error.condition) == STOLEN
    assert sending.outcome == FAILED
    peer.heard.clear()
    peer.say(
        Detach(0, closed=True),
        On(channel, credit(7, 5)),
        On(channel, Disposition(True, 0)),
    )
    sender.links[0].send(b"y")  # type: ignore[union-attr]
    (transfer,) = (each for each in peer.heard if isinstance(each.performative, Transfer))
    assert transfer.channel == channel
    assert transfer.payload == b"y"


@pytest.mark.parametrize("channel", [0, 1])
@pytest.mark.spec("2.5-1", "2.6.1-2", "2.7.4-6")
def test_a_sender_on_another_session_or_handle(channel: int) -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    peer = Wire(router, "c")
    peer.say(attach_sender(0, name="l"))
    for number in range(3):
        if number == 2:
            receiver.grant(0)
        peer.say(On(0, Transfer(0, number, b"t", OPAQUE), b"%d" % number))
    receiver.client.dispose([0])
    peer.heard.clear()
    peer.say(On(channel, attach_sender(7, name="l", initial_delivery_count=41)))
    # All outcomes come before the detach: after it nothing may name those deliveries (2.6.5).
    closing = [(0, Disposition), (0, Disposition), (0, Detach)]
    assert peer.kinds()[:4] == [(channel, Attach), *closing]
    told = [each.performative for each in peer.heard[1:3]]
    assert [(each.first, each.settled, each.state) for each in told] == [
        (1, True, FAILED),
        (2, True, Released()),
    ]
    # credit counts from where the new link begins
    receiver.grant(1)
    flows = [each for each in peer.heard if isinstance(each.performative, Flow)]
    assert flows
    assert {each.channel for each in flows} == {channel}
    assert {each.performative.delivery_count for each in flows} == {41}
    # what was on its way on the old one is ignored
    peer.say(On(0, Transfer(0, 3, b"t", OPAQUE), b"late"))
    number = 4 if channel == 0 else 0
    peer.say(On(channel, Transfer(7, number, b"t", OPAQUE), b"new"))
    assert [each.payload for each in receiver.received] == [b"0", b"1", b"new"]
    assert peer.connection.is_open()


def test_a_deaf_peer_s_link_is_stolen_at_once() -> None:
    """Its detach waits in its output, behind all that it does not read."""
    router = Router()
    deaf = router.client()
    old = deaf.receiver("q", 1000, name="l")
    deaf.read(reads=False)
    sender = router.client().sender("q")
    sendings = [sender.send(b"x" * 60_000) for _ in range(10)]
    assert deaf.connection.outbox.congested
    new = elsewhere(router, deaf).receiver("q", 1000, name="l")
    assert condition(new) is None
    assert old.detached is None
    sent = [each for each in sendings if each.outcome == FAILED]
    waiting = [each for each in sendings if not each.is_over]
    assert sent
    assert len(sent) + len(waiting) == len(sendings)
    assert len(new.received) == len(waiting)
    new.settle()
    assert all(each.outcome == Accepted() for each in waiting)
    deaf.read()
    assert condition(old) == STOLEN
    assert len(old.received) == len(sent)


def test_a_deaf_peer_s_sender_is_stolen_at_once() -> None:
    router = Router()
    receiver = router.client().receiver("q", 3)
    deaf = router.client()
    old = deaf.sender("q", name="l")
    deaf.read(reads=False)
    sendings = [old.send(b"x") for _ in range(3)]
    new = elsewhere(router, deaf).sender("q", name="l")
    receiver.grant(3)
    new.send(b"y")
    assert receiver.received[-1].payload == b"y"
    deaf.read()
    assert condition(old) == STOLEN
    assert [each.outcome for each in sendings] == [FAILED] * 3


# Dynamic nodes.


def dynamic(client: Client, **fields: Any) -> tuple[ReceivingLink, str]:
    source = Source(dynamic=True, **fields)
    receiver = client.receiver(None, 10, name="d", source=source)
    assert receiver.attach is not None
    assert receiver.attach.source is not None
    address = receiver.attach.source.address
    assert address is not None
    return receiver, address


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_a_dynamic_node_goes_with_its_link_to_where_that_names_it(is_dynamic: bool) -> None:
    router = Router()
    old, address = dynamic(router.client())
    user = router.client().sender(address)
    pending = user.send(b"1")
    where = elsewhere(router, old.client)
    new = where.receiver(None, 10, name="d", source=Source(address=address, dynamic=is_dynamic))
    assert condition(old) == STOLEN
    assert pending.outcome == FAILED
    assert new.attach is not None
    granted = new.attach.source
    assert granted is not None
    assert (granted.address, granted.dynamic) == (address, is_dynamic)
    user.send(b"2")
    assert new.take() == b"2"
    assert condition(user) is None
    # now it is the new one that it goes with
    new.detach()
    assert condition(user) == "amqp:resource-deleted"
    assert len(router.table) == 0


def test_a_dynamic_node_goes_when_its_link_asks_for_another() -> None:
    router = Router()
    old, address = dynamic(router.client())
    user = router.client().sender(address)
    new, other = dynamic(elsewhere(router, old.client))
    assert other != address
    assert condition(old) == STOLEN
    assert condition(user) == "amqp:resource-deleted"
    assert condition(new) is None
    router.client().sender(other).send(b"x")
    assert new.take() == b"x"
    assert len(router.table) == 1


def test_a_dynamic_node_goes_when_its_link_goes_to_another_address() -> None:
    router = Router()
    old, address = dynamic(router.client())
    user = router.client().sender(address)
    elsewhere(router, old.client).receiver("q", name="d")
    assert condition(old) == STOLEN
    assert condition(user) == "amqp:resource-deleted"


def test_a_dynamic_node_is_nobody_else_s_to_ask_for() -> None:
    """With `dynamic` an address that is not the link's own node says nothing (section 3.5.3)."""
    router = Router()
    _, address = dynamic(router.client())
    other, another = dynamic(router.client(), address=address)
    assert another != address
    assert condition(other) is None
    third, one_more = dynamic(elsewhere(router, other.client), address="q")
    assert one_more not in {address, another, "q"}
    assert condition(third) is None


def test_a_stolen_link_that_only_used_a_node_leaves_it() -> None:
    router = Router()
    maker, address = dynamic(router.client())
    user = router.client().receiver(address, 1, name="u")
    elsewhere(router, user.client).receiver(address, 1, name="u")
    assert condition(user) == STOLEN
    assert condition(maker) is None


def test_a_sender_s_dynamic_node_goes_with_it() -> None:
    router = Router()
    old = router.client().sender(None, name="d", target=Target(dynamic=True))
    assert old.attach is not None
    assert isinstance(old.attach.target, Target)
    address = old.attach.target.address
    receiver = router.client().receiver(address, 5)
    new = elsewhere(router, old.client).sender(address, name="d")
    assert condition(old) == STOLEN
    new.send(b"x")
    assert receiver.take() == b"x"
    new.client.lose()
    assert condition(receiver) == "amqp:resource-deleted"


def test_an_attach_that_cannot_be_answered_leaves_the_node_where_it_is() -> None:
    router = Router()
    old, address = dynamic(router.client())
    small = router.client(container=old.client.container, max_frame_size=512)
    # our answer repeats the target, and is too long for it
    target = Target(address="t" * 600)
    small.say(Attach("d", 0, True, source=Source(address=address), target=target))
    assert small.over
    assert condition(old) is None
    router.client().sender(address).send(b"x")
    assert old.take() == b"x"


# Who may.


@pytest.mark.spec("2.6.1-2", "2.5-1")
@pytest.mark.parametrize(
    ("stealing", "users", "expected"),
    [
        ("same-user", ("ann", "ann"), STOLEN),
        ("same-user", (None, "anonymous"), STOLEN),
        ("same-user", ("ann", "bob"), "refused"),
        ("same-user", ("ann", None), "refused"),
        ("any", ("ann", "bob"), STOLEN),
        ("never", ("ann", "ann"), "refused"),
        ("off", ("ann", "ann"), "both"),
        ("off", ("ann", "bob"), "both"),
    ],
)
@pytest.mark.parametrize("make", [Client.sender, Client.receiver])
def test_who_may_steal(
    make: Any, stealing: str, users: tuple[str | None, str | None], expected: str
) -> None:
    router = Router(stealing=stealing)
    old = make(router.client(container="c", user=users[0]), "q", name="l")
    new = make(router.client(container="c", user=users[1]), "q", name="l")
    names = router.forwarder.link_names
    if expected == STOLEN:
        assert (condition(old), condition(new)) == (STOLEN, None)
        assert (names.stolen, names.refused) == (1, 0)
    elif expected == "refused":
        assert (condition(old), condition(new)) == (None, "amqp:resource-locked")
        assert (names.stolen, names.refused) == (0, 1)
        # whose it is, is not told
        assert new.detached.error.description == "a link named 'l' is attached elsewhere"
        terminus = new.attach.target if make is Client.sender else new.attach.source
        assert terminus is None
    else:
        assert (condition(old), condition(new)) == (None, None)
        assert (names.stolen, names.refused) == (0, 0)


def test_who_was_refused_may_come_again_when_the_name_is_free() -> None:
    router = Router()
    old = router.client(container="c", user="ann").receiver("q", 1, name="l")
    other = router.client(container="c", user="bob")
    assert condition(other.receiver("q", 1, name="l")) == "amqp:resource-locked"
    old.client.lose()
    assert condition(other.receiver("q", 1, name="l")) is None


def test_what_the_observer_hears() -> None:
    router = Router()
    old = router.client(container="c", user="ann").receiver("q", 1, name="l")
    router.events.clear()
    elsewhere(router, old.client).connection.user = "ann"
    router.clients[-1].receiver("q", name="l")
    kinds = (LinkStolen, LinkDetached, LinkAttachReceived, LinkStealingRefused)
    stolen, detached, attached = (e for e in router.events if isinstance(e, kinds))
    assert isinstance(stolen, LinkStolen)
    assert stolen.previous is detached.link
    assert stolen.link is attached.link
    assert stolen.previous.session.connection is old.client.connection
    router.events.clear()
    router.client(container="c", user="bob").receiver("q", name="l")
    refused = next(e for e in router.events if isinstance(e, LinkStealingRefused))
    assert refused.holder is stolen.link
