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


POLICY = """
[policy]
enableVhostPolicy = true
[[vhost]]
hostname = "a.com"
"""
BOUND = '[[sharedAccessKey]]\nname = "z"\nkey = "z"\nvhost = "a.com"\n'
OF_BOUND = '[[claims]]\nname = "c"\nsharedAccessKeys = ["a", "z"]\n'
TENANTS = '[[listener]]\nclaims = "c"\nmultiTenant = true\nsaslMechanisms = "PLAIN"\n'


def mistakes(text: str) -> list[str]:
    """Return the mistakes in a file with some keys, each without its place."""
    return problems_in(KEYS + text)


@pytest.mark.parametrize(
    "text",
    [
        CLAIMS + '[[listener]]\nclaims = "c"',
        '[[claims]]\nname = "c"\njwksFile = "/x"\naudiences = "r"\nissuer = "i"',
        CLAIMS + 'requiredOf = "everyone"\ntokenTimeoutSeconds = 0\nleewaySeconds = 0',
        CLAIMS + 'vhost = "A.com"\n[[listener]]\nclaims = "c"\nmultiTenant = true',
        CLAIMS + '[[listener]]\nclaims = "c"\nmultiTenant = true',
        CLAIMS + 'vhost = "A.com"\n' + POLICY,
    ],
    ids=["sas", "jwt", "all", "bound", "unbound", "policy"],
)
def test_what_fits_together(text: str) -> None:
    assert mistakes(text) == []


def test_claims_without_shared_access_keys_have_no_passwords_for_plain() -> None:
    plain = '[[listener]]\nport = 1\nsaslMechanisms = "PLAIN"\nclaims = "c"\n'
    of_jwts = '[[claims]]\nname = "c"\njwksFile = "/x"\naudiences = "r"\nissuer = "i"\n'
    (said,) = mistakes(plain + of_jwts)
    assert said.startswith("listener[0].usersFile: is missing, though PLAIN or SCRAM is offered")
    assert mistakes(plain + of_jwts + 'sharedAccessKeys = "a"') == []


def test_a_tenants_key_is_a_password_for_plain() -> None:
    assert mistakes(BOUND + OF_BOUND + TENANTS) == []
    users = "usersFile = '/dev/null'\n"
    assert mistakes(CLAIMS + TENANTS + users) == []


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
        (
            BOUND + OF_BOUND + "[[listener]]\nclaims = 'c'",
            "listener[0].claims: has keys of the vhost a.com, but the listener is not multiTenant",
        ),
        (
            CLAIMS + "vhost = 'b.com'\n[[listener]]\nclaims = 'c'",
            "listener[0].claims: has keys of the vhost b.com, but the listener is not multiTenant",
        ),
        (
            BOUND + OF_BOUND + "vhost = 'b.com'",
            "claims[0].sharedAccessKeys: names z, which is a key of another vhost, a.com",
        ),
        (
            CLAIMS + "vhost = 'b.com'" + POLICY,
            "claims[0].vhost: names b.com, which does not exist; known here: a.com",
        ),
        (
            BOUND.replace("a.com", "b.com") + POLICY,
            "sharedAccessKey[2].vhost: names b.com, which does not exist; known here: a.com",
        ),
        (CLAIMS + TENANTS, "listener[0].saslMechanisms: offers PLAIN, but no key of the claims"),
    ],
    ids=lambda value: value[:30] if value[0] not in "[\n" else "text",
)
def test_what_does_not_fit(text: str, mistake: str) -> None:
    assert any(each.startswith(mistake) for each in mistakes(text)), mistakes(text)
