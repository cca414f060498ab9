"""The costs that are tried are those at which routes change."""

from __future__ import annotations

from router_spark.advising.observed import Observed
from router_spark.advising.prediction import Model
from router_spark.advising.thresholds import MOST_COSTS, costs_to_try

from support.pipeline.small_networks import demand, line, measured, triangle


def test_messages_leave_a_line_once_another_path_is_cheaper() -> None:
    model = Model(triangle(1))
    assert costs_to_try(model, ("a", "c")) == [3]
    assert model.with_cost(("a", "c"), 2).path("a", "c") == [("a", "c")]
    assert model.with_cost(("a", "c"), 3).path("a", "c") == [("a", "b"), ("b", "c")]


def test_messages_come_to_a_line_once_it_is_cheaper() -> None:
    model = Model(triangle(9))
    assert costs_to_try(model, ("a", "c")) == [1]
    # they go by b, and at 8 both paths would cost the same
    assert costs_to_try(model, ("a", "b")) == [9]


def test_the_only_path_stays() -> None:
    observed = Observed((line("ab", 1, there=measured(5, 1)),), (demand("ab", 5),))
    assert costs_to_try(Model(observed), ("a", "b")) == []


def test_of_very_many_costs_some_are_tried() -> None:
    # each way round has another cost
    lines = [line("ab", 1)]
    names = "cdefghijklmnopqrstuvwxyz"
    for number, name in enumerate(names):
        lines += [line(f"a{name}", 10 + number), line(f"b{name}", 10 + number)]
    demands = tuple(demand(f"{name}b", 1.0) for name in names)
    costs = costs_to_try(Model(Observed(tuple(lines), demands)), ("a", "b"))
    assert len(costs) <= 2 * MOST_COSTS
    assert costs == sorted(costs)
