"""The properties of links between routers are those that the protocol's page tells of."""

from __future__ import annotations

from pathlib import Path

from router.amqp.types import Symbol
from router.core.routers import link_properties

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "inter-router-protocol.md"


def test_each_is_on_the_page_and_no_two_are_the_same() -> None:
    keys = [value for value in vars(link_properties).values() if isinstance(value, Symbol)]
    assert len(keys) == len(set(keys))
    page = PAGE.read_text(encoding="utf-8")
    assert [key for key in keys if f"`{key}`" not in page] == []
