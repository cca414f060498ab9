"""Each kind: what it takes and makes of it, what it refuses, and that it refuses in one way."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from router.config import kinds
from router.config.kinds import Kind, ValueNotAllowed, address_tokens
from router.config.open_properties import open_properties
from router.config.secret import Secret

KINDS = {
    "flag": kinds.flag(),
    "whole_number": kinds.whole_number(1, 10, "frames"),
    "phase": kinds.phase(),
    "priority": kinds.priority(),
    "seconds": kinds.seconds(100, zero="never"),
    "choice": kinds.choice(("closest", "balanced")),
    "text": kinds.text(5),
    "word": kinds.text(5, spaces=False),
    "port": kinds.port(0),
    "connector_port": kinds.port(1),
    "letters": kinds.letters("ns12"),
    "words": kinds.words(("ANONYMOUS", "PLAIN")),
    "host": kinds.host(),
    "hosts": kinds.hosts(),
    "file_path": kinds.file_path(),
    "secret": kinds.secret(),
    "secret_reference": kinds.secret_reference(),
    "address_prefix": kinds.address_prefix(),
    "address_pattern": kinds.address_pattern(),
    "open_properties": open_properties(),
}

TAKEN = [
    ("flag", True, True),
    ("flag", False, False),
    ("phase", 0, 0),
    ("phase", 9, 9),
    ("priority", -1, -1),
    ("priority", 9, 9),
    ("whole_number", 1, 1),
    ("whole_number", 10, 10),
    ("seconds", 0, 0.0),
    ("seconds", 0.001, 0.001),
    ("seconds", 16, 16.0),
    ("choice", "closest", "closest"),
    ("text", "a b", "a b"),
    ("text", "été", "été"),
    ("word", "a-b.c", "a-b.c"),
    ("port", 0, 0),
    ("port", 65535, 65535),
    ("port", "amqp", 5672),
    ("port", "amqps", 5671),
    ("letters", "ns1", "ns1"),
    ("words", ["PLAIN", "ANONYMOUS"], ("PLAIN", "ANONYMOUS")),
    ("words", "ANONYMOUS PLAIN", ("ANONYMOUS", "PLAIN")),
    ("words", "PLAIN", ("PLAIN",)),
    ("host", "broker-2.example.org", "broker-2.example.org"),
    ("host", "::1", "::1"),
    ("hosts", [], ()),
    ("hosts", ["a", "10.0.0.1"], ("a", "10.0.0.1")),
    ("file_path", "a/b", Path("a/b")),
    ("secret", "x", Secret("literal", "x")),
    ("secret", "file:/x", Secret("file", "/x")),
    ("secret_reference", "env:NAME", Secret("env", "NAME")),
    ("secret_reference", "file:pass.txt", Secret("file", "pass.txt")),
    ("address_prefix", "a", "a"),
    ("address_prefix", "a/b.c/", "a/b.c/"),
    ("address_pattern", "#", "#"),
    ("address_pattern", "a.*.b/#", "a.*.b/#"),
]

REFUSED = [
    ("flag", 1),
    ("flag", "yes"),
    ("priority", 10),
    ("priority", -2),
    ("priority", True),
    ("phase", -1),
    ("phase", 10),
    ("phase", True),
    ("phase", "0"),
    ("whole_number", 0),
    ("whole_number", 11),
    ("whole_number", True),
    ("whole_number", 1.0),
    ("whole_number", "1"),
    ("seconds", -1),
    ("seconds", 0.0001),
    ("seconds", 101),
    ("seconds", float("nan")),
    ("seconds", float("inf")),
    ("seconds", True),
    ("seconds", "16"),
    ("choice", "Closest"),
    ("choice", ["closest"]),
    ("text", ""),
    ("text", "123456"),
    ("text", "a\nb"),
    ("text", 5),
    ("word", "a b"),
    ("port", -1),
    ("port", 65536),
    ("port", "5672"),
    ("port", True),
    ("connector_port", 0),
    ("letters", ""),
    ("letters", "nn"),
    ("letters", "x"),
    ("letters", 1),
    ("words", []),
    ("words", ""),
    ("words", ["plain"]),
    ("words", ["PLAIN", "PLAIN"]),
    ("words", ["PLAIN", 1]),
    ("words", {"PLAIN": 1}),
    ("host", ""),
    ("host", "a b"),
    ("host", "a:5672"),
    ("host", "[::1]"),
    ("host", "amqp://a"),
    ("host", "a" * 256),
    ("host", 1),
    ("hosts", "a"),
    ("hosts", ["a", 1]),
    ("hosts", ["a", "A"]),
    ("hosts", ["*.example.org"]),
    ("file_path", ""),
    ("file_path", "a\0b"),
    ("file_path", 1),
    ("secret", ""),
    ("secret", "pass:"),
    ("secret", "env:A\nB"),
    ("secret", 1),
    ("secret_reference", "text"),
    ("secret_reference", "pass:text"),
    ("secret_reference", "env:"),
    ("secret_reference", 1),
    ("address_prefix", ""),
    ("address_prefix", "/"),
    ("address_prefix", "a//b"),
    ("address_prefix", "a/*"),
    ("address_prefix", "a b"),
    ("address_prefix", "a" * 256),
    ("address_pattern", "a*"),
    ("address_pattern", "a/##"),
    ("address_pattern", ""),
    ("address_pattern", "a..b"),
    ("address_pattern", 1),
]

anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.dates()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(("kind", "value", "read"), TAKEN)
def test_what_is_allowed_is_read(kind: str, value: object, read: object) -> None:
    found = KINDS[kind].read(value)
    assert found == read
    assert type(found) is type(read)


@pytest.mark.spec("5.3.3.1-1")
@pytest.mark.parametrize(("kind", "value"), REFUSED)
def test_what_is_not_allowed_is_refused(kind: str, value: object) -> None:
    with pytest.raises(ValueNotAllowed):
        KINDS[kind].read(value)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@given(value=anything)
def test_nothing_but_refused_leaves(kind: Kind, value: object) -> None:
    try:
        found = kind.read(value)
    except ValueNotAllowed:
        return
    assert kind.read(found) == found


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("flag", "true or false"),
        ("phase", "a phase from 0 to 9"),
        ("whole_number", "a whole number of frames from 1 to 10"),
        ("seconds", "a number of seconds: 0 (never), or from 0.001 to 100"),
        ("choice", '"closest" or "balanced"'),
        (
            "port",
            'a whole number from 0 to 65535 (0: any free port), "amqp" (5672) or "amqps" (5671)',
        ),
        ("connector_port", 'a whole number from 1 to 65535, "amqp" (5672) or "amqps" (5671)'),
        ("word", "text of 1 to 5 printable characters without spaces"),
    ],
)
def test_the_rule_in_words(kind: str, words: str) -> None:
    assert KINDS[kind].words == words


def test_a_zero_that_is_special_is_said() -> None:
    kind = kinds.whole_number(0, 5, "addresses", zero="none")
    assert kind.words == "a whole number of addresses from 0 to 5 (0: none)"


def test_only_passwords_are_secret() -> None:
    assert [name for name, kind in KINDS.items() if kind.secret] == ["secret", "secret_reference"]


def test_tokens_end_at_either_separator() -> None:
    assert address_tokens("a/b.c") == ("a", "b", "c")
    assert address_tokens("a/b./") == ("a", "b")


def test_a_prefix_covers_what_a_pattern_may() -> None:
    assert kinds.tokens_covered("a.b", None) == kinds.tokens_covered(None, "a/b/#")
    assert kinds.tokens_covered("a", None) != kinds.tokens_covered(None, "a")
    assert kinds.tokens_covered(None, None) is None
    assert kinds.tokens_covered("a", "a") is None
