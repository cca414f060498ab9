"""Compare classes of the data plane with their `.pxd` files: an attribute that is missing there.

A compiled class has only the attributes that its `.pxd` declares; the interpreted build would not
notice one that is missing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_CLASS: Final = re.compile(r"cdef class (\w+)(?:\((\w+)\))?:")
_FIELD: Final = re.compile(r"\s+cdef (?:public |readonly )?([^(]*)$")


def undeclared(root: Path) -> Iterator[str]:
    """Yield each attribute that a compiled class sets on `self` and does not declare."""
    for pxd in sorted((root / "router").rglob("*.pxd")):
        module = pxd.with_suffix(".py")
        if not module.exists():
            continue
        declared = _declared(pxd.read_text(encoding="utf-8"))
        tree = ast.parse(module.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name in declared:
                for name in sorted(_set_on_self(node) - _with_bases(declared, node.name)):
                    yield f"{module.relative_to(root)}: {node.name}.{name} is not in the .pxd"


def _declared(text: str) -> dict[str, tuple[set[str], str | None]]:
    """Return the fields and the base of each class in the text of a `.pxd`."""
    found: dict[str, tuple[set[str], str | None]] = {}
    fields: set[str] | None = None
    for line in text.splitlines():
        if head := _CLASS.match(line):
            fields = set()
            found[head[1]] = fields, head[2]
        elif line and not line.startswith((" ", "@")):
            fields = None
        elif fields is not None and (field := _FIELD.match(line)):
            fields.update(part.split()[-1] for part in field[1].split(",") if part.split())
    return found


def _with_bases(declared: dict[str, tuple[set[str], str | None]], name: str) -> set[str]:
    fields, base = declared[name]
    return fields | _with_bases(declared, base) if base in declared else fields


def _set_on_self(node: ast.ClassDef) -> set[str]:
    return {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute)
        and isinstance(each.ctx, ast.Store)
        and isinstance(each.value, ast.Name)
        and each.value.id == "self"
    }
