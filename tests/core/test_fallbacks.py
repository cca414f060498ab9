"""What nobody receives goes to the fallback, and to others again, in order and nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from router.amqp.message import Header, decode_message
from router.amqp.performatives import Accepted, Modified, Rejected, Released
from router.core.address import FALLBACK
from router.core.passage import PHASE
from router.core.rules import AddressRule
from router.core.table import AddressTable
from router.core.treating import Treating

from support.examples import examples
from support.in_memory import ReceivingLink, Router, Sending
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


def stalled(router: Router) -> ReceivingLink:
    """A receiver that has credit and takes one message until its window opens."""
    return router.client(window=1).receiver("q", 100)


def stalled_fallback(router: Router) -> ReceivingLink:
    """A fallback that has credit and takes one message until its window opens."""
    return out_of(router.client(window=1), "qd.fallback", credit=100)


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
    treating = Treating(router.forwarder)
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
    assert [each.ties for each in (primary, fallback)] == [None, None]
    assert len(made) == 0


@examples(100)
@given(st.lists(st.sampled_from(["join", "leave", "in", "out", "send", "serve", "rest"])))
def test_nothing_is_lost_or_doubled_at_the_change(steps: list[str]) -> None:
    router = Router([RULE])
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
    for each in (*receivers, *rests):
        assert texts(each) == sorted(texts(each), key=int)
    assert router.forwarder.backlog.held_bytes == 0
