"""The page about topology files says what their model says."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import attrs
import pytest

from router.config.setting import file_name
from router.simulation.reference import format_reference
from router.simulation.topology import ENTITIES

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/simulation.md"


def test_the_page_in_the_tree_is_current() -> None:
    # without a diff of two long texts
    is_current = PAGE.read_text(encoding="utf-8") == format_reference()
    assert is_current, f"{PAGE} is stale: run `make docs`"


def test_every_attribute_is_on_the_page() -> None:
    page = format_reference()
    for entity in ENTITIES:
        section = page.split(f"\n## {entity.name}\n")[1].split("\n## ")[0]
        for field in attrs.fields(entity.settings):
            assert f"| `{file_name(field.name)}` |" in section


def test_it_can_be_written_from_the_command_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "router.simulation.reference")
    runpy.run_module("router.simulation.reference", run_name="__main__")

    assert capsys.readouterr().out == format_reference()
