"""Senders whose unsettled deliveries are more than may be kept for their connection."""

from __future__ import annotations

from collections.abc import Iterator

from router.core.deliveries.unsettled_limits import AT_ONCE, UnsettledLimits
from router.core.model.memory_by_kind import holdings_of
from router.engine.account import DELIVERY_BYTES
from router.engine.connection import Connection

from support.in_memory import Router, SendingLink


def unsettled(router: Router, address: str, count: int) -> SendingLink:
    """Return a sender with `count` deliveries that its receiver does not settle."""
    router.client().receiver(address, 100)
    sender = router.client().sender(address)
    for _ in range(count):
        sender.send(b"x")
    return sender


def look(router: Router, overdrawn: UnsettledLimits) -> None:
    overdrawn.tick(router.turn.now)
    router.finish_turn()


def overdrawn_of(router: Router) -> UnsettledLimits:
    return UnsettledLimits(router.turn, lambda: [each.connection for each in router.clients])


def test_the_sender_with_most_is_detached_and_no_other() -> None:
    router = Router()
    most = unsettled(router, "q", 20)
    client = most.client
    few = client.sender("q")
    few.send(b"x")
    other = unsettled(router, "other", 20)
    ledger = router.turn.ledger
    charged = client.connection.account.total
    ledger.connection_limit_bytes = charged + 10 * DELIVERY_BYTES
    held = charged + 21 * DELIVERY_BYTES
    look(router, overdrawn_of(router))
    assert most.detached is not None
    assert most.detached.error is not None
    assert most.detached.error.condition == "amqp:resource-limit-exceeded"
    assert most.detached.error.description == (
        f"20 deliveries are unsettled, and the router keeps {held} octets of these and other "
        f"state for the connection; {ledger.connection_limit_bytes} are allowed "
        "(connectionStateLimitBytes)"
    )
    assert few.detached is None
    assert holdings_of(client.connection)["deliveries"] == DELIVERY_BYTES
    assert ledger.refused == 2
    assert other.detached is not None


def test_what_is_within_the_limit_is_let_be() -> None:
    router = Router()
    sender = unsettled(router, "q", 20)
    overdrawn = overdrawn_of(router)
    look(router, overdrawn)
    ledger = router.turn.ledger
    ledger.connection_limit_bytes = sender.client.connection.account.total + 20 * DELIVERY_BYTES
    look(router, overdrawn)
    assert sender.detached is None


def test_where_all_have_too_much_each_may_have_an_equal_share() -> None:
    router = Router()
    greedy = unsettled(router, "q", 90)
    modest = unsettled(router, "other", 5)
    ledger = router.turn.ledger
    ledger.limit_bytes = ledger.total + 50 * DELIVERY_BYTES
    # more than an equal share, and so not what is exceeded
    ledger.connection_limit_bytes = 3 * ledger.limit_bytes // 4
    held = greedy.client.connection.account.total + 90 * DELIVERY_BYTES
    share = ledger.limit_bytes // ledger.accounts
    overdrawn = overdrawn_of(router)
    # the first round counts
    look(router, overdrawn)
    refused = ledger.refused
    look(router, overdrawn)
    assert (refused, ledger.refused) == (0, 1)
    assert modest.detached is None
    assert greedy.detached is not None
    assert greedy.detached.error is not None
    assert greedy.detached.error.description == (
        f"90 deliveries are unsettled, and the router keeps {held} octets of these and other "
        f"state for the connection; {share} are allowed "
        "(an equal share of stateLimitBytes, which is used up)"
    )


def test_some_connections_are_looked_at_each_time() -> None:
    router = Router()
    clients = [router.client() for _ in range(3)]
    rounds = []

    def connections() -> list[Connection]:
        rounds.append(1)
        # each has a session, which is looked at as well
        return [clients[0].connection] * AT_ONCE

    overdrawn = UnsettledLimits(router.turn, connections)
    for _ in range(3):
        look(router, overdrawn)
    assert len(rounds) == 1
    look(router, overdrawn)
    assert len(rounds) == 2


def test_very_many_connections_are_checked_over_several_turns() -> None:
    router = Router()
    router.is_patient = True
    client = router.client()
    checked: list[int] = []

    def connections() -> Iterator[Connection]:
        for number in range(AT_ONCE):
            checked.append(number)
            yield client.connection

    overdrawn = UnsettledLimits(router.turn, connections)
    overdrawn.tick(router.turn.now)
    begun = len(checked)
    assert 0 < begun < AT_ONCE / 2
    # the next tick does not begin another pass beside this one
    overdrawn.tick(router.turn.now)
    assert len(checked) == begun
    router.catch_up()
    assert len(checked) == AT_ONCE / 2


def test_very_many_senders_are_detached_over_several_turns() -> None:
    router = Router()
    router.client().receiver("q", 1000)
    client = router.client()
    senders = [client.sender("q") for _ in range(200)]
    for number, sender in enumerate(senders):
        sender.send(b"x")
        if number < 10:
            sender.send(b"x")
    ledger = router.turn.ledger
    ledger.connection_limit_bytes = client.connection.account.total - 10 * DELIVERY_BYTES
    router.is_patient = True
    overdrawn = overdrawn_of(router)
    overdrawn.tick(router.turn.now)
    router.end_turn()
    gone = sum(sender.detached is not None for sender in senders)
    assert 10 < gone < 200
    # those with the most unsettled deliveries first
    assert all(sender.detached is not None for sender in senders[:10])
    # the same ones are not detached twice over
    refused = ledger.refused
    while overdrawn._round is not None:
        overdrawn.tick(router.turn.now)
        router.go_on()
    overdrawn.tick(router.turn.now)
    assert ledger.refused == refused
    router.catch_up()
    assert all(sender.detached is not None for sender in senders)
    assert holdings_of(client.connection)["deliveries"] == 0
