"""The score of the job `causes`: a wrong name counts as what it is, and pages keep their text."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.causes import scoring, simulating
from bench.causes.scoring import Score

from support.pipeline.planting import KINDS, Incident, Planted, kinds_of
from support.pipeline.scenes import Scene

SLOW = Planted("slow-router", "r1")
STUCK = Planted("stuck-receiver", "taker0a")


def test_a_name_is_right_if_kind_and_subject_are() -> None:
    planted = {1: [SLOW], 2: [SLOW, STUCK], 3: [STUCK], 4: []}
    named = [
        (1, "slow-router", "r1"),
        (2, "slow-router", "r2"),
        (2, "stuck-receiver", "taker0a"),
        (3, "unknown", None),
        (4, "none", None),
    ]
    scores = scoring.score(planted, named)

    assert scores.by_kind["slow-router"] == Score(planted=2, right=1, unknown=1, wrong=1)
    assert scores.by_kind["stuck-receiver"] == Score(planted=2, right=1, unknown=1)
    assert scores.by_kind["nothing"] == Score(planted=1, right=1)
    assert scores.total == Score(planted=5, right=3, unknown=2, wrong=1)
    assert scores.mistakes == [
        "incident 2: slow-router r1 and stuck-receiver taker0a, and slow-router r2 was named"
    ]


def test_the_right_subject_for_a_wrong_reason_is_wrong() -> None:
    scores = scoring.score({1: [STUCK]}, [(1, "slow-receiver", "taker0a")])
    assert scores.by_kind["stuck-receiver"] == Score(planted=1, unknown=1, wrong=1)


def test_only_what_is_between_the_markers_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "causes.md"
    page.write_text(f"before\n{scoring.BEGIN}\nold\n{scoring.END}\nafter\n")
    scoring.write_docs(page, ["new", "lines"])
    assert page.read_text() == f"before\n{scoring.BEGIN}\nnew\nlines\n{scoring.END}\nafter\n"


def test_every_kind_is_planted_alone_and_beside_another() -> None:
    planted = [kinds_of(seed) for seed in range(200)]
    assert {each[0] for each in planted if len(each) == 1} == set(KINDS)
    assert {name for each in planted if len(each) == 2 for name in each} == {*KINDS} - {"nothing"}


def test_what_was_simulated_is_not_simulated_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def plant(seed: int) -> Incident:
        asked.append(seed)
        return Incident(seed, (SLOW,), {})

    monkeypatch.setattr(simulating, "plant", plant)
    monkeypatch.setattr(simulating, "DATASETS", ())
    chunks = simulating.chunks(tmp_path, 7, simulating.AT_ONCE + 2)
    assert [len(chunk.seeds) for chunk in chunks] == [simulating.AT_ONCE, 2]

    simulating.simulate_all(chunks[1:], 1)
    simulating.simulate_all(chunks[1:], 1)
    assert asked == [7 + simulating.AT_ONCE, 8 + simulating.AT_ONCE]
    assert simulating.planted_in(chunks[1:]) == {seed: [SLOW] for seed in asked}


def test_a_scene_is_the_same_for_the_same_seed() -> None:
    one, other = Scene(3), Scene(3)
    assert one.lines == other.lines
    one.begin()
    other.begin()
    tables = one.finish()
    assert tables == other.finish()
    assert tables["deliveries"].num_rows > 500
