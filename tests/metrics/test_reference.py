"""The reference page says what the catalogue says, and the one in the tree is current."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from router.metrics.catalogue import METRICS, PROCESS_METRICS
from router.metrics.dispatch import DISPATCH
from router.metrics.reference import format_reference

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/metrics.md"


def test_the_page_in_the_tree_is_current() -> None:
    # without a diff of two long texts
    is_current = PAGE.read_text(encoding="utf-8") == format_reference()
    assert is_current, f"{PAGE} is stale: run `make docs`"


def test_every_metric_is_on_the_page() -> None:
    page = format_reference()
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        assert f"| `{metric.name}` | {metric.kind} | {labels} | {metric.meaning} |" in page
    for name, kind, meaning in PROCESS_METRICS:
        assert f"| `{name}` | {kind} | {meaning} |" in page


def test_every_name_of_dispatch_is_on_the_page() -> None:
    page = format_reference()
    for each in DISPATCH:
        assert f"| `{each.name}` | {each.kind} | {each.meaning} |" in page


def test_the_command_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(format_reference.__code__.co_filename)), run_name="__main__")
    assert capsys.readouterr().out == format_reference()
