"""An entity on its way: lines, what it may have, and our own defaults."""

from __future__ import annotations

import attrs

from router.config.qdrouterd.document import GivenAttribute, Section
from router.config.qdrouterd.table import Table


def test_lines_and_defaults() -> None:
    given = {"port": GivenAttribute("1", 5)}
    table = Table("listener", ("listener", 0), Section("listener", 4, given), given=given)
    assert (table.line_of("port"), table.line_of("host")) == (5, 4)
    assert table.own_default("host") == "127.0.0.1"
    assert table.own_default("name") is attrs.NOTHING
    assert table.own_default("what") is attrs.NOTHING


def test_it_may_have_some_alone() -> None:
    table = Table("listener", ("listener", 0), Section("listener", 4, {}))
    assert table.has("role")
    table.allowed_attributes = ("host",)
    assert table.has("host")
    assert not table.has("role")
