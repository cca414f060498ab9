"""Documents that were read are values: equal if their contents are."""

from __future__ import annotations

from router.config.qdrouterd.document import Document, GivenAttribute, Section


def test_documents_are_values() -> None:
    one, other = (
        Document((Section("router", 1, {"id": GivenAttribute("A", 2)}),)) for _ in range(2)
    )
    assert one == other
    assert one.sections[0].given["id"].above == ()
