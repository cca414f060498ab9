"""Counters of delivery outcomes at links and addresses, which agree with those the clients saw."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.amqp.constants import ReceiverSettleMode, SenderSettleMode, TerminusExpiryPolicy
from router.amqp.message import Data, Message, Properties, encode_message
from router.amqp.performatives import Accepted, Modified, Rejected, Released, Target
from router.core.model.counters import Counters
from router.core.model.histogram import BOUNDS_S
from router.engine.link import Link

from support.examples import examples
from support.in_memory import ReceivingLink, Router, Sending, SendingLink
from support.pairs import pair, several

STATES = [Accepted(), Rejected(), Released(), Modified(delivery_failed=True)]
NAMES = {Accepted: "accepted", Rejected: "rejected", Released: "released", Modified: "modified"}
TO_NOBODY = encode_message(Message(properties=Properties(to="nobody"), body=(Data(b"x"),)))


def link_of(ours: SendingLink | ReceivingLink) -> Link:
    """Return the router's end of a client's link."""
    (session,) = ours.client.connection.local_sessions.values()
    (link,) = [each for each in session.local_links.values() if each.name == ours.name]
    assert isinstance(link, Link)
    return link


def outcomes_of(counts: Any, prefix: str = "") -> dict[str, int]:
    """Those that have been counted, by name."""
    found = {name: int(getattr(counts, prefix + name)) for name in NAMES.values()}
    return {name: count for name, count in found.items() if count}


def spread(counters: Counters, which: str) -> list[int]:
    """How many took how long, for each bound."""
    histogram = getattr(counters, which)
    return [0] * (len(BOUNDS_S) + 1) if histogram is None else list(histogram.counts())


@pytest.mark.parametrize("state", STATES)
def test_both_links_and_the_address_count_an_outcome(state: Any) -> None:
    router, sender, receiver = pair(10)
    for _ in range(3):
        sender.send(b"x")
    receiver.settle(state)
    name = NAMES[type(state)]
    for link in (link_of(sender), link_of(receiver)):
        assert (link.deliveries, link.presettled, link.unsettled) == (3, 0, 0)
        assert outcomes_of(link) == {name: 3}
    total = router.table.total()
    assert outcomes_of(total) == outcomes_of(total, "told_") == {name: 3}


def test_a_range_of_many_is_one_run_and_ends_with_its_turn() -> None:
    router, sender, receiver = pair(10)
    for _ in range(4):
        sender.send(b"x")
    ids = list(receiver.unsettled)
    receiver.unsettled.clear()
    receiver.client.dispose(ids)
    assert outcomes_of(link_of(sender)) == {"accepted": 4}
    run = router.forwarder.outcomes
    assert (run.count, run.incoming, run.outgoing, run.address) == (0, None, None, None)


def test_a_run_ends_before_a_link_goes() -> None:
    router, sender, receiver = pair(10)
    sender.send(b"x")
    receiver.settle()
    sender.detach()
    receiver.detach()
    assert len(router.table) == 0
    assert outcomes_of(router.table.retired, "told_") == {"accepted": 1}


def test_a_settled_delivery_has_no_outcome() -> None:
    router, sender, receiver = pair(10)
    sender.send(b"x", settled=True)
    for link in (link_of(sender), link_of(receiver)):
        assert (link.deliveries, link.presettled) == (1, 1)
        assert outcomes_of(link) == {}
    assert outcomes_of(router.table.total(), "told_") == {}


def test_a_receiver_that_takes_all_settled_speaks_to_the_sender_only() -> None:
    _, sender, (receiver,) = several("balanced", [5], snd_settle_mode=SenderSettleMode.SETTLED)
    sender.send(b"x")
    assert (link_of(receiver).presettled, outcomes_of(link_of(receiver))) == (1, {})
    assert (link_of(sender).presettled, outcomes_of(link_of(sender))) == (0, {"accepted": 1})


def test_a_multicast_is_told_once_and_counted_by_each_receiver() -> None:
    router, sender, receivers = several("multicast", [5, 5])
    sender.send(b"x")
    receivers[0].settle(Released())
    assert outcomes_of(link_of(sender)) == {}
    receivers[1].settle(Rejected())
    assert outcomes_of(link_of(sender)) == {"rejected": 1}
    assert [outcomes_of(link_of(each)) for each in receivers] == [{"released": 1}, {"rejected": 1}]
    total = router.table.total()
    assert outcomes_of(total) == {"released": 1, "rejected": 1}
    assert outcomes_of(total, "told_") == {"rejected": 1}


def test_a_multicast_that_is_dropped_for_one_is_counted_at_it() -> None:
    router = Router(default="multicast")
    receivers = [router.client(window=window).receiver("q", 5) for window in (10, 1)]
    sender = router.client().sender("q")
    for _ in range(2):
        sender.send(b"x", settled=True)
    assert link_of(receivers[0]).dropped_presettled == 0
    assert link_of(receivers[1]).dropped_presettled == 1
    assert link_of(sender).dropped_presettled == 0


@pytest.mark.parametrize("settled", [False, True])
def test_what_is_for_nobody_is_released_or_dropped(settled: bool) -> None:
    router = Router()
    sender = router.client().sender(None)
    sender.send(TO_NOBODY, settled=settled)
    link = link_of(sender)
    assert (link.deliveries, link.presettled, link.dropped_presettled) == (1, settled, settled)
    assert outcomes_of(link) == ({} if settled else {"released": 1})


@pytest.mark.parametrize("settled", [False, True])
def test_what_has_no_address_is_rejected_or_dropped(settled: bool) -> None:
    router = Router()
    sender = router.client().sender(None)
    sender.send(b"no address", settled=settled)
    link = link_of(sender)
    assert (link.presettled, link.dropped_presettled) == (settled, settled)
    expected = {} if settled else {"rejected": 1}
    assert outcomes_of(link) == outcomes_of(router.table.total(), "told_") == expected


def test_drained_credit_is_no_delivery() -> None:
    router, sender, receiver = pair(10)
    sender.send(b"x")
    receiver.grant(5, drain=True)
    router.wait(1)
    assert receiver.drained == 5
    sender.give_back()
    assert (link_of(receiver).deliveries, link_of(sender).deliveries) == (1, 1)
    assert link_of(receiver).delivery_count == 6


def test_what_is_offered_again_is_counted_by_both_receivers() -> None:
    _, sender, (first, second) = several("balanced", [5, 5])
    sending = sender.send(b"x")
    (giver, taker) = (first, second) if first.received else (second, first)
    giver.settle(Released())
    taker.settle()
    assert sending.outcome == Accepted()
    assert outcomes_of(link_of(sender)) == {"accepted": 1}
    assert outcomes_of(link_of(giver)) == {"released": 1}
    assert outcomes_of(link_of(taker)) == {"accepted": 1}


def test_a_lost_receiver_leaves_what_the_sender_is_told() -> None:
    _, sender, receiver = pair(10)
    sender.send(b"x")
    receiver.client.lose()
    assert outcomes_of(link_of(sender)) == {"modified": 1}


def test_a_lost_sender_is_told_nothing() -> None:
    router, sender, receiver = pair(10)
    sender.send(b"x")
    link = link_of(sender)
    sender.client.lose()
    receiver.settle()
    assert outcomes_of(link) == outcomes_of(router.table.total(), "told_") == {}
    assert outcomes_of(link_of(receiver)) == {"accepted": 1}


def test_a_stolen_link_begins_anew_and_the_old_one_has_had_its_outcomes() -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    old = router.client(container="c", user="u").sender("q", name="s")
    old.send(b"x")
    link = link_of(old)
    assert link.deliveries == 1
    thief = router.client(container="c", user="u").sender("q", name="s")
    assert old.detached is not None
    # what its receiver had is told as lost, before the link goes
    assert outcomes_of(link) == {"modified": 1}
    thief.send(b"y")
    receiver.settle()
    assert (link_of(thief).deliveries, outcomes_of(link_of(thief))) == (1, {"accepted": 1})
    assert outcomes_of(router.table.total(), "told_") == {"accepted": 1, "modified": 1}
    assert (link_of(receiver).deliveries, link_of(receiver).unsettled) == (2, 0)


def test_a_suspended_sender_s_outcome_counts_when_it_is_told() -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    target = Target(address="q", expiry_policy=TerminusExpiryPolicy.NEVER, timeout=60)
    sender = router.client(container="c").sender("q", name="s", target=target)
    sending = sender.send(b"x", tag=b"x")
    sender.client.lose()
    receiver.settle(Rejected())
    assert outcomes_of(link_of(receiver)) == {"rejected": 1}
    assert outcomes_of(router.table.total(), "told_") == {}
    again = router.client(container="c").sender(
        "q", name="s", target=target, unsettled={b"x": None}
    )
    resumed = again.send(b"", tag=b"x", resume=True, message_format=0)
    assert (resumed.outcome, sending.outcome) == (Rejected(), None)
    assert outcomes_of(link_of(again)) == {"rejected": 1}
    assert outcomes_of(router.table.total(), "told_") == {"rejected": 1}


# How long it took.


@pytest.mark.parametrize(
    ("age_s", "one", "ten"), [(1.0, 0, 0), (1.5, 1, 0), (10.0, 1, 0), (11, 0, 1)]
)
@pytest.mark.parametrize("default", ["balanced", "multicast"])
def test_late_outcomes_are_delayed_for_both_links(
    age_s: float, one: int, ten: int, default: str
) -> None:
    router, sender, receiver = pair(10, default=default)
    sender.send(b"x")
    router.wait(age_s)
    receiver.settle()
    for counts in (link_of(sender), link_of(receiver), router.table.total()):
        assert (counts.delayed_1s, counts.delayed_10s) == (one, ten)
    (bound,) = [
        at for at, count in enumerate(spread(router.table.total(), "settle_latency")) if count
    ]
    assert BOUNDS_S[bound - 1] < age_s <= BOUNDS_S[bound]


def test_settled_deliveries_that_had_to_wait_are_delayed() -> None:
    router, sender, receiver = pair(3, window=1)
    sender.send(b"x", settled=True)
    sender.send(b"y", settled=True)
    router.wait(2)
    receiver.client.open_window(5)
    assert len(receiver.received) == 2
    for counts in (link_of(sender), link_of(receiver), router.table.total()):
        assert (counts.delayed_1s, counts.delayed_10s) == (1, 0)
    total = router.table.total()
    assert total.forward_latency is not None
    assert total.forward_latency.sum_s == pytest.approx(2)
    assert sum(total.forward_latency.counts()) == 2


def test_what_passes_at_once_takes_as_long_as_its_turn() -> None:
    router, sender, receiver = pair(10)
    sender.send(b"x")
    before = spread(router.table.total(), "forward_latency")
    assert sum(before) == before[0] == 1
    forwarder = router.forwarder
    address = router.table.in_use("q")
    assert address is not None
    # a turn of which two deliveries left at once, and that took three milliseconds
    address.is_active, address.egress_mark = True, address.counters.egress
    forwarder.relay.active_addresses.append(address)
    address.counters.egress += 2
    forwarder.sent(router.turn.now + 0.003)
    after = spread(router.table.total(), "forward_latency")
    assert after[BOUNDS_S.index(5e-3)] == 2
    assert (address.is_active, forwarder.relay.active_addresses) == (False, [])
    assert receiver.take() == b"x"


def test_what_left_an_address_that_is_gone_is_counted_all_the_same() -> None:
    router, sender, receiver = pair(10)
    address = router.table.in_use("q")
    assert address is not None
    sender.send(b"x")
    address.is_active, address.egress_mark = True, 0
    router.forwarder.relay.active_addresses.append(address)
    sender.detach()
    receiver.detach()
    assert address.successor is router.table.retired
    assert sum(spread(router.table.retired, "forward_latency")) == 2


# Whatever they do.

ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["send", "settled", "more", "abort", "settle", "grant", "drain", "wait"]),
        st.integers(0, 3),
    ),
    max_size=60,
)


@examples(60)
@given(
    ACTIONS,
    st.sampled_from(["balanced", "closest", "multicast"]),
    st.sampled_from([ReceiverSettleMode.FIRST, ReceiverSettleMode.SECOND]),
)
def test_links_count_what_their_clients_saw(
    actions: list[tuple[str, int]], default: str, mode: ReceiverSettleMode
) -> None:
    router = Router(default=default)
    senders = [router.client().sender("q", rcv_settle_mode=mode) for _ in range(2)]
    receivers = [router.client().receiver("q", 5) for _ in range(2)]
    sendings: list[Sending] = []
    said: dict[str, Counter[str]] = {str(id(each)): Counter() for each in receivers}
    for word, number in actions:
        sender, receiver = senders[number % 2], receivers[number % 2]
        if word in ("send", "settled", "more") and sender.can_send():
            sendings.append(sender.send(b"x", settled=word == "settled", more=word == "more"))
        elif word == "abort" and sender.current is not None and sender.client.router_window > 0:
            sender.abort()
        elif word == "settle":
            state = STATES[number]
            said[str(id(receiver))][NAMES[type(state)]] += sum(
                each.complete for each in receiver.unsettled.values()
            )
            receiver.settle(state)
        elif word in ("grant", "drain"):
            receiver.grant(number + 1, drain=word == "drain")
        elif word == "wait":
            router.wait(number)
        # who settles second does so as soon as it has an outcome
        for sending in sendings:
            told = [state for state in sending.states if type(state) in NAMES]
            if sending.settles_second and told and not sending.is_over:
                sending.link.settle(sending, told[-1])
                sending.outcome = told[-1]
    for sender in senders:
        mine = [each for each in sendings if each.link is sender]
        link = link_of(sender)
        assert link.deliveries == len(mine)
        assert link.presettled == sum(each.settled for each in mine)
        outcomes = Counter(NAMES[type(each.outcome)] for each in mine if each.outcome is not None)
        assert outcomes_of(link) == dict(outcomes)
    for receiver in receivers:
        link = link_of(receiver)
        assert link.deliveries == len(receiver.received)
        first = [each.first for each in receiver.received]
        assert link.presettled == sum(bool(each and each.settled) for each in first)
        assert outcomes_of(link) == {name: n for name, n in said[str(id(receiver))].items() if n}
    total = router.table.total()
    every: Counter[str] = Counter()
    for sender in senders:
        every.update(outcomes_of(link_of(sender)))
    assert outcomes_of(total, "told_") == dict(every)
    assert sum(spread(total, "forward_latency")) == total.egress - total.redelivered
    assert sum(spread(total, "settle_latency")) == every.total()
