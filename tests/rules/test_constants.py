"""Constants that compiled modules repeat have the values of the module that defines them."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def integers(path: Path) -> dict[str, int]:
    """Return the names in capitals that a module binds to whole numbers."""
    found = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Constant(value=int() as value)
            ) if name.isupper():
                found[name] = value
    return found


def test_treatments_and_sides_have_one_number_each() -> None:
    defined = integers(ROOT / "router/core/model/address.py")
    assert {"CLOSEST", "MULTICAST", "HERE"} <= defined.keys()
    repeated = 0
    for path in sorted((ROOT / "router/core").rglob("*.py")):
        for name, value in integers(path).items():
            if name in defined and path.name != "address.py":
                assert value == defined[name], f"{path}: {name} is {defined[name]} in address.py"
                repeated += 1
    assert repeated > 0
