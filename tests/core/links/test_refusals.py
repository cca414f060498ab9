"""What is wrong with a message is told to its sender, and counted."""

from __future__ import annotations

import pytest

from support.in_memory import Router
from support.pairs import pair, rejected
from support.schedules import data_section

NO_MESSAGE = b"\0\x53\x70\x50"


@pytest.mark.parametrize("settled", [True, False])
def test_a_message_without_an_address(settled: bool) -> None:
    router = Router()
    router.client().receiver("q", 5)
    sending = router.client().sender(None).send(data_section(b"x"), settled=settled)
    assert sending.outcome == (None if settled else rejected("amqp:precondition-failed"))
    total = router.table.total()
    assert (total.ingress, total.bytes_in, total.no_destination) == (1, 9, 1)
    assert total.dropped_presettled == total.presettled == settled


@pytest.mark.parametrize("more", [True, False])
def test_a_message_that_is_none(more: bool) -> None:
    router, sender, receiver = pair()
    if more:
        sending = sender.send(data_section(b"x"), more=True)
        sender.go_on(NO_MESSAGE)
        assert receiver.received[0].aborted
    else:
        sending = sender.send(NO_MESSAGE, message_format=0)
        assert receiver.received == []
    assert sending.outcome == rejected("amqp:decode-error")
    assert router.table.total().malformed == 1
    assert sender.detached is None


def test_a_settled_message_that_is_none_costs_the_link() -> None:
    router, sender, receiver = pair()
    sender.send(NO_MESSAGE, message_format=0, settled=True)
    assert sender.detached is not None
    assert sender.detached.error is not None
    assert sender.detached.error.condition == "amqp:decode-error"
    assert receiver.received == []
    assert router.table.total().malformed == 1
