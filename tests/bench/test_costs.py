"""The cost benchmark: that each operation runs, what is judged, and that a run can be resumed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.costs import __main__ as costs
from bench.costs.operations import OPERATIONS
from bench.costs.world import AtMost


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_takes_turns(name: str) -> None:
    cost = costs.measure(OPERATIONS[name], 20)
    assert cost.turns >= 1
    assert 0 < cost.longest_ms <= cost.total_ms


def test_a_turn_that_is_long_once_is_the_machine_s() -> None:
    runs = [[0.001, 0.05], [0.001, 0.002], [0.5]]
    assert costs.measure(lambda _: runs.pop(0), 7) == costs.Cost(7, 3.0, 2.0, 2)
    assert runs == [[0.5]]


def test_a_turn_that_is_long_each_time_is_a_fault() -> None:
    cost = costs.measure(lambda _: [0.02], 7)
    assert costs.faults([cost]) == ["a turn of 20.0 ms"]


def many(*totals: float, longest: float = 1.0) -> list[costs.Cost]:
    """Costs for n of 1,000, 10,000 and so on."""
    return [costs.Cost(10 ** (3 + i), total, longest, 1) for i, total in enumerate(totals)]


def test_a_linear_operation_is_in_order() -> None:
    assert costs.faults(many(10.0, 100.0, 1000.0)) == []


def test_a_quadratic_operation_is_a_fault() -> None:
    assert costs.faults(many(10.0, 1000.0, 100_000.0)) == ["grows with n to the 2.00"]


def test_a_long_turn_is_a_fault_whatever_its_n() -> None:
    assert costs.faults([costs.Cost(100, 20.0, 12.34, 2), *many(30.0)]) == ["a turn of 12.3 ms"]


def test_how_a_short_total_grows_is_not_judged() -> None:
    assert costs.exponent(many(0.001, 4.9)) is None


def test_a_run_is_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "costs.json"
    words = ["--most", "100", "--out", str(out), "--resume"]
    assert costs.main([*words, "--only", "message settled"]) == 0
    kept = costs.measured_before(out, [100])
    assert list(kept) == ["message settled: n by one disposition"]
    assert (
        costs.main([*words, "--only", "message settled", "--only", "message redelivered: n"]) == 0
    )
    both = costs.measured_before(out, [100])
    assert (
        both["message settled: n by one disposition"]
        == kept["message settled: n by one disposition"]
    )
    assert len(both) == 2
    assert "2 operations, 0 of them cost too much." in capsys.readouterr().out


def test_other_sizes_are_measured_again(tmp_path: Path) -> None:
    out = tmp_path / "costs.json"
    costs.write(out, {"query: n links": many(1.0, 2.0)})
    assert costs.measured_before(out, [100, 1000]) == {}
    assert list(costs.measured_before(out, [1000, 10_000])) == ["query: n links"]


def test_where_there_cannot_be_so_many_there_are_as_many_as_can_be() -> None:
    limited = OPERATIONS["credit given: n receivers of one address"]
    assert costs.sizes_of(limited, costs.SIZES) == [100, 1_000, 10_000, 65_536]
    few = AtMost(1_000, limited)
    assert costs.sizes_of(few, costs.SIZES) == [100, 1_000]
    assert costs.sizes_of(OPERATIONS["query: n links"], costs.SIZES) == list(costs.SIZES)
