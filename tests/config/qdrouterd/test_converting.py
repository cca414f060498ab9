"""A converted file makes the same router, and keeps its comments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.config.load import parse_configuration
from router.config.mistakes import InvalidConfiguration
from router.config.qdrouterd import facts
from router.config.qdrouterd.converting import format_converted
from router.config.qdrouterd.reading import LoadedDispatch, parse_dispatch

COMMENTED = """\
# The licence.

# What it is.
router { # alone
    # Its name.
    id: A  # short
    workerThreads: 2
}
listener {
    port: 5673
    openProperties: {
        "a b": [1, "x\\ty", {"": true}],
        "\u00e9": 1.5
    }
}
log {
    module: DEFAULT
    enable: debug+
}
# The end.
"""


def moved(text: str, folder: Path | None = None) -> LoadedDispatch:
    """Return what becomes of a text in sections, whatever it is about security."""
    return parse_dispatch(
        text, "sections", source="/etc/qdrouterd.conf", folder=folder, weaker_security=True
    )


def test_comments_are_where_they_were() -> None:
    lines = format_converted(moved(COMMENTED.replace('"\u00e9"', '"e"'))).splitlines()
    assert lines[0] == "# Converted from qdrouterd.conf, a configuration of Dispatch."
    at = lines.index("# The licence.")
    assert lines[at : at + 7] == [
        "# The licence.",
        "# What it is.",
        "[router]  # alone",
        "# Its name.",
        'id = "A"  # short',
        "# defaults of Dispatch:",
        'linkStealing = "off"',
    ]
    assert lines[-2:] == ["", "# The end."]
    assert any(line.startswith("#   qdrouterd.conf:7: router.workerThreads 2:") for line in lines)


def test_nothing_of_a_password_that_was_cut_is_kept() -> None:
    text = "connector {\nsaslUsername: me\nsaslPassword: open#sesame\n}\n"
    assert "sesame" not in format_converted(moved(text))


def test_no_comment_breaks_it() -> None:
    text = "# bell \a\nrouter {\n}\n"
    parse_configuration(format_converted(moved(text)), source="f")


def test_files_are_found_from_another_folder(tmp_path: Path) -> None:
    text = "connector {\nsaslUsername: me\nsaslPassword: file:pw\n}\n"
    (tmp_path / "pw").write_text("secret", encoding="utf-8")
    found = moved(text, tmp_path)
    assert "file:pw" in format_converted(found)
    elsewhere = parse_configuration(format_converted(found, tmp_path), source="f")
    assert elsewhere == found.configuration


def value(attribute: facts.Attribute) -> st.SearchStrategy[Any]:
    """Return values of an attribute, most of which are right."""
    match attribute.kind:
        case "integer":
            return st.integers(0, 70000)
        case "boolean":
            return st.sampled_from(["yes", "no", "true", "off"])
        case "table":
            leaves = st.booleans() | st.integers(-5, 5) | st.text(max_size=5)
            return st.dictionaries(st.text("abc. ", min_size=1, max_size=4), leaves, max_size=3)
        case tuple():
            return st.sampled_from(attribute.kind)
    return st.sampled_from(["a", "a.b", "x/*", "PLAIN ANONYMOUS", "5671", "amqp", "info+", "x y"])


def section(name: str) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    """Return sections of one name."""
    attributes = facts.ENTITIES[name].attributes
    chosen = st.fixed_dictionaries({}, optional={key: value(attributes[key]) for key in attributes})
    return st.tuples(st.just(name), chosen)


@given(st.lists(st.sampled_from(sorted(facts.ENTITIES)).flatmap(section), max_size=6))
def test_what_is_converted_is_the_same(sections: list[tuple[str, dict[str, Any]]]) -> None:
    try:
        found = parse_dispatch(json.dumps(sections), "json", source="f", weaker_security=True)
    except InvalidConfiguration:
        return
    again = parse_configuration(format_converted(found), source="again")
    assert again == found.configuration


@pytest.mark.parametrize("text", ["", COMMENTED.replace('"\u00e9"', '"e"')])
def test_examples_are_the_same(text: str) -> None:
    found = moved(text)
    assert parse_configuration(format_converted(found), source="f") == found.configuration
