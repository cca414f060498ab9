"""Messages without a receiver go to the fallback address and back, in order and without loss."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from router.amqp.message import Header, decode_message
from router.amqp.performatives import Accepted, Modified, Rejected, Released
from router.core.addresses.rules import AddressRule
from router.core.addresses.table import AddressTable
from router.core.deliveries import fallbacks
from router.core.deliveries.router_annotations import PHASE
from router.core.forwarding.rule_updates import RuleUpdater
from router.core.model.address import FALLBACK

from support.examples import examples
from support.in_memory import ReceivingLink, Router, Sending, SendingLink
from support.waypoints import message, out_of, texts

RULE = AddressRule(True, "q", "balanced", fallback=True)


def test_a_message_that_nobody_receives_goes_to_the_fallback() -> None:
    router = Router([RULE])
    rest = out_of(router.client(), "qd.fallback")
    sender = router.client().sender("q")
    sending = sender.send(message("m"))
    assert texts(rest) == ["m"]
    assert sending.states == []
    rest.settle(Rejected())
    assert sending.outcome == Rejected()
    primary, fallback = router.table.in_use("q"), router.table.in_use("q", FALLBACK)
    assert primary is not None
    assert fallback is not None
    assert (primary.counters.ingress, primary.counters.redirected) == (1, 1)
    assert (fallback.counters.ingress, fallback.counters.egress) == (0, 1)
    assert (primary.counters.egress, router.table.total().redirected) == (0, 1)


def stalled(router: Router, credit: int = 100) -> ReceivingLink:
    """Return a receiver that has credit but takes one message until its window opens."""
    return router.client(window=1).receiver("q", credit)


def stalled_fallback(router: Router, credit: int = 100) -> ReceivingLink:
    """Return a fallback that has credit but takes one message until its window opens."""
    return out_of(router.client(window=1), "qd.fallback", credit=credit)


def test_one_who_receives_comes_before_the_fallback() -> None:
    router = Router([RULE])
    rest = out_of(router.client(), "qd.fallback")
    receiver = stalled(router)
    sender = router.client().sender("q")
    sender.send(message("m"))
    assert texts(receiver) == ["m"]
    # it can take nothing at the moment, and is there all the same
    sender.send(message("n"))
    assert rest.received == []
    receiver.detach()
    assert texts(rest) == ["n"]


def test_without_a_rule_a_fallback_gets_nothing() -> None:
    router = Router()
    rest = out_of(router.client(), "qd.fallback")
    relay = router.client().sender(None)
    assert relay.send(message("m", "q")).outcome == Released()
    assert rest.received == []


def test_anonymous_senders_reach_the_fallback_of_an_address_that_nobody_uses() -> None:
    router = Router([RULE])
    rest = out_of(router.client(shows_annotations=True), "qd.fallback", "q/x")
    relay = router.client().sender(None)
    sending = relay.send(message("m", "q/x"))
    assert texts(rest) == ["m"]
    rest.settle()
    assert sending.outcome == Accepted()
    rest.detach()
    assert list(router.table.addresses()) == []
    assert relay.send(message("m", "q/x")).outcome == Released()


def test_the_annotations_say_that_it_went_to_the_fallback() -> None:
    router = Router([RULE])
    rest = out_of(router.client(shows_annotations=True), "qd.fallback")
    router.client().sender("q").send(message("m"))
    shown = decode_message(rest.take()).message_annotations
    assert shown is not None
    assert (shown["x-opt-qd.to"], shown[PHASE]) == ("q", FALLBACK)


def test_what_waits_goes_to_the_fallback_in_order_when_the_last_receiver_leaves() -> None:
    router = Router([RULE])
    rest = out_of(router.client(), "qd.fallback")
    receivers = [stalled(router) for _ in range(2)]
    sender = router.client().sender("q")
    sent = [sender.send(message(str(number))) for number in range(5)]
    receivers[0].detach()
    address = router.table.in_use("q")
    assert address is not None
    assert address.waiting.count == 3
    assert rest.received == []
    receivers[1].detach()
    assert address.waiting.count == 0
    assert texts(rest) == ["2", "3", "4"]
    assert address.counters.redirected == 3
    rest.settle()
    # what had been sent is as of any receiver that is lost
    assert [type(each.outcome) for each in sent] == [Modified] * 2 + [Accepted] * 3


def test_what_waits_at_the_fallback_comes_back_in_order() -> None:
    router = Router([RULE])
    rest = stalled_fallback(router)
    sender = router.client().sender("q")
    for text in ("0", "1", "2"):
        sender.send(message(text))
    assert texts(rest) == ["0"]
    receiver = router.client().receiver("q", credit=5)
    sender.send(message("3"))
    assert texts(receiver) == ["1", "2", "3"]
    rest.client.open_window()
    assert texts(rest) == ["0"]


def test_a_message_that_is_half_come_changes_sides() -> None:
    router = Router([RULE])
    rest = stalled_fallback(router)
    sender = router.client().sender("q")
    sender.send(message("0"))
    octets = message("x" * 100)
    sending = sender.send(octets[:20], more=True)
    receiver = router.client().receiver("q")
    sender.go_on(octets[20:60], more=True)
    receiver.detach()
    rest.client.open_window(10)
    sender.go_on(octets[60:])
    assert texts(rest) == ["0", "x" * 100]
    rest.settle()
    assert sending.outcome == Accepted()


@pytest.mark.spec("2.6.14-2", "2.7.5-20")
def test_an_aborted_message_is_taken_from_where_it_waits() -> None:
    router = Router([RULE])
    rest = stalled_fallback(router)
    sender = router.client().sender("q")
    sender.send(message("0"))
    sender.send(message("x" * 100)[:20], more=True)
    sender.abort()
    assert all(not each.waiting for each in router.table.addresses())
    assert router.forwarder.backlog.held_bytes == 0
    rest.client.open_window()
    assert texts(rest) == ["0"]


def test_the_last_of_the_fallback_s_receivers_leaves_as_any_does() -> None:
    router = Router([RULE])
    rest = stalled_fallback(router)
    sender = router.client().sender("q")
    sent = [sender.send(message("0")), sender.send(message("1"))]
    rest.detach()
    assert isinstance(sent[0].outcome, Modified)
    assert sent[1].outcome == Released()
    assert sender.drain


def test_the_receiver_and_the_fallback_of_one_connection_are_lost_together() -> None:
    router = Router([RULE])
    both = router.client(window=1)
    receiver, rest = both.receiver("q", credit=100), out_of(both, "qd.fallback")
    sender = router.client().sender("q")
    sent = [sender.send(message("0")), sender.send(message("1"))]
    assert (len(receiver.received), len(rest.received)) == (1, 0)
    both.lose()
    assert isinstance(sent[0].outcome, Modified)
    # it was sent to nobody
    assert sent[1].outcome == Released()


def test_multicast_goes_to_one_of_the_fallback_s_receivers() -> None:
    router = Router([AddressRule(True, "q", "multicast", fallback=True)])
    rests = [out_of(router.client(), "qd.fallback") for _ in range(2)]
    sender = router.client().sender("q")
    sending = sender.send(message("m"))
    assert sorted(texts(rests[0]) + texts(rests[1])) == ["m"]
    for each in rests:
        each.settle()
    assert sending.outcome == Accepted()
    receivers = [router.client().receiver("q", credit=1) for _ in range(2)]
    sender.send(message("n"))
    assert [texts(each) for each in receivers] == [["n"], ["n"]]


def test_a_settled_message_goes_there_too() -> None:
    router = Router([RULE])
    rest = out_of(router.client(), "qd.fallback")
    router.client().sender("q").send(message("m"), settled=True)
    assert texts(rest) == ["m"]
    assert rest.received[0].settled


def test_what_expires_goes_to_the_fallback_of_the_dead_letter_address() -> None:
    router = Router([AddressRule(False, "p", "balanced", dead_letter="q"), RULE])
    rest = out_of(router.client(), "qd.fallback")
    router.client(window=1).receiver("p", 100)
    sender = router.client().sender("p")
    sender.send(message("first"))
    sender.send(message("late", header=Header(ttl=100)))
    router.wait(0.2)
    assert texts(rest) == ["late"]


@pytest.mark.parametrize("is_there", [False, True])
def test_a_rule_that_comes_and_goes_under_traffic(is_there: bool) -> None:
    plain = AddressRule(True, "q", "balanced")
    router = Router([plain])
    treating = RuleUpdater(router.forwarder)
    sender = router.client().sender("q") if is_there else None
    rest = out_of(router.client(), "qd.fallback")
    treating.change_rules([plain], [RULE], "balanced")
    router.finish_turn()
    sender = sender or router.client().sender("q")
    assert sender.credit == 10
    sender.send(message("m"))
    assert texts(rest) == ["m"]
    treating.change_rules([RULE], [plain], "balanced")
    router.finish_turn()
    assert sender.drain
    sender.detach()
    assert [each.key for each in router.table.addresses()] == ["/fallback/q"]


def test_an_address_goes_with_its_fallback() -> None:
    made = AddressTable([RULE], "balanced", lambda _: "")
    fallback = made.enter("q", is_fallback=True)
    assert fallback is not None
    assert [each.key for each in made.addresses()] == ["/fallback/q", "q"]
    primary = made.enter("q")
    assert primary is not None
    made.leave(primary)
    assert made.is_in_use(primary)
    made.leave(fallback)
    assert not made.is_in_use(primary)
    assert [each.related_addresses for each in (primary, fallback)] == [None, None]
    assert len(made) == 0


STEPS = st.lists(st.sampled_from(["join", "leave", "in", "out", "send", "serve", "rest"]))


@examples(100)
@given(STEPS)
def test_nothing_is_lost_or_doubled_at_the_change(steps: list[str]) -> None:
    for each in took_over(Router([RULE]), steps):
        assert texts(each) == sorted(texts(each), key=int)


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """One message is moved in each turn, and none in that of the change."""
    monkeypatch.setattr(fallbacks, "MOVED_AT_ONCE", 0)
    monkeypatch.setattr(fallbacks, "A_STEP", 1)


@examples(200)
@given(st.lists(st.sampled_from(["join", "leave", "in", "out", "send", "serve", "rest", "turn"])))
@pytest.mark.usefixtures("slowly")
def test_nothing_is_lost_or_doubled_where_the_change_takes_several_turns(steps: list[str]) -> None:
    router = Router([RULE])
    router.is_patient = True
    took_over(router, steps)


def took_over(router: Router, steps: list[str]) -> list[ReceivingLink]:
    """Let receivers and fallbacks come and go under traffic, and return them all.

    Check that each message came to one of them, or was released to its sender.
    """
    sender = router.client().sender("q")
    receivers: list[ReceivingLink] = []
    rests: list[ReceivingLink] = []
    sent: list[Sending] = []
    for step in steps:
        live = [each for each in receivers if each.attached]
        rest = [each for each in rests if each.attached]
        if step == "join":
            receivers.append(router.client().receiver("q", credit=1))
        elif step == "in":
            rests.append(out_of(router.client(), "qd.fallback", credit=1))
        elif step == "leave" and live:
            live[0].settle()
            live[0].detach()
        elif step == "out" and rest:
            rest[0].settle()
            rest[0].detach()
        elif step == "send" and sender.can_send():
            sent.append(sender.send(message(str(len(sent)))))
        elif step == "serve" and live:
            live[0].grant(1)
        elif step == "rest" and rest:
            rest[0].grant(1)
        elif step == "turn" and router.has_work():
            router.go_on()
    router.catch_up()
    for each in (*receivers, *rests):
        if each.attached:
            each.grant(100)
            each.settle()
    got = [text for each in (*receivers, *rests) for text in texts(each)]
    # each was got once, or its sender has been told that it was not
    assert len(got) == len(set(got))
    for number, sending in enumerate(sent):
        if isinstance(sending.outcome, Accepted):
            assert str(number) in got
        else:
            assert sending.outcome == Released()
            assert str(number) not in got
    assert router.forwarder.backlog.held_bytes == 0
    return [*receivers, *rests]


AT_ONCE = 4 * fallbacks.A_STEP
MANY = 3 * AT_ONCE


@pytest.mark.parametrize("leaves", [True, False])
def test_very_much_goes_over_several_turns_and_what_comes_meanwhile_goes_behind_it(
    leaves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fallbacks, "MOVED_AT_ONCE", AT_ONCE)
    router = Router([RULE])
    receivers = [stalled(router, MANY)] if leaves else []
    if leaves:
        rest = out_of(router.client(), "qd.fallback", credit=MANY)
    else:
        rest = stalled_fallback(router, MANY)
    sender = router.client(link_capacity=MANY).sender("q")
    for number in range(MANY - 10):
        sender.send(message(str(number)))
    router.is_patient = True
    at = router.table.in_use("q", 0 if leaves else FALLBACK)
    assert at is not None
    before = at.waiting.count
    for each in receivers:
        each.detach()
    to = rest if leaves else router.client().receiver("q", MANY)
    assert before - at.waiting.count == AT_ONCE
    for number in range(MANY - 10, MANY):
        sender.send(message(str(number)))
        router.go_on()
    router.catch_up()
    assert at.waiting.count == 0
    assert texts(to) == [str(number) for number in range(1, MANY)]


def sent_and_moved_in_part(
    router: Router, sender: SendingLink, receiver: ReceivingLink
) -> list[Sending]:
    """Send six messages, have the receiver leave, and take two turns in which others go on."""
    sent = [sender.send(message(str(number))) for number in range(6)]
    router.is_patient = True
    receiver.detach()
    router.go_on()
    router.go_on()
    return sent


@pytest.mark.usefixtures("slowly")
def test_what_the_fallback_would_have_had_is_released_where_it_leaves_in_the_middle() -> None:
    router = Router([RULE])
    receiver, rest = stalled(router), out_of(router.client(), "qd.fallback")
    sender = router.client().sender("q")
    sent = sent_and_moved_in_part(router, sender, receiver)
    rest.detach()
    router.catch_up()
    assert [type(each.outcome) for each in sent] == [Modified] + [Released] * 5
    assert router.forwarder.backlog.held_bytes == 0
    sender.detach()
    assert list(router.table.addresses()) == []


@pytest.mark.usefixtures("slowly")
def test_a_receiver_that_comes_in_the_middle_gets_everything() -> None:
    router = Router([RULE])
    receiver, rest = stalled(router), stalled_fallback(router)
    sender = router.client().sender("q")
    sent = sent_and_moved_in_part(router, sender, receiver)
    other = router.client().receiver("q", credit=10)
    router.catch_up()
    got = texts(rest) + texts(other)
    assert sorted(got) == ["1", "2", "3", "4", "5"]
    for each in (rest, other):
        each.settle()
    assert [type(each.outcome) for each in sent] == [Modified] + [Accepted] * 5


@pytest.mark.usefixtures("slowly")
def test_what_the_receiver_does_not_take_stays_at_the_fallback() -> None:
    router = Router([RULE])
    rest = stalled_fallback(router)
    sender = router.client().sender("q")
    for text in ("0", "x" * 500, "1", "2"):
        sender.send(message(text))
    receiver = router.client().receiver("q", credit=10, max_message_size=200)
    assert texts(receiver) == ["1", "2"]
    rest.client.open_window()
    assert texts(rest) == ["0", "x" * 500]
