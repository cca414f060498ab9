"""Receivers that name a max-message-size get nothing beyond it (section 2.7.3)."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.constants import ReceiverSettleMode
from router.amqp.message import AmqpValue, Message, Properties, encode_message
from router.amqp.performatives import Accepted, Released

from support.in_memory import ReceivingLink, Router, Sending, SendingLink
from support.pairs import rejected
from support.schedules import TTL_100_MS, data_section

TOO_LARGE = rejected("amqp:link:message-size-exceeded")


def sized(
    *limits: int | None, default: str = "balanced", credit: int = 5, **fields: Any
) -> tuple[Router, SendingLink, list[ReceivingLink]]:
    """Receivers that take so many octets at most, and a sender."""
    router = Router(default=default)
    receivers = [
        router.client().receiver("q", credit, max_message_size=limit, **fields) for limit in limits
    ]
    return router, router.client().sender("q"), receivers


def payloads(receiver: ReceivingLink) -> list[int]:
    """How large what a receiver got whole is."""
    whole = [each for each in receiver.received if each.complete and not each.aborted]
    return [len(each.payload) for each in whole]


def is_empty(router: Router) -> bool:
    """Whether nothing waits."""
    return router.forwarder.backlog.held_bytes == 0


def problem(sending: Sending) -> str:
    """Return the error description in a rejected outcome."""
    return str(sending.outcome.error.description)


@pytest.mark.spec("2.7.3-15")
@pytest.mark.parametrize("default", ["balanced", "closest", "multicast"])
@pytest.mark.parametrize("limit", [None, 0, 10])
def test_what_is_not_too_large_is_given(limit: int | None, default: str) -> None:
    _, sender, (receiver,) = sized(limit, default=default)
    sender.send(b"." * 10)
    assert payloads(receiver) == [10]


@pytest.mark.spec("2.7.3-15")
@pytest.mark.parametrize("default", ["balanced", "closest", "multicast"])
def test_what_is_too_large_for_all_is_rejected_with_the_size_allowed(default: str) -> None:
    router, sender, receivers = sized(8, 10, default=default)
    sending = sender.send(b"." * 11)
    assert sending.outcome == TOO_LARGE
    assert "11" in problem(sending)
    assert "10" in problem(sending)
    assert all(each.received == [] for each in receivers)
    assert sender.detached is None
    assert router.table.total().rejected == 1
    assert sender.send(b"." * 8).outcome is None
    assert is_empty(router)


@pytest.mark.spec("2.7.3-15")
@pytest.mark.parametrize("default", ["balanced", "closest"])
@pytest.mark.parametrize("settled", [True, False])
def test_another_receiver_gets_what_is_too_large_for_one(default: str, settled: bool) -> None:
    _, sender, (small, large) = sized(10, 100, default=default)
    for _ in range(4):
        sender.send(b"." * 50, settled=settled)
    assert (payloads(small), payloads(large)) == ([], [50] * 4)
    sender.send(b"." * 5)
    assert len(small.received) == 1


@pytest.mark.parametrize("default", ["balanced", "multicast"])
def test_what_comes_settled_and_is_too_large_is_dropped(default: str) -> None:
    router, sender, (receiver,) = sized(10, default=default)
    sender.send(b"." * 11, settled=True)
    assert receiver.received == []
    assert router.table.total().dropped_presettled == 1
    assert sender.detached is None


def test_a_multicast_leaves_out_who_takes_no_such_message() -> None:
    router, sender, (small, large) = sized(10, None, default="multicast")
    sending = sender.send(b"." * 11)
    large.settle(Released())
    assert sending.outcome == Released()
    assert small.received == []
    assert is_empty(router)


# What waits.


@pytest.mark.parametrize("default", ["balanced", "closest"])
def test_what_waits_waits_for_one_that_takes_it(default: str) -> None:
    router, sender, (small, large) = sized(10, 100, default=default)
    small.grant(0)
    large.grant(0)
    for payload in (b"a" * 50, b"b" * 5, b"c" * 50):
        sender.send(payload)
    small.grant(5)
    assert [each.payload for each in small.received] == [b"b" * 5]
    small.grant(5, drain=True)
    assert small.drained
    large.grant(5)
    assert [each.payload for each in large.received] == [b"a" * 50, b"c" * 50]
    assert is_empty(router)


@pytest.mark.parametrize("to", ["q", None])
@pytest.mark.parametrize("default", ["balanced", "closest"])
def test_who_takes_it_gets_what_comes_behind_something_too_large_for_it(
    default: str, to: str | None
) -> None:
    router, sender, (small, large) = sized(40, 100, default=default)
    message = encode_message(Message(properties=Properties(to="q"), body=(AmqpValue("b"),)))
    assert len(message) <= 40
    large.grant(0)
    sender.send(b"a" * 50)
    other = router.client().sender(to)
    for _ in range(2):
        other.send(message, more=True)
        other.go_on(b"")
    assert [each.payload for each in small.received] == [message] * 2
    small.settle()
    large.grant(5)
    assert payloads(large) == [50]
    assert is_empty(router)


def test_what_waits_and_is_for_nobody_any_more_is_rejected() -> None:
    router, sender, (small, large) = sized(10, 100)
    small.grant(0)
    large.grant(0)
    little, much = sender.send(b"." * 5), sender.send(b"." * 50)
    large.detach()
    assert much.outcome == TOO_LARGE
    assert little.states == []
    small.grant(1)
    assert payloads(small) == [5]
    assert is_empty(router)


def test_what_waits_as_a_copy_and_grows_too_large_is_left_out() -> None:
    router, sender, (small, large) = sized(10, 100, default="multicast")
    small.grant(0)
    sending = sender.send(b"." * 5, more=True)
    sender.go_on(b"." * 6)
    small.grant(2)
    assert small.received == []
    large.settle(Accepted())
    assert sending.outcome == Accepted()
    assert is_empty(router)


@pytest.mark.parametrize("more", [True, False])
def test_what_waits_and_grows_too_large_is_rejected(more: bool) -> None:
    router, sender, (receiver,) = sized(10)
    receiver.grant(0)
    sending = sender.send(b"." * 5, more=True)
    sender.go_on(b"." * 6, more=more)
    assert sending.outcome == TOO_LARGE
    if more:
        sender.go_on(b"." * 6)
    receiver.grant(5)
    assert receiver.received == []
    assert is_empty(router)


# What is on its way.


@pytest.mark.spec("2.7.3-15")
@pytest.mark.parametrize("mode", ReceiverSettleMode)
@pytest.mark.parametrize("more", [True, False])
def test_what_turns_out_too_large_is_aborted(more: bool, mode: ReceiverSettleMode) -> None:
    router, _, (receiver,) = sized(10)
    sender = router.client().sender("q", rcv_settle_mode=mode)
    sending = sender.send(b"." * 5, more=True)
    sender.go_on(b"." * 6, more=more)
    assert sending.states == [TOO_LARGE]
    assert sending.is_over is (mode == ReceiverSettleMode.FIRST)
    assert receiver.received[0].aborted
    assert receiver.received[0].payload == b"." * 5
    if more:
        sender.go_on(b"." * 6)
    if not sending.is_over:
        sender.settle(sending)
    sender.send(b"next")
    assert payloads(receiver) == [4]
    assert router.table.total().rejected == 1
    assert is_empty(router)


def test_what_turns_out_too_large_while_its_window_is_closed() -> None:
    router = Router()
    client = router.client(window=1)
    receiver = client.receiver("q", 5, max_message_size=10)
    sender = router.client().sender("q")
    sending = sender.send(b"." * 5, more=True)
    sender.go_on(b"." * 3, more=True)
    sender.go_on(b"." * 3)
    assert sending.outcome == TOO_LARGE
    client.open_window(10)
    assert receiver.received[0].aborted
    assert is_empty(router)


@pytest.mark.parametrize("limit", [10, 100])
def test_a_multicast_goes_on_to_those_who_take_it(limit: int) -> None:
    router, sender, (small, other) = sized(10, limit, default="multicast")
    sending = sender.send(b"." * 5, more=True)
    sender.go_on(b"." * 6)
    assert small.received[0].aborted
    if limit == 10:
        assert other.received[0].aborted
        assert sending.outcome == TOO_LARGE
    else:
        other.settle(Accepted())
        assert sending.outcome == Accepted()
    assert is_empty(router)


# Elsewhere.


def test_what_is_given_back_goes_to_one_that_takes_it() -> None:
    _, sender, (small, one, other) = sized(10, 100, 100)
    sending = sender.send(b"." * 50)
    for _ in range(2):
        for each in (one, other):
            each.settle(Released())
    assert sending.outcome == Released()
    assert [len(each.received) for each in (small, one, other)] == [0, 1, 1]


@pytest.mark.parametrize(("limit", "arrives"), [(10, False), (None, True)])
@pytest.mark.parametrize("default", ["balanced", "multicast"])
def test_a_dead_letter_goes_to_one_that_takes_it(
    default: str, limit: int | None, arrives: bool
) -> None:
    router = Router([(False, "q", "balanced", True, "dead")], default=default)
    small = router.client().receiver("dead", 0, max_message_size=10)
    other = router.client().receiver("dead", 0, max_message_size=limit)
    receiver = router.client().receiver("q", 1)
    sender = router.client().sender("q")
    receiver.grant(0)
    sending = sender.send(TTL_100_MS + data_section(b"x"))
    router.wait(0.2)
    if arrives:
        small.grant(1)
        other.grant(1)
        assert (len(small.received), len(other.received)) == (0, 1)
        other.settle()
        assert sending.outcome == Accepted()
    else:
        assert sending.outcome == rejected("trioute:expired")
    assert is_empty(router)
