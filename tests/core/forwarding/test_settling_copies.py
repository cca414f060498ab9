"""A sender's disposition of a multicast with very many copies is passed on over several turns."""

from __future__ import annotations

import pytest

from router.amqp.performatives import Accepted, Disposition, Modified
from router.core.addresses.rules import AddressRule
from router.core.forwarding.settling_copies import AT_ONCE

from support.in_memory import ReceivingLink, Router
from support.waypoints import message


def crowd(count: int, credit: int) -> tuple[Router, list[ReceivingLink]]:
    """Return a router with `count` receivers of a multicast."""
    router = Router([AddressRule(True, "q", "multicast")])
    client = router.client(window=100_000)
    return router, [client.receiver("q", credit=credit) for _ in range(count)]


@pytest.mark.parametrize("state", [None, Accepted(), Modified(delivery_failed=True)])
def test_what_a_sender_says_is_told_to_very_many_over_several_turns(
    state: Accepted | Modified | None,
) -> None:
    router, receivers = crowd(AT_ONCE + 100, credit=1)
    sender = router.client().sender("q")
    sending = sender.send(message("m"))
    router.is_patient = True
    sender.settle(sending, state)
    router.client()
    told = [each.received[0].sender_settled for each in receivers]
    assert sum(each is not None for each in told) == AT_ONCE
    router.catch_up()
    for receiver in receivers:
        disposition = receiver.received[0].sender_settled
        assert disposition is not None
        assert disposition.settled
        assert disposition.state == state
        assert receiver.unsettled == {}


def test_a_disposition_of_very_many_copies_takes_a_turns_room() -> None:
    router, receivers = crowd(AT_ONCE + 1, credit=40)
    sender = router.client().sender("q")
    sendings = [sender.send(message("m")) for _ in range(40)]
    first, last = sendings[0].number, sendings[-1].number
    client = sender.client
    client.give(Disposition(False, first, last, settled=True))
    # a turn has room for 32 times as many as are told at once
    assert client.is_behind()
    router.finish_turn()
    while client.is_behind():
        client.go_on()
    router.catch_up()
    assert all(receiver.unsettled == {} for receiver in receivers)
