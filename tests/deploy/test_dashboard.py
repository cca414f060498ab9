"""The dashboard in the tree is current, as Grafana wants it, and reads metrics that there are."""

from __future__ import annotations

import importlib.util
import json
import sys
from typing import Any

import pytest

from support.prometheus import DASHBOARD, ROOT

GRAPHS = ("timeseries", "stat")


def load(name: str = "dashboard") -> Any:
    """Import the module that generates the dashboard, from the folder of the dashboard."""
    path = ROOT / "deploy/prometheus/dashboard.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # attrs looks it up
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


MADE = load("trioute_dashboard")


def test_the_file_in_the_tree_is_current() -> None:
    # To bring it up to date: make docs
    assert DASHBOARD.read_text(encoding="utf-8") == MADE.format_dashboard()


def test_a_metric_that_there_is_not_is_found() -> None:
    with pytest.raises(KeyError, match="trioute_connectoins"):
        MADE.names_in("sum(trioute_connectoins)")
    assert MADE.names_in("up + trioute_ready + trioute_ready") == ["up", "trioute_ready"]


def test_panels_are_what_grafana_can_show() -> None:
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    assert board["schemaVersion"] >= 36
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["type"] in ("row", *GRAPHS)
        assert panel["title"]
        if panel["type"] != "row":
            assert panel["description"]
            assert panel["targets"]
            for target in panel["targets"]:
                assert set(target) >= {"refId", "expr", "legendFormat", "datasource"}


def test_no_panel_lies_on_another() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= MADE.COLUMNS
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies on {taken[x, y]}"
                taken[x, y] = panel["title"]
