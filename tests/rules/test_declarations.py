"""Compiled classes declare every attribute that they set."""

from __future__ import annotations

from pathlib import Path

from support.house.declarations import undeclared
from support.trees import write_tree

ROOT = Path(__file__).parents[2]


def test_the_tree_declares_its_attributes() -> None:
    assert list(undeclared(ROOT)) == []


def test_what_is_missing_is_found(tmp_path: Path) -> None:
    module = "class A:\n    def __init__(self):\n        self.a = self.b = 0\n        self.c = 1\n"
    pxd = "cdef class B:\n    cdef public int b\n\ncdef class A(B):\n    cdef public object a\n"
    tree = write_tree(tmp_path, {"router/m.py": module, "router/m.pxd": pxd})
    assert list(undeclared(tree)) == ["router/m.py: A.c is not in the .pxd"]
