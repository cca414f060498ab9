"""Claims, their keys, and listeners that name them."""

from __future__ import annotations

import pytest

from support.configuring import problems_in

KEYS = """
[[sharedAccessKey]]
name = "a"
key = "x"
[[sharedAccessKey]]
name = "b"
keyName = "a"
key = "y"
"""
CLAIMS = '[[claims]]\nname = "c"\nsharedAccessKeys = "a"\n'


def mistakes(text: str) -> list[str]:
    """Return the mistakes in a file with some keys, each without its place."""
    return problems_in(KEYS + text)


@pytest.mark.parametrize(
    "text",
    [
        CLAIMS + '[[listener]]\nclaims = "c"',
        '[[claims]]\nname = "c"\njwksFile = "/x"\naudiences = "r"\nissuer = "i"',
        CLAIMS + 'requiredOf = "everyone"\ntokenTimeoutSeconds = 0\nleewaySeconds = 0',
    ],
    ids=["sas", "jwt", "all"],
)
def test_what_fits_together(text: str) -> None:
    assert mistakes(text) == []


def test_claims_without_shared_access_keys_have_no_passwords_for_plain() -> None:
    plain = '[[listener]]\nport = 1\nsaslMechanisms = "PLAIN"\nclaims = "c"\n'
    of_jwts = '[[claims]]\nname = "c"\njwksFile = "/x"\naudiences = "r"\nissuer = "i"\n'
    (said,) = mistakes(plain + of_jwts)
    assert said.startswith("listener[0].usersFile: is missing, though PLAIN or SCRAM is offered")
    assert mistakes(plain + of_jwts + 'sharedAccessKeys = "a"') == []


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("[[sharedAccessKey]]\nkey = 'z'", "sharedAccessKey[2].name: is missing"),
        ("[[sharedAccessKey]]\nname = 'a'\nkey = 'z'", 'sharedAccessKey[2].name: "a" is taken'),
        ("[[sharedAccessKey]]\nname = 'd'", "sharedAccessKey[2].key: is missing"),
        ("[[claims]]\nsharedAccessKeys = 'a'", "claims[0].name: is missing"),
        (CLAIMS + CLAIMS, 'claims[1].name: "c" is taken'),
        ("[[claims]]\nname = 'c'", "claims[0]: accepts no token"),
        (
            "[[claims]]\nname = 'c'\nsharedAccessKeys = 'z'",
            ("claims[0].sharedAccessKeys: names z, which does not exist; known here: a, b"),
        ),
        (
            "[[claims]]\nname = 'c'\nsharedAccessKeys = ['a', 'b']",
            "claims[0].sharedAccessKeys: names a and b, which have the same keyName",
        ),
        ("[[claims]]\nname = 'c'\njwksFile = '/x'", "claims[0].audiences: is missing"),
        (CLAIMS + "issuer = 'i'", "claims[0].issuer: has no effect"),
        (
            "[[listener]]\nclaims = 'z'",
            "listener[0].claims: names z, which does not exist; there is no claims yet: add one",
        ),
        (
            CLAIMS + "[[listener]]\nclaims = 'c'\nrole = 'inter-router'",
            "listener[0].claims: has no effect on a listener for other routers",
        ),
    ],
    ids=lambda value: value[:30] if value[0] != "[" else "text",
)
def test_what_does_not_fit(text: str, mistake: str) -> None:
    assert any(each.startswith(mistake) for each in mistakes(text)), mistakes(text)
