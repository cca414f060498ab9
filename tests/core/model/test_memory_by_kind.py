"""Who holds what: each thing that a peer makes the router keep is its own, and is given back."""

from __future__ import annotations

from router.amqp.constants import TerminusExpiryPolicy as Policy
from router.amqp.performatives import Source
from router.core.model.memory_by_kind import ALL_KINDS, held_in_all, holdings_of
from router.engine.account import (
    CONNECTION_BYTES,
    DELIVERY_BYTES,
    LINK_BYTES,
    NODE_BYTES,
    SESSION_BYTES,
    SUSPENDED_BYTES,
)

from support.in_memory import Router

LASTS = Source("q", expiry_policy=Policy.LINK_DETACH, timeout=10)


def test_what_waits_and_what_is_unsettled_is_its_senders() -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    sender = router.client().sender("q")
    sender.send(b"x" * 100)
    receiver.grant(0)
    sender.send(b"y" * 100)
    held = holdings_of(sender.client.connection)
    # one is unsettled at the receiver, one waits here
    assert held["messages"] == 100
    assert held["deliveries"] == 3 * DELIVERY_BYTES
    assert holdings_of(receiver.client.connection)["deliveries"] == 0
    assert held["sessions"] == SESSION_BYTES
    assert held["connection"] >= CONNECTION_BYTES
    assert LINK_BYTES < held["links"] < LINK_BYTES + 100
    assert tuple(held) == ALL_KINDS
    receiver.settle()
    receiver.grant(1)
    receiver.settle()
    assert holdings_of(sender.client.connection)["deliveries"] == 0
    assert holdings_of(sender.client.connection)["messages"] == 0


def test_what_all_hold_is_what_each_holds() -> None:
    router = Router()
    receiver = router.client().receiver("q", 0)
    sender = router.client().sender("q")
    connections = [receiver.client.connection, sender.client.connection]
    each = [holdings_of(connection) for connection in connections]
    together = held_in_all(router.forwarder, connections)
    assert together == {kind: sum(held[kind] for held in each) for kind in ALL_KINDS}
    for connection in connections:
        connection.end_of_input()
    assert set(held_in_all(router.forwarder, []).values()) == {0}


def test_a_dynamic_node_is_charged_to_who_had_it_made() -> None:
    router = Router()
    receiver = router.client().receiver(None, 1, source=Source(dynamic=True))
    connection = receiver.client.connection
    assert holdings_of(connection)["nodes"] == NODE_BYTES
    receiver.detach()
    assert holdings_of(connection)["nodes"] == 0


def test_a_suspended_terminus_is_charged_until_it_expires() -> None:
    router = Router()
    receiver = router.client().receiver("q", 1, source=LASTS)
    connection = receiver.client.connection
    receiver.client.lose()
    ledger = router.turn.ledger
    assert SUSPENDED_BYTES < ledger.total < SUSPENDED_BYTES + 2 * LINK_BYTES
    assert ledger.by_kind["suspended"] == ledger.total
    assert connection.account.total == ledger.total
    router.wait(10)
    assert ledger.total == 0
