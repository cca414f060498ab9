"""Builders of attributes that many entity types share."""

from __future__ import annotations

from router.management.entities.attributes import AttributesOf, constant


def test_an_entity_is_identified_by_three_attributes() -> None:
    attributes = list(AttributesOf[str].identified(str.title, str.lower, "thing"))
    assert [each.name for each in attributes] == ["name", "identity", "type"]
    assert [each.read("One") for each in attributes] == [
        "One",
        "one",
        "org.apache.qpid.dispatch.thing",
    ]


def test_numbers_are_integers() -> None:
    (attribute,) = AttributesOf[object].integers((("count", "How many.", constant(3)),))
    assert (attribute.name, attribute.kind, attribute.read(None)) == ("count", "integer", 3)
