"""Keys that cannot be used are found before a router starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.net.claims.checking import find_unusable_claims

from support.configuring import problems_in

KEY = '[[sharedAccessKey]]\nname = "k"\nkey = "literal:very-secret"\n'


def mistakes(text: str) -> list[str]:
    """Return the mistakes in a file, each without its place."""
    return problems_in(text, find_unusable_claims)


def test_keys_that_can_be_used() -> None:
    assert mistakes(KEY + '[[claims]]\nname = "c"\nsharedAccessKeys = "k"\n') == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('[[sharedAccessKey]]\nname = "k"\nkey = "env:NOT_SET_ANYWHERE"', "sharedAccessKey[0].key"),
        ('[[claims]]\nname = "c"\naudiences = "a"\njwksFile = "/nowhere"', "claims[0].jwksFile"),
        (
            '[[claims]]\nname = "c"\naudiences = "a"\nalgorithms = "HS256"\nhmacKey = "short-s"',
            "claims[0].hmacKey",
        ),
    ],
    ids=["variable", "file", "short"],
)
def test_keys_that_cannot_be_used(text: str, place: str) -> None:
    [mistake] = mistakes(text)
    assert mistake.startswith(place)
    assert "short-s" not in mistake


def test_a_set_of_keys_is_read(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text('{"keys": []}')
    text = f'[[claims]]\nname = "c"\naudiences = "a"\njwksFile = "{tmp_path}/keys.json"'
    [mistake] = mistakes(text)
    assert "has no list of keys" in mistake
