"""Modules: every logger of the tree belongs to one of Dispatch's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from router.config.log_levels import MODULES
from router.logs.modules import module_of

ROUTER = Path(__file__).resolve().parents[2] / "router"


@pytest.mark.parametrize(
    ("logger", "module"),
    [
        ("router", "ROUTER"),
        ("router.something.new", "ROUTER"),
        ("router.link", "ROUTER_CORE"),
        ("router.connection.of.some.kind", "SERVER"),
        ("", "DEFAULT"),
        ("elsewhere", "DEFAULT"),
    ],
)
def test_the_nearest_name_counts(logger: str, module: str) -> None:
    assert module_of(logger) == module


def test_every_logger_of_the_tree_has_a_module() -> None:
    named = [
        name
        for path in ROUTER.rglob("*.py")
        for name in re.findall(r'get_logger\("([^"]*)"', path.read_text(encoding="utf-8"))
    ]
    assert len(named) > 8
    assert {module_of(name) for name in named} <= set(MODULES) - {"DEFAULT"}
