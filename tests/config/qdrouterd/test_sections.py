"""The section syntax, with all that is odd about it; whatever is written reads back."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.config.qdrouterd.document import Document
from router.config.qdrouterd.sections import HASH_IS_NO_COMMENT, read_sections


def read(text: str) -> Document:
    """Return what is read of a text in which nothing is wrong."""
    document = read_sections(text, "f")
    assert document.mistakes == ()
    return document


def tables(document: Document) -> list[tuple[str, dict[str, Any]]]:
    """Return what it says, and nothing of where."""
    return [
        (section.name, {key: each.value for key, each in section.given.items()})
        for section in document.sections
    ]


def test_sections_with_their_lines() -> None:
    document = read("\n# one\nrouter {\n  mode: standalone\n\n  id : A.B\n}\nlistener{\n}\n")
    assert tables(document) == [("router", {"mode": "standalone", "id": "A.B"}), ("listener", {})]
    assert [section.line for section in document.sections] == [3, 8]
    assert [each.line for each in document.sections[0].given.values()] == [4, 6]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end(end: str) -> None:
    assert tables(read(end.join(["router {", "\tid:\tA", "}"]))) == [("router", {"id": "A"})]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("id: a # comment", "a"),
        ("id: a#comment", "a"),
        ("pattern: a.# # comment", "a.#"),
        ("pattern: #", "#"),
        ("bindingKey: a.*.#", "a.*.#"),
        ("hostname: h#1", "h#1"),
        ("prefix: a.#", "a."),
        ("metadata: two words  ", "two words"),
        ("metadata: a: b", "a: b"),
        (r"metadata: a\tb\\c\"d", 'a\tb\\c"d'),
        ("metadata: caf\u00e9", "caf\u00e9"),
    ],
)
def test_values(line: str, value: str) -> None:
    ((_, given_),) = tables(read(f"router {{\n{line}\n}}"))
    assert list(given_.values()) == [value]


def test_comments_are_kept() -> None:
    document = read("# over\nrouter { # beside\n# above\nid: A # behind\nmode: b#c\n}\n# below\n")
    (section,) = document.sections
    assert (section.above, section.beside) == (("# over",), "# beside")
    assert (section.given["id"].above, section.given["id"].beside) == (("# above",), "# behind")
    assert document.below == ("# below",)
    assert not section.given["id"].cut
    assert section.given["mode"].cut


def test_json_over_several_lines() -> None:
    text = """
    listener {
        openProperties: {
            "a": 1,
            # a comment
            "b": { "c": "}, ]", "d": [1, 2,], },
        }
        port: 1
    }
    """
    properties = {"a": 1, "b": {"c": "}, ]", "d": [1, 2]}}
    assert tables(read(text)) == [("listener", {"openProperties": properties, "port": "1"})]


def test_tables_without_quotes_as_they_once_were() -> None:
    text = "vhost {\ngroups: {\n$default: {\nusers: a, b  # all\n\n}\nadmin: {\n}\n}\nid: h\n}"
    groups = {"$default": {"users": "a, b"}, "admin": {}}
    assert tables(read(text)) == [("vhost", {"groups": groups, "id": "h"})]


def test_json_on_one_line() -> None:
    text = 'listener {\nopenProperties: {"a": {"b": null}}\nport: 1\n}'
    assert tables(read(text))[0][1] == {"openProperties": {"a": {"b": None}}, "port": "1"}


def test_what_is_given_twice() -> None:
    (section,) = read("router {\nid: A\nid: B\n}").sections
    assert section.given["id"].value == "B"
    assert section.repeated == (("id", 3),)


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        ("router\n{\n}\n", ["f:1: cannot be read", "f:2: cannot be read", "f:3: cannot be read"]),
        ("router { id: A }\nlistener {\n}", ["f:1: router: has text after the opening brace"]),
        ("router {\nid: A\n", ["f:1: router: is not closed"]),
        ("router {\nid: A\nlistener {\n}", ["f:3: listener: begins before the closing brace"]),
        ("router {\nid:\n}", ["f:2: router.id: has no value"]),
        ("router {\nid: # A\n}", ["f:2: router.id: has no value"]),
        ("router {\nid A\n}", ["f:2: router: cannot be read"]),
        ('router {\nid: "A"\n}', ["f:2: router.id: has an unescaped quotation mark"]),
        (
            "router {\nid: a\\\n}",
            ["f:2: router.id: has an unescaped quotation mark or an invalid escape"],
        ),
        ("listener {\nopenProperties: {\n'a': 1\n}\n}", ["f:3: listener.openProperties: is not"]),
        ("listener {\nopenProperties: {\n\n", ["f:2: listener.openProperties: is not closed"]),
    ],
)
def test_mistakes_name_their_line(text: str, mistakes: list[str]) -> None:
    found = [str(mistake) for mistake in read_sections(text, "f").mistakes]
    assert [each.startswith(wanted) for each, wanted in zip(found, mistakes, strict=False)] == [
        True
    ] * len(mistakes), found


def test_no_mistake_shows_a_password_without_a_colon() -> None:
    for line in ("saslPassword secret", "saslPassword=secret", "password\tsecret"):
        (mistake,) = read_sections(f"connector {{\n{line}\n}}", "f").mistakes
        assert "assword" in mistake.problem
        assert "secret" not in str(mistake)


def test_no_mistake_shows_a_value() -> None:
    found = read_sections('connector {\nsaslPassword: se"cret\nsasl password: se\n}', "f").mistakes
    assert len(found) == 2
    assert not any("se" in mistake.problem.replace("password", "") for mistake in found[1:])
    assert "cret" not in str(found)


NAMES = st.text(string.ascii_letters + "-_", min_size=1, max_size=12)
# what surrounds a value is no part of it, and a line that begins with { is JSON
VALUES = st.text(st.characters(codec="utf-8"), min_size=1).filter(
    lambda text: text.strip() == text and text[0] != "{"
)
PROPERTIES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.dictionaries(st.text(max_size=8), inner, max_size=3) | st.lists(inner),
    max_leaves=8,
)


def write(sections: list[tuple[str, dict[str, Any]]]) -> str:
    """Write sections as Dispatch's users do."""
    lines = []
    for name, attributes in sections:
        lines.append(f"{name} {{")
        for key, value in attributes.items():
            if isinstance(value, dict):
                lines.append(f"    {key}: {json.dumps(value, indent=8)}")
            else:
                escaped = json.dumps(value)[1:-1]
                lines.append(f"    {key}: {escaped}".replace("#", "\\u0023"))
        lines.append("}")
    return "\n".join(lines)


@given(
    st.lists(
        st.tuples(
            NAMES,
            st.dictionaries(
                NAMES.filter(lambda name: name not in HASH_IS_NO_COMMENT),
                VALUES | st.dictionaries(st.text(max_size=8), PROPERTIES, max_size=4),
                max_size=5,
            ),
        ),
        max_size=5,
    )
)
def test_whatever_is_written_reads_back(sections: list[tuple[str, dict[str, Any]]]) -> None:
    assert tables(read(write(sections))) == sections


@given(st.text() | st.text('router {}:"#\\[],\n1'))
def test_nothing_makes_the_reader_fail(text: str) -> None:
    document = read_sections(text, "f")
    assert all(mistake.line > 0 for mistake in document.mistakes)
