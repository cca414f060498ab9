"""EXPLAIN of a multicast with stuck receivers: who, since when, and who was dropped."""

from __future__ import annotations

from router.core.addresses.rules import AddressRule
from router.core.diagnosis.stuck_receivers import StuckReceivers
from router.management.explain_stuck import MOST_STUCK, SHORTEST_S, explain_stuck

from support.in_memory import Router

TIMEOUT_S = 30.0
DROP = AddressRule(True, "q", "multicast", drop_after_s=TIMEOUT_S)
WAIT = AddressRule(True, "q", "multicast")


def look(router: Router, stuck: StuckReceivers, seconds: int) -> None:
    """Let time pass, with a look at the clocks each second."""
    for _ in range(seconds):
        router.turn.now += 1
        stuck.tick(router.turn.now)
        router.finish_turn()


def explained(router: Router) -> dict[str, object]:
    address = router.table.in_use("q")
    assert address is not None
    told = explain_stuck([address], router.turn.now)
    assert told is not None
    return told


def test_nothing_is_told_of_what_is_no_multicast() -> None:
    router = Router()
    router.client().receiver("q")
    address = router.table.in_use("q")
    assert address is not None
    assert explain_stuck([address], router.turn.now) is None


def test_who_is_stuck_and_when_it_is_dropped_and_that_it_was() -> None:
    router = Router([DROP])
    stuck = StuckReceivers(router.forwarder)
    router.client().receiver("q", credit=10)
    silent = router.client(container="silent").receiver("q")
    router.client().sender("q")
    assert explained(router) == {"stuck": [], "dropped": 0, "lastDropped": None}
    look(router, stuck, 1)
    # it may be busy
    assert explained(router)["stuck"] == []
    look(router, stuck, int(SHORTEST_S) + 10)
    told = explained(router)
    assert told["stuck"] == [
        {
            "connection": "0",
            "link": "0.0.0",
            "linkName": silent.name,
            "container": "silent",
            "stuckSeconds": SHORTEST_S + 10,
            "droppedInSeconds": TIMEOUT_S - SHORTEST_S - 10,
            "text": "it accepts no transfers: it gives no credit",
        }
    ]
    look(router, stuck, int(TIMEOUT_S))
    assert explained(router) == {
        "stuck": [],
        "dropped": 1,
        "lastDropped": {
            "connection": "0",
            "container": "silent",
            "linkName": silent.name,
            "secondsAgo": SHORTEST_S + 10,
            "stuckSeconds": TIMEOUT_S,
            "text": "it accepts no transfers: it gives no credit",
        },
    }


def test_who_is_waited_for_is_told_as_well_and_not_of_all() -> None:
    router = Router([WAIT])
    stuck = StuckReceivers(router.forwarder)
    client = router.client()
    for _ in range(MOST_STUCK + 5):
        client.receiver("q")
    router.client().sender("q")
    look(router, stuck, 10)
    told = explained(router)["stuck"]
    assert isinstance(told, list)
    assert len(told) == MOST_STUCK
    assert {each["droppedInSeconds"] for each in told} == {None}
