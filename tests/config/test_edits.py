"""Edits say what is other."""

from __future__ import annotations

from router.config.edits import Edit, removed_and_added
from router.config.model import AddressSettings

from support.edits import BY_NAME

ONE, OTHER = AddressSettings(prefix="a"), AddressSettings(prefix="b")


def test_what_goes_and_what_comes_by_kind() -> None:
    address, binding = BY_NAME["address"], BY_NAME["binding"]
    edits = [Edit(address, None, ONE), Edit(address, ONE, OTHER), Edit(address, OTHER, None)]
    assert removed_and_added(edits, address.name) == ([ONE, OTHER], [ONE, OTHER])
    assert removed_and_added(edits, binding.name) == ([], [])


def test_an_edit_is_taken_back_by_another() -> None:
    undone = Edit(BY_NAME["address"], ONE, OTHER).inverse
    assert (undone.old, undone.new) == (OTHER, ONE)
