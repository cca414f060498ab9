"""The reference page says what the entity types say, and the one in the tree is current."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from router.management.entity_types import ENTITY_TYPES
from router.management.reference import format_reference

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/management.md"


def test_the_page_in_the_tree_is_current() -> None:
    # without a diff of two long texts
    is_current = PAGE.read_text(encoding="utf-8") == format_reference()
    assert is_current, f"{PAGE} is stale: run `make docs`"


def test_every_type_and_attribute_is_on_the_page() -> None:
    page = format_reference()
    for entity_type, _ in ENTITY_TYPES.values():
        assert entity_type.meaning in page
        assert f"`{entity_type.name}`" in page or f"## {entity_type.name}\n" in page
    for each in ENTITY_TYPES["org.apache.qpid.dispatch.router.link"][0].attributes:
        assert f"| `{each.name}` | {each.kind} | {each.meaning} |" in page


def test_the_command_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(format_reference.__code__.co_filename)), run_name="__main__")
    assert capsys.readouterr().out == format_reference()
