"""The JSON form: what is in it, its lines, and every mistake's own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.config.qdrouterd.json_form import read_json


def test_entities_with_their_lines() -> None:
    text = (
        '# first\n[\n  ["router", {"id": "A",\n   "workerThreads": 4}],\n # x\n  ["log", {}]\n]\n'
    )
    document = read_json(text, "f")
    assert document.mistakes == ()
    assert [(section.name, section.line) for section in document.sections] == [
        ("router", 3),
        ("log", 6),
    ]
    assert [(each.value, each.line) for each in document.sections[0].given.values()] == [
        ("A", 3),
        (4, 4),
    ]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("[", "f:1: is not JSON: an entity needs a ["),
        ('[\n"router"]', "f:2: is not JSON: an entity needs a ["),
        ("[\n[1, {}]]", "f:2: has an entity whose name is not text"),
        ('[["router", []]]', "f:1: is not JSON: the attributes of router needs a {"),
        ('[["router",\n{"id": A}]]', "f:2: is not JSON in the value of router.id: Expecting value"),
        ('[["router",\n{1: 2}]]', "f:2: router: has an attribute whose name is not text"),
        ("[]\n\n[]", "f:3: has text after the end of the list"),
        (f'[["router", {{"id": {"[" * 100_000}}}]]', "f:1: is nested too deeply in the value"),
        (f'[["router", {{"id": {"1" * 10_000}}}]]', "f:1: has a number with too many digits"),
    ],
)
def test_mistakes_name_their_line(text: str, mistake: str) -> None:
    (found,) = read_json(text, "f").mistakes
    assert str(found).startswith(mistake)


def test_what_is_given_twice() -> None:
    (section,) = read_json('[["router", {"id": "A",\n"id": "B"}]]', "f").sections
    assert section.given["id"].value == "B"
    assert section.repeated == (("id", 2),)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.dictionaries(st.text(), inner, max_size=3) | st.lists(inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.tuples(st.text(), st.dictionaries(st.text(), JSON, max_size=4)), max_size=4))
def test_whatever_is_written_reads_back(entities: list[tuple[str, dict[str, Any]]]) -> None:
    document = read_json(json.dumps(entities, indent=1), "f")
    assert document.mistakes == ()
    assert [
        (section.name, {key: each.value for key, each in section.given.items()})
        for section in document.sections
    ] == entities


@given(st.text() | st.text('[]{}:,"\\#\na1'))
def test_nothing_makes_the_reader_fail(text: str) -> None:
    assert all(mistake.line > 0 for mistake in read_json(text, "f").mistakes)
