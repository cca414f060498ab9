"""Who settles first: every combination of the settle modes of a sender and of its receiver.

(docs/decisions/0033-who-settles-first.md; sections 2.6.12, 2.7.5, 2.8.2 and 2.8.3.)
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from router.amqp.constants import ReceiverSettleMode, SenderSettleMode
from router.amqp.outcomes import MAX_KEPT_BYTES
from router.amqp.performatives import (
    Accepted,
    Disposition,
    Error,
    Modified,
    Received,
    Rejected,
    Released,
    Source,
    TransactionalState,
)
from router.amqp.types import Described, Symbol, ULong

from support.in_memory import ReceivingLink, Router, SendingLink
from support.outcomes import OUTCOMES
from support.pairs import rejected
from support.schedules import TTL_100_MS, to_section

FIRST = ReceiverSettleMode.FIRST
SECOND = ReceiverSettleMode.SECOND
FAILED = Modified(delivery_failed=True)
# what `deliveries.credit` has, which keeps it in C when compiled
UNSETTLED_LIMIT = 65536
MINE = Described(Symbol("x:mine:list"), ["whatever", 1])


def two(
    sender: dict[str, Any] | None = None,
    receiver: dict[str, Any] | None = None,
    **router: Any,
) -> tuple[Router, SendingLink, ReceivingLink]:
    """Return a router, a sender that settles before the router does, and a receiver with credit."""
    made = Router(**router)
    taking = made.client().receiver("q", 10, **(receiver or {}))
    return made, made.client().sender("q", **{"rcv_settle_mode": SECOND, **(sender or {})}), taking


def nothing_is_open(router: Router) -> bool:
    """Whether no link and no session has a delivery that is not settled."""
    sessions = [
        session
        for client in router.clients
        for session in client.connection.local_sessions.values()
    ]
    links = [link for session in sessions for link in session.local_links.values()]
    return (
        all(session.incoming.count == session.outgoing.count == 0 for session in sessions)
        and all(link.unsettled == 0 for link in links)
        and router.forwarder.redelivery.kept_bytes == 0
        and router.forwarder.backlog.held_bytes == 0
    )


def counted(router: Router, outcome: Any) -> int:
    """How often an outcome was counted."""
    number: int = getattr(router.table.total(), outcome.NAME.split(":")[1])
    return number


def told(receiver: ReceivingLink) -> Disposition | None:
    """Return the last disposition from the sender of the first delivery, if there is any."""
    return receiver.received[0].sender_settled


# What is granted.


@pytest.mark.spec("2.7.3-5")
@pytest.mark.parametrize("address", ["q", None])
@pytest.mark.parametrize("default", ["balanced", "closest", "multicast"])
@pytest.mark.parametrize("mode", ReceiverSettleMode)
def test_a_sender_gets_the_mode_that_it_asks_for(
    mode: ReceiverSettleMode, default: str, address: str | None
) -> None:
    sender = Router(default=default).client().sender(address, rcv_settle_mode=mode)
    assert sender.attach is not None
    assert sender.attach.rcv_settle_mode == mode


# Every combination.


@pytest.mark.spec("2.7.5-13", "2.7.5-14", "2.8.3-1", "2.8.3-2")
@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: outcome.NAME)
@pytest.mark.parametrize("settles", [True, False], ids=["settles", "tells"])
@pytest.mark.parametrize("rcv", ReceiverSettleMode)
@pytest.mark.parametrize("snd", SenderSettleMode)
@pytest.mark.parametrize(
    ("link", "transfer"),
    # a transfer may not ask for second on a link that is first
    [(FIRST, None), (FIRST, FIRST), (SECOND, None), (SECOND, FIRST), (SECOND, SECOND)],
)
def test_an_outcome_is_settled_as_its_sender_wishes(
    link: ReceiverSettleMode,
    transfer: ReceiverSettleMode | None,
    snd: SenderSettleMode,
    rcv: ReceiverSettleMode,
    settles: bool,
    outcome: Any,
) -> None:
    """Whatever the receiver's modes are, and whether it settles with its outcome or only tells it.

    `link` and `transfer` are what the sender asks for; `snd` and `rcv` the receiver's link's modes.
    """
    router, sender, receiver = two(
        {"rcv_settle_mode": link}, {"rcv_settle_mode": rcv, "snd_settle_mode": snd}
    )
    sending = sender.send(b"x", rcv_settle_mode=transfer)
    if snd == SenderSettleMode.SETTLED:
        # it got the message settled, and that is all it will say
        outcome = Accepted()
        assert receiver.unsettled == {}
    else:
        receiver.settle(outcome, settled=settles)
    assert sending.states == [outcome]
    is_second = link == SECOND and transfer != FIRST
    assert sending.is_over is not is_second
    waits = is_second and not settles and snd != SenderSettleMode.SETTLED
    assert bool(receiver.unsettled) is waits
    if is_second:
        assert not nothing_is_open(router)
        sender.settle(sending, outcome)
    if snd == SenderSettleMode.SETTLED or settles:
        assert told(receiver) is None
    else:
        assert told(receiver) == Disposition(False, 0, 0, True, outcome)
    assert nothing_is_open(router)
    assert counted(router, outcome) == 1
    assert sender.detached is receiver.detached is None


@pytest.mark.parametrize("link", ReceiverSettleMode)
@pytest.mark.parametrize("rcv", ReceiverSettleMode)
@pytest.mark.parametrize("settles", [True, False])
def test_a_sender_may_settle_before_there_is_an_outcome(
    link: ReceiverSettleMode, rcv: ReceiverSettleMode, settles: bool
) -> None:
    router, sender, receiver = two({"rcv_settle_mode": link}, {"rcv_settle_mode": rcv})
    sending = sender.send(b"x")
    sender.settle(sending)
    assert sending.states == []
    assert receiver.unsettled == {}
    assert receiver.received[0].sender_settled == Disposition(False, 0, 0, True)
    # what it says now has crossed that on the way
    receiver.client.dispose([0], Accepted(), settled=settles)
    assert sending.states == []
    assert nothing_is_open(router)


@pytest.mark.parametrize("transfer", [None, FIRST, SECOND])
@pytest.mark.parametrize("link", ReceiverSettleMode)
def test_a_mode_says_nothing_of_what_comes_settled(
    link: ReceiverSettleMode, transfer: ReceiverSettleMode | None
) -> None:
    router, sender, receiver = two({"rcv_settle_mode": link})
    sender.send(b"x", settled=True, rcv_settle_mode=transfer)
    assert receiver.received[0].settled
    assert sender.detached is None
    assert nothing_is_open(router)


def test_neighbours_are_told_with_one_disposition() -> None:
    router, sender, receiver = two()
    for _ in range(5):
        sender.send(b"x")
    heard = len(sender.client.heard)
    receiver.client.dispose([0, 4], Accepted())
    told = [each for each in sender.client.heard[heard:] if isinstance(each, Disposition)]
    assert told == [Disposition(True, 0, 4, False, Accepted())]
    sender.client.say(Disposition(False, 0, 4, settled=True, state=Accepted()))
    assert nothing_is_open(router)
    assert counted(router, Accepted()) == 5


def test_settled_and_unsettled_neighbours_are_told_apart() -> None:
    _, sender, receiver = two()
    sent = [sender.send(b"x", rcv_settle_mode=mode) for mode in (SECOND, FIRST, FIRST, SECOND)]
    receiver.client.dispose([0, 3], Accepted())
    assert all(each.states == [Accepted()] for each in sent)
    assert [each.is_over for each in sent] == [False, True, True, False]


def test_settlements_give_credit_again() -> None:
    """A sender that settles nothing gets none beyond the limit for what is unsettled."""
    _, sender, receiver = two()
    (link,) = [
        each
        for session in sender.client.connection.local_sessions.values()
        for each in session.local_links.values()
    ]
    # as if all but a few had been sent
    link.unsettled = UNSETTLED_LIMIT - 3
    sent = []
    while sender.credit:
        sent.append(sender.send(b"x"))
        receiver.settle()
        receiver.grant(10)
    assert len(sent) < 20
    for each in sent:
        sender.settle(each)
    assert sender.credit


# States that are no outcome of AMQP's own.


@pytest.mark.parametrize("link", ReceiverSettleMode)
def test_states_on_the_way_are_passed_on(link: ReceiverSettleMode) -> None:
    router, sender, receiver = two({"rcv_settle_mode": link})
    sending = sender.send(b"x")
    states = [Received(1, 2), Received(3, 4), MINE, Accepted()]
    for state in states:
        receiver.settle(state, settled=False)
    assert sending.states == states
    assert sending.is_over is (link == FIRST)
    sender.settle(sending)
    assert nothing_is_open(router)


@pytest.mark.parametrize("link", ReceiverSettleMode)
@pytest.mark.parametrize("default", ["balanced", "multicast"])
def test_an_outcome_of_somebody_s_own_is_passed_on(link: ReceiverSettleMode, default: str) -> None:
    router, sender, receiver = two({"rcv_settle_mode": link}, default=default)
    sending = sender.send(b"x")
    receiver.settle(MINE)
    assert sending.states == [MINE]
    assert sending.is_over is (link == FIRST)
    if link == SECOND:
        sender.settle(sending, MINE)
    assert nothing_is_open(router)


@pytest.mark.parametrize("link", ReceiverSettleMode)
def test_an_outcome_of_somebody_s_own_reaches_a_sender_that_does_not_read(
    link: ReceiverSettleMode,
) -> None:
    """What is told before a full socket is dropped, for that may be said again and again."""
    _, sender, receiver = two({"rcv_settle_mode": link})
    sent = [sender.send(b"x") for _ in range(3)]
    connection = sender.client.connection
    sender.client.read(reads=False)
    while not connection.outbox.congested:
        news = Described(Symbol("x:news:list"), ["." * 50000])
        receiver.client.dispose([0], news, settled=False)
    filled = connection.outbox.output.size()
    for _ in range(100):
        receiver.client.dispose([1, 2], Received(1, 2), settled=False)
    for _ in range(100):
        receiver.client.dispose([1, 2], MINE, settled=False)
    assert connection.outbox.output.size() - filled < 200
    sender.client.read()
    assert [each.states for each in sent[1:]] == [[MINE], [MINE]]


@pytest.mark.spec("3.4.1-1")
def test_received_of_a_sender_goes_no_further() -> None:
    """It is for deliveries that are resumed, and for their transfers (section 3.4.1)."""
    _, sender, receiver = two()
    sending = sender.send(b"x")
    sender.client.say(Disposition(False, 0, state=Received(0, 0)))
    assert told(receiver) is None
    sender.client.say(Disposition(False, 0, state=MINE))
    assert told(receiver) == Disposition(False, 0, 0, False, MINE)
    sender.client.say(Disposition(False, 0, settled=True, state=Received(0, 0)))
    assert told(receiver) == Disposition(False, 0, 0, True)
    assert sending.states == []


# Without a word.


@pytest.mark.parametrize("state", [None, Received(0, 0)])
def test_what_is_settled_without_an_outcome_is_lost(state: Any) -> None:
    router, sender, receiver = two()
    sending = sender.send(b"x")
    receiver.client.say(Disposition(True, 0, settled=True, state=state))
    assert sending.states == [FAILED]
    assert not sending.is_over
    sender.settle(sending)
    assert nothing_is_open(router)


def test_what_is_settled_without_an_outcome_has_the_default() -> None:
    router, sender, receiver = two(
        {}, {"source": Source("q", default_outcome=Rejected()), "rcv_settle_mode": SECOND}
    )
    sent = [sender.send(b"x") for _ in range(2)]
    receiver.client.say(Disposition(True, 0, settled=True))
    receiver.client.lose()
    assert [each.states for each in sent] == [[Rejected()]] * 2
    for each in sent:
        sender.settle(each)
    assert nothing_is_open(router)


@pytest.mark.parametrize("state", [None, Accepted()])
def test_a_receiver_that_does_not_wait_for_its_settlement_does_no_harm(state: Any) -> None:
    router, sender, receiver = two()
    sending = sender.send(b"x")
    receiver.settle(Accepted(), settled=False)
    receiver.client.say(Disposition(True, 0, settled=True, state=state))
    assert sending.states == [Accepted()]
    sender.settle(sending)
    assert nothing_is_open(router)
    assert counted(router, Accepted()) == 1


# One that contradicts itself.


@pytest.mark.spec("B2.3.5-1", "3.4-1")
@pytest.mark.parametrize("settled", [True, False])
def test_a_second_outcome_that_contradicts_the_first_costs_the_link(settled: bool) -> None:
    router, sender, receiver = two()
    sending = sender.send(b"x")
    receiver.settle(Accepted(), settled=False)
    receiver.client.dispose([0], Rejected(), settled=settled)
    assert receiver.detached is not None
    assert receiver.detached.error is not None
    assert receiver.detached.error.condition == "amqp:illegal-state"
    assert sending.states == [Accepted()]
    sender.settle(sending)
    assert nothing_is_open(router)
    assert counted(router, Accepted()) == 1
    assert counted(router, Rejected()) == 0


@pytest.mark.spec("3.4-1")
@pytest.mark.parametrize("settled", [True, False])
def test_nobody_hears_of_an_outcome_that_is_settled_already(settled: bool) -> None:
    """With a sender that settles second to nobody, the first outcome is the last word at once."""
    router, sender, receiver = two({"rcv_settle_mode": FIRST})
    sending = sender.send(b"x")
    receiver.settle(Accepted(), settled=False)
    receiver.client.dispose([0], Rejected(), settled=settled)
    assert receiver.detached is None
    assert sending.states == [Accepted()]
    assert nothing_is_open(router)


# The router's own word.


def test_what_nobody_receives_is_released_and_settled_second() -> None:
    router = Router()
    sender = router.client().sender(None, rcv_settle_mode=SECOND)
    sending = sender.send(to_section("nowhere"))
    assert sending.states == [Released()]
    assert not sending.is_over
    assert not nothing_is_open(router)
    sender.settle(sending, Released())
    assert nothing_is_open(router)


def test_what_is_no_message_is_rejected_and_settled_second() -> None:
    router, sender, _ = two()
    sending = sender.send(b"\0\x53\x70\x50", message_format=0)
    assert sending.states == [rejected("amqp:decode-error")]
    sender.settle(sending)
    assert nothing_is_open(router)


def test_what_expires_is_rejected_and_settled_second() -> None:
    router = Router()
    receiver = router.client().receiver("q", 1)
    sender = router.client().sender("q", rcv_settle_mode=SECOND)
    receiver.grant(0)
    sending = sender.send(TTL_100_MS)
    router.wait(0.2)
    assert sending.states == [rejected("trioute:expired")]
    sender.settle(sending)
    assert nothing_is_open(router)
    receiver.grant(1)
    assert receiver.received == []


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("how", ["detach", "lose", "end"])
def test_a_receiver_that_is_lost_leaves_it_to_the_sender_to_settle(how: str, told: bool) -> None:
    router, sender, receiver = two()
    sending = sender.send(b"x")
    if told:
        receiver.settle(Accepted(), settled=False)
    getattr(receiver if how == "detach" else receiver.client, how)()
    outcome = Accepted() if told else FAILED
    assert sending.states == [outcome]
    assert not sending.is_over
    sender.settle(sending)
    assert nothing_is_open(router)
    assert counted(router, outcome) == 1


def test_what_waits_when_its_receiver_goes_is_released_and_settled_second() -> None:
    router = Router()
    receiver = router.client().receiver("q", 1)
    sender = router.client().sender("q", rcv_settle_mode=SECOND)
    receiver.grant(0)
    sending = sender.send(b"x")
    receiver.detach()
    assert sending.states == [Released()]
    sender.settle(sending)
    assert nothing_is_open(router)


@pytest.mark.parametrize("settles", [True, False])
@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("how", ["detach", "lose", "end"])
def test_a_sender_that_is_lost_settles_nothing_more(how: str, told: bool, settles: bool) -> None:
    router, sender, receiver = two()
    sender.send(b"x")
    if told:
        receiver.settle(Accepted(), settled=settles)
    getattr(sender if how == "detach" else sender.client, how)()
    if not told:
        assert list(receiver.unsettled) == [0]
        receiver.settle(Accepted(), settled=settles)
    assert receiver.unsettled == {}
    assert nothing_is_open(router)
    assert counted(router, Accepted()) == 1


def test_what_was_given_up_while_it_was_sent_is_settled_second() -> None:
    """What the receiver says of its half is for nobody any more; it gets the abort."""
    router = Router(limit_bytes=20000)
    receiver = router.client(window=1).receiver("q", 5)
    sender = router.client().sender("q", rcv_settle_mode=SECOND)
    sending = sender.send(b"x", more=True)
    while not sending.states:
        sender.go_on(b"." * 5000, more=True)
    assert sending.states == [FAILED]
    receiver.client.dispose([0], Accepted(), settled=False)
    sender.settle(sending)
    receiver.client.open_window(10)
    assert sending.states == [FAILED]
    assert receiver.received[0].aborted
    sender.go_on(b"")
    assert nothing_is_open(router)


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("settles", [True, False])
def test_a_stolen_sender_is_told_once(told: bool, settles: bool) -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    old = router.client(container="c").sender("q", name="s", rcv_settle_mode=SECOND)
    sending = old.send(b"x")
    if told:
        receiver.settle(Accepted(), settled=settles)
    router.client(container="c").sender("q", name="s", rcv_settle_mode=SECOND)
    assert old.detached is not None
    assert sending.states == [Accepted() if told else FAILED]
    receiver.settle(Accepted(), settled=settles)
    assert nothing_is_open(router)


# Several receivers.


@pytest.mark.parametrize("settles", [True, False])
def test_a_multicast_is_settled_second_towards_its_sender_alone(settles: bool) -> None:
    router = Router(default="multicast")
    receivers = [
        router.client().receiver("q", 5, rcv_settle_mode=mode) for mode in ReceiverSettleMode
    ]
    sender = router.client().sender("q", rcv_settle_mode=SECOND)
    sending = sender.send(b"x")
    receivers[0].settle(Released(), settled=settles)
    assert sending.states == []
    receivers[1].settle(Accepted(), settled=settles)
    assert sending.states == [Accepted()]
    assert all(each.unsettled == {} for each in receivers)
    assert not sending.is_over
    sender.settle(sending)
    assert nothing_is_open(router)


def test_a_multicast_that_its_sender_settles_early() -> None:
    router = Router(default="multicast")
    receivers = [router.client().receiver("q", credit) for credit in (5, 1)]
    sender = router.client().sender("q", rcv_settle_mode=SECOND)
    receivers[1].grant(0)
    sending = sender.send(b"x")
    sender.settle(sending)
    receivers[1].grant(1)
    assert receivers[0].unsettled == receivers[1].unsettled == {}
    assert receivers[1].received[0].settled
    assert nothing_is_open(router)


@pytest.mark.parametrize("settles", [True, False])
def test_what_is_given_back_is_offered_to_another_before_its_sender_hears_of_it(
    settles: bool,
) -> None:
    router = Router()
    receivers = [router.client().receiver("q", 5, rcv_settle_mode=SECOND) for _ in range(2)]
    sender = router.client().sender("q", rcv_settle_mode=SECOND)
    sending = sender.send(b"x")
    (one,) = [each for each in receivers if each.received]
    (other,) = [each for each in receivers if each is not one]
    one.settle(Released(), settled=settles)
    assert one.unsettled == {}
    assert sending.states == []
    other.settle(Accepted(), settled=settles)
    assert sending.states == [Accepted()]
    assert not sending.is_over
    sender.settle(sending)
    assert other.unsettled == {}
    assert nothing_is_open(router)


# The sender's state, told with a transfer.


@pytest.mark.spec("2.7.5-16")
@pytest.mark.parametrize("more", [True, False])
@pytest.mark.parametrize(
    ("default", "waits", "settled"),
    [
        each
        for each in itertools.product(["balanced", "multicast"], [True, False], [True, False])
        # which would be dropped (docs/decisions/0007)
        if each != ("multicast", True, True)
    ],
)
@pytest.mark.parametrize("state", [MINE, Accepted()])
def test_a_state_goes_on_with_the_first_transfer(
    state: Any, waits: bool, default: str, settled: bool, more: bool
) -> None:
    _, sender, receiver = two(default=default)
    if waits:
        receiver.grant(0)
    sender.send(b"x", state=state, settled=settled, more=more)
    if more:
        sender.go_on(b"y")
    receiver.grant(5)
    (received,) = receiver.received
    assert received.state == state
    assert received.settled is settled
    assert received.payload == (b"xy" if more else b"x")


# Transactions, which the router's own addresses take no part in; more in `engine`.


def is_refused(link: SendingLink | ReceivingLink) -> bool:
    """Whether a link was detached since it cannot be in a transaction."""
    if link.detached is None:
        return False
    assert link.detached.error is not None
    assert link.detached.error.condition == "amqp:not-implemented"
    return True


@pytest.mark.spec("B3-4")
@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("default", ["balanced", "multicast"])
def test_nobody_gets_what_is_sent_in_a_transaction(default: str, settled: bool) -> None:
    router, sender, receiver = two({"rcv_settle_mode": FIRST}, default=default)
    other = sender.client.sender("q")
    sender.send(b"x", state=TransactionalState(b"t"), settled=settled)
    assert is_refused(sender)
    assert receiver.received == []
    sending = other.send(b"y")
    receiver.settle(Accepted())
    assert sending.outcome == Accepted()
    assert nothing_is_open(router)


@pytest.mark.spec("B3-4")
@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("default", ["balanced", "multicast"])
def test_no_sender_hears_an_outcome_that_is_in_a_transaction(default: str, settled: bool) -> None:
    router, sender, receiver = two({"rcv_settle_mode": FIRST}, default=default)
    sent = [sender.send(b"x") for _ in range(3)]
    state = TransactionalState(b"t", Accepted())
    receiver.client.say(Disposition(True, 0, 1, settled, state))
    assert is_refused(receiver)
    # of none of them an outcome has come
    assert [each.outcome for each in sent] == [Modified(delivery_failed=True)] * 3
    assert nothing_is_open(router)


def test_nothing_is_sent_to_who_wants_it_in_a_transaction() -> None:
    router, sender, receiver = two({"rcv_settle_mode": FIRST})
    receiver.grant(0)
    sending = sender.send(b"x")
    properties = {Symbol("txn-id"): b"t"}
    flow = receiver.client.flow(
        handle=receiver.handle, delivery_count=0, link_credit=5, properties=properties
    )
    receiver.client.say(flow)
    assert is_refused(receiver)
    assert receiver.received == []
    assert sending.outcome == Released()
    assert nothing_is_open(router)


def test_what_a_sender_says_of_what_waits_goes_with_its_transfer() -> None:
    router, sender, receiver = two()
    receiver.grant(0)
    sending = sender.send(b"x")
    sender.client.say(Disposition(False, sending.number, state=Released()))
    sender.client.say(Disposition(False, sending.number, state=MINE))
    receiver.grant(1)
    assert receiver.received[0].state == MINE
    receiver.grant(0)
    sender.settle(sender.send(b"x"), Modified(True))
    receiver.grant(1)
    assert receiver.received[1].state == Modified(True)
    assert receiver.received[1].settled
    receiver.settle()
    sender.settle(sending)
    assert nothing_is_open(router)


LARGE = "x" * 600


@pytest.mark.parametrize(
    ("state", "kept"),
    [
        (Described(ULong(0x99), LARGE), None),
        (Rejected(error=Error(Symbol("amqp:internal-error"), LARGE)), Rejected()),
        (Modified(True, message_annotations={Symbol("a"): LARGE}), Modified()),
    ],
)
@pytest.mark.parametrize("is_told_first", [True, False])
def test_of_a_large_state_of_what_waits_little_is_kept(
    state: Any, kept: Any, is_told_first: bool
) -> None:
    _, sender, receiver = two()
    receiver.grant(0)
    sending = sender.send(b"x", state=state if is_told_first else None)
    if not is_told_first:
        sender.client.say(Disposition(False, sending.number, state=state))
    waiting = sender.client.connection.local_sessions[0].incoming.find(sending.number)
    assert waiting is not None
    assert len(waiting.state or b"") <= MAX_KEPT_BYTES
    receiver.grant(1)
    assert receiver.received[0].state == kept


@pytest.mark.spec("2.7.5-16")
def test_a_later_transfer_s_state_is_told_before_it() -> None:
    _, sender, receiver = two()
    sender.send(b"x", more=True)
    sender.go_on(b"y", state=MINE)
    assert told(receiver) == Disposition(False, 0, 0, False, MINE)
    assert receiver.take() == b"xy"


def test_whoever_gets_it_next_is_told_the_state_too() -> None:
    router = Router()
    receivers = [router.client().receiver("q", 5) for _ in range(2)]
    router.client().sender("q").send(b"x", state=MINE)
    for each in receivers:
        each.settle(Released())
    assert [received.state for each in receivers for received in each.received] == [MINE, MINE]
