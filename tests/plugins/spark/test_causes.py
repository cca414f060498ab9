"""Who is to blame: by hand, and in simulated networks in which the cause was planted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession, functions as sf
from router_spark.jobs.causes import causes
from router_spark.periods import Period
from router_telemetry.schema import DATASETS, DELIVERIES, EVENTS, FLOWS, Dataset

from support.pipeline.planting import KINDS, Planted, plant
from support.pipeline.rows import at, frame
from support.pipeline.scenes import BASELINE, PERIOD as SIMULATED

pytestmark = pytest.mark.spark

BEFORE, AFTER = Period(at(0), at(100)), Period(at(100), at(200))
MESSAGES = 20
MS = 1_000_000

Row: TypeAlias = dict[str, object]
# By incident: what was planted, and what was named.
Answers: TypeAlias = dict[int, tuple[tuple[Planted, ...], set[Planted]]]


class Traffic:
    """Rows of messages over a chain of routers, twenty before and twenty after."""

    def __init__(self) -> None:
        self.deliveries: list[Row] = []
        self.flows: list[Row] = []
        self.events: list[Row] = []
        self._next = 0

    def messages(
        self,
        way: str,
        *,
        lines_ms: Mapping[str, Sequence[float]] | None = None,
        taken_ms: Sequence[float] = (5, 5),
        ahead_ms: Mapping[str, float] | None = None,
        count: Sequence[int] = (MESSAGES, MESSAGES),
        outcome: Mapping[str, object] | None = None,
    ) -> None:
        """Add messages from a sender at the first router to a receiver at the last.

        A line takes 10 ms both ways, or what `lines_ms` says of it: before, after, and after for
        every fifth message. Receivers take `taken_ms`, in the same way. Clocks are ahead by
        `ahead_ms` in the second period.
        """
        for phase in (0, 1):
            for number in range(count[phase]):
                self._next += 1
                ahead = {} if ahead_ms is None or not phase else ahead_ms
                time_s = 100 * phase + number * 100 / count[phase]
                taken = self._now(taken_ms, phase)
                self._message(way, lines_ms or {}, taken, ahead, time_s, phase, outcome)

    def _now(self, times: Sequence[float], phase: int) -> float:
        is_lucky = phase == 1 and len(times) == 3 and self._next % 5 == 0
        return times[2] if is_lucky else times[phase]

    def _message(
        self,
        way: str,
        lines_ms: Mapping[str, Sequence[float]],
        taken_ms: float,
        ahead_ms: Mapping[str, float],
        time_s: float,
        phase: int,
        outcome: Mapping[str, object] | None,
    ) -> None:
        lines = []
        for one, other in pairwise(way):
            taken = lines_ms.get("-".join(sorted((one, other))), (10, 10))
            lines.append(self._now(taken, phase))
        left_ms = sum(lines) + taken_ms
        for index, router in enumerate(way):
            is_last = index == len(way) - 1
            self.deliveries.append(
                {
                    "router": router,
                    "trace_id": self._next.to_bytes(16, "big"),
                    "hop": index + 1,
                    "share": 1.0,
                    "arrived": at(time_s + ahead_ms.get(router, 0) / 1000),
                    "address": f"q-{way}",
                    "in_container": f"from-{way}" if index == 0 else way[index - 1],
                    "in_role": "normal" if index == 0 else "inter-router",
                    "out_container": f"to-{way}" if is_last else way[index + 1],
                    "out_role": "normal" if is_last else "inter-router",
                    "out_link_number": 1,
                    "forward_ns": 0,
                    "settle_ns": round(left_ms * MS),
                    "outcome": "accepted",
                    "decided_by": "receiver",
                    **(outcome if outcome is not None and phase else {}),
                }
            )
            if not is_last:
                left_ms -= lines[index]
                time_s += lines[index] / 2000

    def taker(self, name: str, address: str, settled: Sequence[int], unsettled: int) -> None:
        """Add what a receiver has settled before and after, and what it has left."""
        for phase in (0, 1):
            self.flows.append(
                {
                    "router": "c",
                    "interval_start": at(100 * phase + 10),
                    "direction": "out",
                    "role": "normal",
                    "container": name,
                    "address": address,
                    "deliveries": settled[phase] + unsettled * phase,
                    **dict.fromkeys(("accepted", "rejected", "released", "modified"), 0),
                    "accepted": settled[phase],
                    "unsettled": unsettled * phase,
                    "is_final": False,
                }
            )


def event(seconds: float, kind: str, **columns: object) -> Row:
    """One event at the router a, unless it says otherwise."""
    return {"time": at(seconds), "kind": kind, "router": "a", **columns}


SCENES: dict[str, Traffic] = {}


def scene(make: Callable[[], Traffic]) -> Callable[[], Traffic]:
    """Have the job look at what a function makes, under its name."""
    SCENES[make.__name__] = make()
    return make


Answer: TypeAlias = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def answers(spark: SparkSession) -> dict[str, Answer]:
    """Return the job's answer for each scene; one job analyses them all."""
    names = list(SCENES)

    def rows(dataset: Dataset) -> DataFrame:
        every = [
            {"router_epoch": number, **row}
            for number, name in enumerate(names)
            for row in getattr(SCENES[name], dataset.name)
        ]
        return frame(spark, dataset, every).withColumn("case", sf.col("router_epoch"))

    flows, deliveries, events = (rows(each) for each in (FLOWS, DELIVERIES, EVENTS))
    found: dict[str, Answer] = {name: [] for name in names}
    job = causes(flows, deliveries, events, BEFORE, AFTER, groups=["case"])
    for case, *answer in job.collect():
        found[names[case]].append(tuple(answer))
    return found


@pytest.fixture
def answer(request: pytest.FixtureRequest, answers: dict[str, Answer]) -> Answer:
    """Return the job's answer for the scene with the name of the test."""
    return answers[request.node.name.removeprefix("test_")]


def named(answer: Answer) -> list[tuple[str, str | None]]:
    """Return the kinds and subjects of the causes in an answer."""
    return sorted(((kind, subject) for kind, subject, _, _ in answer), key=str)


@scene
def without_a_change_there_is_no_cause() -> Traffic:
    traffic = Traffic()
    traffic.messages("abc")
    return traffic


def test_without_a_change_there_is_no_cause(answer: Answer) -> None:
    numbers = {"addresses_with_a_drop": 0.0, "addresses_with_a_rise": 0.0}
    assert answer == [("none", None, 0.0, numbers)]


@scene
def a_line_whose_floor_has_risen_is_slow() -> Traffic:
    traffic = Traffic()
    traffic.messages("abc", lines_ms={"b-c": (10, 40)})
    return traffic


def test_a_line_whose_floor_has_risen_is_slow(answer: Answer) -> None:
    evidence = {"before_ms": 10.0, "after_ms": 40.0, "messages": 20.0}
    assert answer == [("slow-line", "b-c", 0.6, evidence)]


@scene
def a_router_is_slow_where_all_its_lines_are_now_and_then() -> Traffic:
    traffic = Traffic()
    traffic.messages("abc", lines_ms={"a-b": (10, 50, 10), "b-c": (10, 50, 10)})
    return traffic


def test_a_router_is_slow_where_all_its_lines_are_now_and_then(answer: Answer) -> None:
    ((kind, subject, _, evidence),) = answer
    assert (kind, subject) == ("slow-router", "b")
    assert evidence == {
        "least_rise_ms": 32.0,
        "most_rise_ms": 32.0,
        "lines": 2.0,
        "messages": 40.0,
    }


@scene
def a_line_and_the_one_router_behind_it_are_not_told_apart() -> Traffic:
    traffic = Traffic()
    traffic.messages("ab", lines_ms={"a-b": (10, 50, 10)})
    return traffic


def test_a_line_and_the_one_router_behind_it_are_not_told_apart(answer: Answer) -> None:
    assert named(answer) == [("unknown", None)]


@scene
def a_line_is_slow_where_another_one_at_each_end_is_not() -> Traffic:
    traffic = Traffic()
    for way in ("abcd", "dcba"):
        traffic.messages(way, lines_ms={"b-c": (10, 50, 10)})
    return traffic


def test_a_line_is_slow_where_another_one_at_each_end_is_not(answer: Answer) -> None:
    assert named(answer) == [("slow-line", "b-c")]


@scene
def what_a_router_sends_does_not_say_that_it_is_quick() -> Traffic:
    traffic = Traffic()
    traffic.messages("abcd", lines_ms={"b-c": (10, 50, 10)})
    return traffic


def test_what_a_router_sends_does_not_say_that_it_is_quick(answer: Answer) -> None:
    assert named(answer) == [("unknown", None)]


@scene
def neither_line_nor_router_is_named_where_a_receiver_behind_both_is_late() -> Traffic:
    traffic = Traffic()
    traffic.messages("abc", lines_ms={"b-c": (10, 60)}, taken_ms=(5, 50, 5))
    return traffic


def test_neither_line_nor_router_is_named_where_a_receiver_behind_both_is_late(
    answer: Answer,
) -> None:
    assert named(answer) == [("unknown", None)]


@scene
def a_receiver_is_slow_and_not_its_router() -> Traffic:
    traffic = Traffic()
    traffic.messages("abc", taken_ms=(5, 60))
    traffic.taker("to-abc", "q-abc", (20, 20), 0)
    return traffic


def test_a_receiver_is_slow_and_not_its_router(answer: Answer) -> None:
    assert named(answer) == [("slow-receiver", "to-abc")]


@scene
def an_address_is_hot_and_not_its_receiver_slow() -> Traffic:
    traffic = Traffic()
    traffic.messages("abc", taken_ms=(5, 60), count=(20, 100))
    traffic.taker("to-abc", "q-abc", (20, 100), 0)
    return traffic


def test_an_address_is_hot_and_not_its_receiver_slow(answer: Answer) -> None:
    assert named(answer) == [("hot-address", "q-abc")]


@scene
def a_wall_clock_is_not_blamed_for_latency() -> Traffic:
    traffic = Traffic()
    traffic.messages("abc", ahead_ms={"b": 500})
    return traffic


def test_a_wall_clock_is_not_blamed_for_latency(answer: Answer) -> None:
    evidence = {"ahead_ms": 500.0, "lines": 2.0}
    none = {"addresses_with_a_drop": 0.0, "addresses_with_a_rise": 0.0}
    assert answer == [
        ("clock-skew", "b", 0.667, evidence),
        ("none", None, 0.0, none),
    ]


@scene
def a_receiver_is_stuck_that_keeps_what_it_has() -> Traffic:
    traffic = Traffic()
    traffic.messages("abc", count=(20, 0))
    traffic.taker("to-abc", "q-abc", (20, 0), 8)
    traffic.taker("idle", "q-else", (20, 0), 0)
    return traffic


def test_a_receiver_is_stuck_that_keeps_what_it_has(answer: Answer) -> None:
    evidence = {
        "settled_a_second_before": 0.2,
        "settled_a_second_after": 0.0,
        "unsettled": 8.0,
    }
    assert answer == [("stuck-receiver", "to-abc", 0.889, evidence)]


@scene
def a_stuck_receiver_is_to_blame_for_what_expires() -> Traffic:
    traffic = Traffic()
    expired = {"outcome": "rejected", "decided_by": "router", "reason": "trioute:expired"}
    traffic.messages("c", outcome={**expired, "out_role": None, "out_container": None})
    traffic.taker("to-c", "q-c", (20, 0), 8)
    return traffic


def test_a_stuck_receiver_is_to_blame_for_what_expires(answer: Answer) -> None:
    assert named(answer) == [("expiring", "to-c")]


@scene
def a_drop_without_evidence_is_unknown() -> Traffic:
    traffic = Traffic()
    traffic.messages("abc", outcome={"outcome": "rejected"})
    return traffic


def test_a_drop_without_evidence_is_unknown(answer: Answer) -> None:
    numbers = {"addresses_with_a_drop": 1.0, "addresses_with_a_rise": 0.0}
    assert answer == [("unknown", None, 0.0, numbers)]


@scene
def events_name_wars_loops_and_lines_that_flap() -> Traffic:
    traffic = Traffic()
    traffic.messages("ab")
    stolen = {"container": "x", "link_name": "x-1"}
    lost = {"other_router": "b"}
    to_b = {"container": "x", "address": "q", "target": "b/q"}
    to_a = {"container": "x", "address": "q", "target": "a/q", "router": "b"}
    traffic.events = [
        *(event(110 + number, "link-stolen", **stolen) for number in range(4)),
        *(event(10 + number, "link-stolen", container="y", link_name="y-1") for number in range(4)),
        *(event(120 + number, "neighbour-lost", **lost) for number in range(3)),
        *(event(130 + number, "redirected", **to_b) for number in range(2)),
        *(event(140 + number, "redirected", **to_a) for number in range(2)),
        event(150, "redirected", container="z", address="other", target="b"),
    ]
    return traffic


def test_events_name_wars_loops_and_lines_that_flap(answer: Answer) -> None:
    assert named(answer) == [
        ("flapping-line", "a-b"),
        ("redirect-loop", "q"),
        ("steal-war", "x-1"),
    ]


@scene
def a_line_that_is_avoided_since_it_costs_more_is_named() -> Traffic:
    traffic = Traffic()
    traffic.messages("ab", count=(20, 0))
    traffic.messages("acb", count=(0, 20))
    traffic.events = [
        event(-50, "neighbour-found", other_router="b", cost=1),
        event(105, "neighbour-found", other_router="b", cost=50),
        event(-50, "neighbour-found", other_router="c", cost=1),
        event(105, "neighbour-found", other_router="c", cost=5),
    ]
    return traffic


def test_a_line_that_is_avoided_since_it_costs_more_is_named(answer: Answer) -> None:
    ((kind, subject, confidence, evidence),) = answer
    assert (kind, subject, confidence) == ("wrong-cost", "a-b", 0.98)
    assert evidence == {
        "cost_before": 1.0,
        "cost_after": 50.0,
        "messages_before": 20.0,
        "messages_after": 0.0,
    }


def test_without_groups_the_answer_is_the_same(
    spark: SparkSession, answers: dict[str, Answer]
) -> None:
    name = "a_line_whose_floor_has_risen_is_slow"
    flows, deliveries, events = (
        frame(spark, dataset, getattr(SCENES[name], dataset.name))
        for dataset in (FLOWS, DELIVERIES, EVENTS)
    )
    found = causes(flows, deliveries, events, BEFORE, AFTER).collect()
    assert [tuple(row) for row in found] == answers[name]


@pytest.mark.parametrize("open_end", [Period(at(0), None), Period(None, at(100))])
def test_periods_need_their_limits(spark: SparkSession, open_end: Period) -> None:
    frames = [frame(spark, dataset, []) for dataset in (FLOWS, DELIVERIES, EVENTS)]
    with pytest.raises(ValueError, match="needs a start and an end"):
        causes(frames[0], frames[1], frames[2], open_end, AFTER)


@pytest.fixture(scope="module")
def simulated(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Return what was planted in a network for each kind, and what one job named for all."""
    folder = tmp_path_factory.mktemp("incidents")
    planted = {}
    rows: dict[str, list[pa.Table]] = {dataset.name: [] for dataset in DATASETS}
    for seed, kind in enumerate(KINDS, 500):
        incident = plant(seed, (kind,))
        planted[seed] = incident.planted
        for name, table in incident.tables.items():
            case = pa.repeat(pa.scalar(seed, pa.int64()), len(table))
            rows[name].append(table.append_column("case", case))
    frames: dict[str, DataFrame] = {}
    for name, tables in rows.items():
        pq.write_table(pa.concat_tables(tables), folder / f"{name}.parquet")
        frames[name] = spark.read.parquet(str(folder / f"{name}.parquet"))
    times = Period(*BASELINE), Period(*SIMULATED)
    found = causes(
        frames["flows"], frames["deliveries"], frames["events"], *times, groups=["case"]
    ).collect()
    return {
        seed: (
            causes_,
            {
                Planted(row["kind"], row["subject"] or "")
                for row in found
                if row["case"] == seed and row["kind"] not in ("none", "unknown")
            },
        )
        for seed, causes_ in planted.items()
    }


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_is_named_wrongly(simulated: Answers, kind: str) -> None:
    planted, named = simulated[500 + list(KINDS).index(kind)]
    assert named <= set(planted)


def test_most_of_what_was_planted_is_named(
    simulated: Answers,
) -> None:
    named = {kind for _, found in simulated.values() for kind in (each.kind for each in found)}
    assert {"flapping-line", "stuck-receiver", "steal-war", "redirect-loop"} <= named
    assert len(named) >= len(KINDS) - 3
