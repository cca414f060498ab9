"""The ledger finds each way in which a message can be treated other than is promised."""

from __future__ import annotations

import pytest

from router.simulation.ledger import Ledger


def ledger(
    outcome: str, *tried: int, multicast: bool = False, presettled: bool = False
) -> list[str]:
    """Return the mistakes for one message with this outcome and a delivery for each of `tried`."""
    made = Ledger()
    if multicast:
        made.multicast.add(0)
    number = made.sent(0, 1.0, presettled=presettled)
    for receiver, times in enumerate(tried):
        made.delivered(number, receiver, times)
    if outcome:
        made.outcome_known(number, outcome)
    return made.mistakes(is_whole=True)


@pytest.mark.parametrize(
    ("outcome", "tried"),
    [
        ("accepted", (0,)),
        # it was offered again, and says so
        ("accepted", (0, 1)),
        ("released", ()),
        ("modified", ()),
        ("modified", (0,)),
        ("modified", (0, 0)),
        ("rejected", (0,)),
        ("lost", ()),
        ("lost", (0,)),
    ],
)
def test_what_may_be(outcome: str, tried: tuple[int, ...]) -> None:
    assert ledger(outcome, *tried) == []


@pytest.mark.parametrize(
    ("outcome", "tried", "mistake"),
    [
        ("accepted", (), "accepted, but not delivered"),
        ("accepted", (0, 0), "accepted, and delivered 2 times"),
        ("released", (0,), "released, but delivered to receiver 0"),
        ("", (0,), "no outcome, although all routers are reachable"),
    ],
)
def test_what_may_not_be(outcome: str, tried: tuple[int, ...], mistake: str) -> None:
    assert ledger(outcome, *tried) == [f"message 0 of sender 0: {mistake}"]


def test_a_multicast_reaches_many_and_each_once() -> None:
    assert ledger("accepted", 0, 0, 0, multicast=True) == []
    made = Ledger()
    made.multicast.add(0)
    number = made.sent(0, 1.0)
    made.delivered(number, 5)
    made.delivered(number, 5)
    made.outcome_known(number, "accepted")
    assert "delivered twice to a receiver" in made.mistakes(is_whole=False)[0]


def test_what_is_sent_settled_has_no_outcome_and_arrives_once_at_most() -> None:
    assert ledger("", presettled=True) == []
    assert ledger("", 0, presettled=True) == []
    assert "delivered 2 times" in ledger("", 0, 0, presettled=True)[0]


def test_nobody_is_told_twice_and_nothing_comes_from_nowhere() -> None:
    made = Ledger()
    number = made.sent(0, 1.0)
    made.delivered(number, 0)
    made.outcome_known(number, "accepted")
    made.outcome_known(number, "released")
    made.delivered(17, 3)

    mistakes = made.mistakes(is_whole=False)
    assert "accepted, and then released" in mistakes[0]
    assert "message 17, which was never sent" in mistakes[1]


def test_what_is_under_way_is_a_mistake_only_where_it_could_have_ended() -> None:
    made = Ledger()
    made.sent(0, 1.0)

    assert made.unsettled() == 1
    assert made.mistakes(is_whole=False) == []
    assert len(made.mistakes(is_whole=True)) == 1


def test_what_receivers_release_themselves_may_well_be_released() -> None:
    made = Ledger()
    made.releasing.add(4)
    number = made.sent(0, 1.0)
    made.delivered(number, 4)
    made.outcome_known(number, "released")

    assert made.mistakes(is_whole=True) == []
