"""Who gets a message, or a copy; see also `test_forward` and `test_exchanges`."""

from __future__ import annotations

import pytest

from router.amqp.performatives import Accepted, Rejected
from router.core.address import MULTICAST
from router.core.spreading import Spreader
from router.core.table import AddressRule

from support.in_memory import Router
from support.waypoints import message, texts


def test_the_core_is_one() -> None:
    router = Router()
    assert isinstance(router.forwarder, Spreader)
    assert router.forwarder.moving == []


@pytest.mark.parametrize("treatment", ["closest", "balanced"])
def test_one_of_several_gets_it(treatment: str) -> None:
    router = Router(default=treatment)
    receivers = [router.client().receiver("q", credit=10) for _ in range(3)]
    sender = router.client().sender("q")
    for number in range(3):
        sender.send(message(str(number)))
    assert sorted(text for each in receivers for text in texts(each)) == ["0", "1", "2"]
    assert [len(each.received) for each in receivers] == [1, 1, 1]


def test_each_of_several_gets_a_copy_and_all_of_them_speak() -> None:
    router = Router([AddressRule(True, "q", "multicast")])
    receivers = [router.client().receiver("q", credit=10) for _ in range(3)]
    sending = router.client().sender("q").send(message("m"))
    address = router.table.in_use("q")
    assert address is not None
    assert address.treatment == MULTICAST
    assert [texts(each) for each in receivers] == [["m"]] * 3
    for each in receivers[:2]:
        each.settle(Accepted())
    assert sending.states == []
    receivers[2].settle(Rejected())
    assert sending.outcome == Rejected()


def test_a_copy_for_nobody_is_rejected_by_its_size() -> None:
    router = Router([AddressRule(True, "q", "multicast")])
    for _ in range(2):
        router.client().receiver("q", credit=10, max_message_size=50)
    sending = router.client().sender("q").send(message("x" * 200))
    assert isinstance(sending.outcome, Rejected)
