"""Who gets a message, or a copy; see also `test_forward` and `test_exchanges`."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.performatives import Accepted, Rejected, Released
from router.core.addresses.rules import AddressRule
from router.core.forwarding.distribution import Distributor
from router.core.model.address import FIRST_EDGE, HERE, MESH, MULTICAST, NO_TREE, OWN_TREE

from support.in_memory import Router
from support.waypoints import message, texts


def test_a_forwarder_has_one() -> None:
    router = Router()
    assert isinstance(router.forwarder.distribution, Distributor)


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


def sided(router: Router, *sides: tuple[int, int]) -> None:
    """Have the receivers of `q`, then its senders, be on these sides and trees."""
    address = router.table.in_use("q")
    assert address is not None
    ends: list[Any] = [*address.consumers, *address.producers]
    for end, (side, tree) in zip(ends, sides, strict=True):
        end.side, end.tree = side, tree
        address.remote_ends += side != HERE


def test_a_multicast_goes_along_the_tree_by_which_it_came_and_to_all_who_are_here() -> None:
    router = Router([AddressRule(True, "q", "multicast")])
    receivers = [router.client().receiver("q", credit=10) for _ in range(5)]
    senders = [router.client().sender("q") for _ in range(3)]
    sided(
        router,
        (HERE, NO_TREE), (FIRST_EDGE, NO_TREE), (MESH, OWN_TREE), (MESH, 7), (MESH, NO_TREE),
        (HERE, OWN_TREE), (FIRST_EDGE, OWN_TREE), (MESH, 7),
    )  # fmt: skip
    sendings = [sender.send(message(str(at))) for at, sender in enumerate(senders)]
    assert [texts(each) for each in receivers] == [
        ["0", "1", "2"],
        ["0", "2"],
        ["0", "1"],
        ["2"],
        [],
    ]
    for receiver in receivers:
        receiver.settle()
    assert [sending.outcome for sending in sendings] == [Accepted()] * 3


def test_a_multicast_for_nobody_but_its_own_side_is_released() -> None:
    router = Router([AddressRule(True, "q", "multicast")])
    receiver = router.client().receiver("q", credit=10)
    sender = router.client().sender("q")
    sided(router, (FIRST_EDGE, NO_TREE), (FIRST_EDGE, OWN_TREE))
    assert sender.send(message("echo")).outcome == Released()
    assert receiver.received == []


def test_the_size_that_counts_is_that_of_those_whom_it_is_for() -> None:
    router = Router([AddressRule(True, "q", "multicast")])
    router.client().receiver("q", credit=10, max_message_size=50)
    router.client().receiver("q", credit=10)
    sender = router.client().sender("q")
    sided(router, (HERE, NO_TREE), (MESH, 7), (HERE, OWN_TREE))
    assert isinstance(sender.send(message("x" * 200)).outcome, Rejected)


@pytest.mark.parametrize("is_between_routers", [True, False])
def test_a_settled_copy_for_another_router_waits_behind_a_message_that_is_half_sent(
    is_between_routers: bool,
) -> None:
    router = Router([AddressRule(True, "q", "multicast")])
    slow = router.client(window=2, max_frame_size=512).receiver("q", credit=10)
    sender = router.client().sender("q")
    if is_between_routers:
        sided(router, (MESH, OWN_TREE), (HERE, OWN_TREE))
    sender.send(message("x" * 3000), settled=True)
    sender.send(message("behind it"), settled=True)
    for _ in range(10):
        slow.client.open_window()
    assert [text[:9] for text in texts(slow)] == ["xxxxxxxxx", "behind it"][
        : 1 + is_between_routers
    ]
