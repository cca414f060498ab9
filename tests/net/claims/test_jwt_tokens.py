"""JWTs: algorithms by kind of key, times, audiences, rights; and the usual attacks."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from router.core.addresses.claims import Grant, TokenRefused
from router.net.claims.jwt_tokens import (
    JwtKey,
    JwtRules,
    KeyUnusable,
    algorithms_of,
    check_usable,
    covers_audience,
    key_set,
    public_key,
    secret_key,
)

from support.tokens import NOW, hs256, segment, unpadded

SECRET = b"s" * 64
RSA = rsa.generate_private_key(65537, 2048)
PEM = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()
GOOD: dict[str, Any] = {
    "exp": NOW + 60,
    "aud": "router",
    "iss": "https://issuer",
    "sub": "me",
    "rights": ["send:orders", "listen:orders"],
}
EVERY = frozenset({"RS256", "RS384", "RS512", "PS256", "ES256", "EdDSA", "HS256", "HS384", "HS512"})


def rules(*keys: JwtKey, algorithms: frozenset[str] = EVERY, **fields: Any) -> JwtRules:
    """Return rules with these keys, and leeway of a minute."""
    given = {
        "audiences": frozenset({"router", "other"}),
        "issuer": "https://issuer",
        "rights_claim": "rights",
        "leeway_s": 60.0,
    }
    return JwtRules(keys or (secret_key(SECRET),), algorithms, **{**given, **fields})


def refused(token: str, of: JwtRules | None = None) -> TokenRefused:
    """Return the refusal of a token."""
    with pytest.raises(TokenRefused) as caught:
        (of or rules()).verify(token, NOW)
    return caught.value


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (RSA, "RS256"),
        (RSA, "RS512"),
        (RSA, "PS256"),
        (EC, "ES256"),
        (ED, "EdDSA"),
        (SECRET, "HS256"),
        (SECRET, "HS512"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_valid_tokens(key: Any, algorithm: str) -> None:
    token = jwt.encode(GOOD, key, algorithm)
    made = secret_key(key) if isinstance(key, bytes) else JwtKey(
        key.public_key(), algorithms_of(key.public_key()))  # fmt: skip
    verified = rules(made).verify(token, NOW)
    assert verified.grants == (Grant("orders", 3),)
    assert verified.lifetime_s == 120.0
    assert verified.subject == "https://issuer me"


# Attacks.


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "nOnE", "", None, 5, ["HS256"]], ids=repr)
def test_no_algorithm_is_no_signature(alg: object) -> None:
    unsigned = f"{segment({'alg': alg})}.{segment(GOOD)}."
    assert refused(unsigned).status in (400, 401)
    assert refused(unsigned, rules(public_key(PEM))).status in (400, 401)


@pytest.mark.parametrize(
    "secret",
    [PEM, PEM.strip(), PEM.replace(b"\n", b"")],
    ids=["PEM", "stripped", "joined"],
)
def test_a_public_key_is_no_secret(secret: bytes) -> None:
    # even with HMAC allowed, for another key
    of = rules(public_key(PEM), secret_key(SECRET))
    assert refused(hs256(secret, GOOD), of).status == 401
    der = RSA.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert refused(hs256(der, GOOD), of).status == 401


def test_a_key_is_only_for_algorithms_of_its_kind() -> None:
    assert refused(jwt.encode(GOOD, EC, "ES256"), rules(public_key(PEM))).status == 401
    assert public_key(PEM).algorithms.isdisjoint({"HS256", "ES256", "EdDSA", "none"})
    assert secret_key(SECRET).algorithms == {"HS256", "HS384", "HS512"}
    assert secret_key(b"x" * 32).algorithms == {"HS256"}


def test_an_algorithm_that_is_not_allowed_is_refused() -> None:
    only = rules(algorithms=frozenset({"RS256"}))
    assert "alg" in refused(hs256(SECRET, GOOD), only).description


@pytest.mark.parametrize(
    "kid",
    ["../../../dev/null", "/etc/passwd", "' OR 1=1", "a" * 10_000, "\0", 5, None, ["a"], {}],
    ids=lambda value: repr(value)[:20],
)
def test_a_kid_only_selects_among_the_keys(kid: object) -> None:
    named = rules(secret_key(SECRET, "right"))
    other = hs256(b"", GOOD, kid=kid)
    assert refused(other, named).status in (400, 401)
    if kid is None:
        # it may be left out
        assert named.verify(hs256(SECRET, GOOD), NOW).grants


def test_a_kid_selects() -> None:
    both = rules(secret_key(SECRET, "a"), secret_key(b"t" * 32, "b"))
    assert both.verify(hs256(SECRET, GOOD, kid="a"), NOW).grants
    assert refused(hs256(SECRET, GOOD, kid="b"), both).status == 401


def test_keys_in_the_token_are_ignored() -> None:
    own = {"kty": "oct", "k": unpadded(b"m" * 32)}
    token = hs256(b"m" * 32, GOOD, jwk=own, jku="https://evil/keys", x5u="https://evil")
    assert refused(token).status == 401


@pytest.mark.parametrize(
    "header",
    [{"crit": ["exp"], "exp": 1}, {"b64": False, "crit": ["b64"]}, {"b64": False}],
    ids=repr,
)
def test_extensions_of_the_header_are_refused(header: dict[str, object]) -> None:
    assert refused(hs256(SECRET, GOOD, **header)).status in (400, 401)


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": str(int(NOW) + 60)},
        {"exp": -1},
        {"exp": True},
        {"exp": [NOW + 60]},
        {"exp": None},
        {"exp": 1e300},
        {"exp": 10**400},
        {"exp": NOW - 61},
        {"nbf": NOW + 61},
        {"iat": NOW + 61},
        {"nbf": "0"},
        {"aud": "another"},
        {"aud": ["another"]},
        {"aud": None},
        {"aud": {"router": 1}},
        {"iss": "https://issuer/"},
        {"iss": None},
        {"rights": None},
        {"rights": []},
        {"rights": "openid profile"},
        {"rights": 5},
        {"rights": ["send:"]},
        {"rights": {"orders": ["Own"]}},
        {"rights": {"orders": 5}},
        {"rights": {"or\nders": ["Send"]}},
        {"rights": [f"send:{n}" for n in range(257)]},
        {"rights": ["send:" + "a" * 3000]},
    ],
    ids=lambda value: repr(value)[:30],
)
def test_claims_that_are_refused(claims: dict[str, object]) -> None:
    assert refused(hs256(SECRET, {**GOOD, **claims})).status in (400, 401)


@pytest.mark.parametrize(
    ("claims", "lifetime_s"),
    [({"exp": NOW + 0.5}, 60.5), ({"exp": NOW - 59}, 1.0), ({"nbf": NOW + 59}, 120.0)],
    ids=repr,
)
def test_leeway_and_fractions(claims: dict[str, object], lifetime_s: float) -> None:
    assert rules().verify(hs256(SECRET, {**GOOD, **claims}), NOW).lifetime_s == lifetime_s


@pytest.mark.parametrize(
    ("rights", "grants"),
    [
        ("openid send:a listen:a/b", {"a": 1, "a/b": 2}),
        (["SEND:a", "Manage:*", 5], {"a": 1, "": 4}),
        ({"a": ["Send", "listen"], "*": "Manage"}, {"a": 3, "": 4}),
        (["send:amqps://host/a/"], {"a": 1}),
        (["send:a", "listen:a", "send:a"], {"a": 3}),
    ],
    ids=repr,
)
def test_forms_of_rights(rights: object, grants: dict[str, int]) -> None:
    verified = rules().verify(hs256(SECRET, {**GOOD, "rights": rights}), NOW)
    assert {each.path: each.rights for each in verified.grants} == grants


@pytest.mark.parametrize(
    "payload",
    [
        b'{"exp": 1, "exp": 2000000000}',
        b'{"exp": NaN}',
        b'{"exp": Infinity}',
        b"[]",
        b"5",
        b"\xff",
        b"[" * 10_000,
        b'{"exp": ' + b"9" * 5000 + b"}",
        b"",
    ],
    ids=lambda value: repr(value[:20]),
)
def test_payloads_that_are_refused(payload: bytes) -> None:
    signed = f"{segment({'alg': 'HS256'})}.{unpadded(payload)}"
    signature = unpadded(hmac.digest(SECRET, signed.encode(), "sha256"))
    assert refused(f"{signed}.{signature}").status in (400, 401)


@pytest.mark.parametrize(
    "token",
    ["", ".", "..", "a.b.c", "a.b", "\u00e9.\u00e9.\u00e9", "." * 1000, "e30.e30.e30",
     unpadded(b"[" * 9000) + ".e30.e30"],
    ids=lambda value: repr(value[:20]),
)  # fmt: skip
def test_what_is_no_jwt(token: str) -> None:
    assert refused(token).status in (400, 401)


def test_a_changed_token_is_refused() -> None:
    head, claims, signature = hs256(SECRET, GOOD).split(".")
    wider = segment({**GOOD, "rights": ["send:*"]})
    assert refused(f"{head}.{wider}.{signature}").status == 401
    assert refused(f"{head}.{claims}.").status in (400, 401)
    assert refused(f"{head}.{claims}.{signature[:-2]}").status in (400, 401)


def test_few_keys_are_tried() -> None:
    many = [secret_key(b"%032d" % n) for n in range(100)]
    assert rules(*many).verify(hs256(b"%032d" % 3, GOOD), NOW).grants
    for last in (4, 99):
        error = refused(hs256(b"%032d" % last, GOOD), rules(*many))
        assert error.status == 401
        assert error.description.endswith("only the first 4 keys of 100 were tried: name one (kid)")


# Keys.


def jwks(*keys: object) -> bytes:
    """Return a JWK set."""
    return json.dumps({"keys": keys}).encode()


def jwk(algorithm: Any, key: Any, **more: object) -> dict[str, object]:
    """Return a key as a JWK."""
    told: dict[str, object] = json.loads(algorithm.to_jwk(key))
    return {**told, **more}


def test_a_key_set_has_keys_of_all_kinds() -> None:
    of_rsa = jwk(jwt.algorithms.RSAAlgorithm, RSA.public_key(), kid="r", use="sig", alg="RS256")
    of_ec = jwk(jwt.algorithms.ECAlgorithm, EC.public_key(), kid="e")
    of_ed = jwk(jwt.algorithms.OKPAlgorithm, ED.public_key(), kid="d")
    secret = {"kty": "oct", "k": unpadded(SECRET), "kid": "s"}
    encrypting = {**of_rsa, "use": "enc"}
    keys = key_set(jwks(of_rsa, of_ec, of_ed, secret, encrypting))
    assert [each.kid for each in keys] == ["r", "e", "d", "s"]
    assert keys[0].algorithms == {"RS256"}
    of = rules(*keys)
    for key, algorithm, kid in ((RSA, "RS256", "r"), (EC, "ES256", "e"), (ED, "EdDSA", "d")):
        token = jwt.encode(GOOD, key, algorithm, headers={"kid": kid})
        assert of.verify(token, NOW).grants
    assert SECRET.decode() not in repr(keys)


def test_the_private_part_of_a_key_is_not_kept() -> None:
    [key] = key_set(jwks(jwk(jwt.algorithms.RSAAlgorithm, RSA)))
    assert not hasattr(key.key, "private_numbers")


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"{",
        b"[]",
        b'{"keys": []}',
        b'{"keys": [5]}',
        b'{"keys": [{"kty": "none"}]}',
        b'{"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]}',
        b'{"keys": [{"kty": "RSA"}]}',
        b'{"keys": [{"kty": "oct", "k": "c2hvcnQ"}]}',
        b'{"keys": [{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}]}',
        b'{"keys": [{"kty": "OKP", "crv": "Ed448", "x": "AA"}]}',
        jwks(*[{"kty": "oct", "k": unpadded(SECRET)}] * 101),
        jwks({"kty": "oct", "k": unpadded(SECRET), "alg": "RS256"}),
        jwks({"kty": "oct", "k": unpadded(SECRET), "kid": 5}),
        jwks({"kty": "oct", "k": unpadded(SECRET), "use": "enc"}),
        b"[" * 100_000,
    ],
    ids=lambda value: repr(value[:40]),
)
def test_key_sets_that_cannot_be_used(octets: bytes) -> None:
    with pytest.raises(KeyUnusable):
        key_set(octets)


def test_keys_in_pem_form() -> None:
    assert public_key(PEM).algorithms >= {"RS256", "PS512"}
    private = RSA.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for octets in (b"", b"x", private, base64.b64encode(PEM)):
        with pytest.raises(KeyUnusable):
            public_key(octets)


def test_small_and_odd_keys_are_refused() -> None:
    small = rsa.generate_private_key(65537, 1024).public_key()
    with pytest.raises(KeyUnusable, match="1024 bits"):
        algorithms_of(small)
    with pytest.raises(KeyUnusable):
        algorithms_of(ec.generate_private_key(ec.SECP256K1()).public_key())
    with pytest.raises(KeyUnusable, match="HS256"):
        check_usable([secret_key(b"x" * 32)], frozenset({"RS256"}))
    with pytest.raises(KeyUnusable, match="32 bytes"):
        secret_key(b"short")


def test_audiences_are_covered_by_paths() -> None:
    verified = rules().verify(hs256(SECRET, GOOD), NOW)
    assert covers_audience(verified, ["orders/eu", "orders", ""])
    assert not covers_audience(verified, ["secret", ""])
