"""Verify signed JSON Web Tokens (JWT, RFC 7519; JWS, RFC 7515) with PyJWT.

Each key is used only with the algorithms of its own kind: a public key never serves as an HMAC
secret, and no key allows the algorithm "none". Keys in a token's header (jku, jwk, x5u) are
ignored; `kid` selects among the configured keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from router.core.addresses.claims import (
    ANY,
    RIGHTS,
    Grant,
    TokenRefused,
    VerifiedToken,
    host_in,
    path_in,
)
from router.errors import ConfigurationError

# Limits of what checking one token costs: how many keys are tried, and of what size.
MOST_KEYS: Final = 100
MOST_TRIED: Final = 4
LEAST_RSA_BITS: Final = 2048
MOST_RSA_BITS: Final = 8192
MOST_RSA_EXPONENT: Final = 2**32
LEAST_SECRET_BYTES: Final = 32
MOST_GRANTS: Final = 256
LONGEST_PATH: Final = 2048
# The largest time in a token that is accepted; AMQP's timestamps end at about the same time.
_LATEST: Final = 2.0**53
# In a token, the path that stands for all addresses.
ALL: Final = "*"

_CURVE_ALGORITHMS: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_RSA_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_HMAC_ALGORITHMS: Final = ("HS256", "HS384", "HS512")
_RIGHT_BY_WORD: Final = {word.lower(): right for word, right in RIGHTS.items()}


class KeyUnusable(ConfigurationError):
    """Failure to use a key; the text shows no part of it."""


@attrs.frozen
class JwtKey:
    """Key that verifies JWTs, and the algorithms of its kind.

    `key` is a public key of the library cryptography, or the octets of an HMAC secret.
    """

    key: Any = attrs.field(repr=False)
    algorithms: frozenset[str]
    kid: str | None = None


@attrs.frozen
class JwtRules:
    """Keys that verify JWTs, and the values that the tokens' claims must have.

    `vhost` is the virtual host that the keys are bound to, or None.
    """

    keys: tuple[JwtKey, ...]
    algorithms: frozenset[str]
    audiences: frozenset[str]
    issuer: str | None
    rights_claim: str
    leeway_s: float
    vhost: str | None = None

    def verify(self, token: str, now: float) -> VerifiedToken:
        """Return what a token allows; raise TokenRefused if it is not valid.

        `now` is in seconds since 1970.
        """
        claims = self._claims(token)
        lifetime_s = self._lifetime_s(claims, now)
        audience = claims.get("aud")
        listed = audience if isinstance(audience, list) else [audience]
        if not any(isinstance(each, str) and each in self.audiences for each in listed):
            raise TokenRefused(401, "the JWT is for another audience (aud)")
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise TokenRefused(401, "the JWT has another issuer (iss)")
        grants = tuple(_grants(claims.get(self.rights_claim), self.rights_claim))
        subject = f"{claims.get('iss')} {claims.get('sub')}"[:1024]
        return VerifiedToken(grants, lifetime_s, subject, "jwt", self.vhost)

    def _claims(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a token whose signature is valid."""
        from jwt import PyJWTError
        from jwt.api_jws import PyJWS

        try:
            header = PyJWS().get_unverified_header(token)
        except (PyJWTError, ValueError, TypeError, RecursionError):
            raise TokenRefused(400, "the JWT is malformed") from None
        algorithm, kid = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in self.algorithms:
            allowed = ", ".join(sorted(self.algorithms))
            raise TokenRefused(401, f"the JWT's algorithm (alg) is none of {allowed}")
        if "crit" in header or header.get("b64", True) is not True:
            raise TokenRefused(401, "the JWT's header has extensions (crit, b64)")
        fitting = [
            each
            for each in self.keys
            if algorithm in each.algorithms and (kid is None or each.kid in (None, kid))
        ]
        for key in fitting[:MOST_TRIED]:
            try:
                # only the token's algorithm, which is one of the key's: PyJWT must not choose
                payload = PyJWS(algorithms=[algorithm]).decode(
                    token, key.key, algorithms=[algorithm]
                )
            except (PyJWTError, ValueError, TypeError, RecursionError):
                continue
            return _object(payload)
        refusal = "the JWT is not signed with a key that is accepted here"
        if len(fitting) > MOST_TRIED:
            refusal += (
                f"; only the first {MOST_TRIED} keys of {len(fitting)} were tried: name one (kid)"
            )
        raise TokenRefused(401, refusal)

    def _lifetime_s(self, claims: Mapping[str, Any], now: float) -> float:
        """Return for how long a token is valid from now on, with the leeway."""
        ends, begins, issued = (_time(claims, name) for name in ("exp", "nbf", "iat"))
        if ends is None:
            raise TokenRefused(401, "the JWT has no expiration time (exp)")
        if now >= ends + self.leeway_s:
            raise TokenRefused(401, "the JWT has expired (exp)")
        if any(each is not None and each - self.leeway_s > now for each in (begins, issued)):
            raise TokenRefused(401, "the JWT is not valid yet (nbf, iat)")
        return ends + self.leeway_s - now


def _object(payload: bytes) -> Mapping[str, Any]:
    """Return the claims in the payload of a token; raise TokenRefused if it is malformed."""
    try:
        found = json.loads(payload, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise TokenRefused(400, "the JWT's claims are not a JSON object with unique names")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs of a JSON object; raise ValueError if a name occurs twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _refuse_constant(_: str) -> float:
    """Refuse NaN and the infinities, which are no JSON."""
    raise ValueError


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    """Return a time of a token in seconds since 1970 (NumericDate), or None without one."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LATEST:
        raise TokenRefused(401, f"the JWT's claim {name} is not a number of seconds since 1970")
    return float(value)


def _grants(value: object, claim: str) -> Iterator[Grant]:
    """Yield what the claim with the rights gives, one grant for each path."""
    rights: dict[tuple[str, str], int] = {}
    for path, right in _entries(value, claim):
        if len(path) > LONGEST_PATH or not path.isprintable():
            raise TokenRefused(401, f"an address in the JWT's claim {claim} is too long or invalid")
        host, name = host_in(path), path_in(path)
        if not name:
            raise TokenRefused(401, f"an entry of the JWT's claim {claim} names no address")
        at = host, "" if name == ALL else name
        rights[at] = rights.get(at, 0) | right
        if len(rights) > MOST_GRANTS:
            raise TokenRefused(401, f"the JWT's claim {claim} has over {MOST_GRANTS} addresses")
    if not rights:
        raise TokenRefused(401, f"the JWT gives no right: its claim {claim} is missing or empty")
    for (host, name), right in rights.items():
        yield Grant(name, right, host)


def _entries(value: object, claim: str) -> Iterator[tuple[str, int]]:
    """Yield each path with a right there; skip scopes that are not of the form `right:path`."""
    if isinstance(value, dict):
        for path, words in value.items():
            listed = words.split() if isinstance(words, str) else words
            for word in listed if isinstance(listed, list) else [None]:
                right = _RIGHT_BY_WORD.get(word.lower()) if isinstance(word, str) else None
                if right is None:
                    raise TokenRefused(401, f"the JWT's claim {claim} has an unknown right")
                yield path, right
        return
    listed = value.split() if isinstance(value, str) else value
    for entry in listed if isinstance(listed, list) else []:
        if isinstance(entry, str):
            word, separator, path = entry.partition(":")
            right = _RIGHT_BY_WORD.get(word.lower())
            if right is not None and separator:
                yield path, right


# Keys.


def public_key(octets: bytes) -> JwtKey:
    """Return the public key in the octets of a PEM file; raise KeyUnusable if there is none."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(octets)
    except (ValueError, UnsupportedAlgorithm):
        raise KeyUnusable("has no public key in PEM form") from None
    return JwtKey(key, algorithms_of(key))


def secret_key(secret: bytes, kid: str | None = None) -> JwtKey:
    """Return the key for an HMAC secret; raise KeyUnusable if it is too short."""
    if len(secret) < LEAST_SECRET_BYTES:
        raise KeyUnusable(f"is a secret of less than {LEAST_SECRET_BYTES} bytes")
    # RFC 7518 (section 3.2) forbids a secret that is shorter than the hash
    fitting = {each for each in _HMAC_ALGORITHMS if len(secret) * 8 >= int(each[2:])}
    return JwtKey(secret, frozenset(fitting), kid)


def key_set(octets: bytes) -> list[JwtKey]:
    """Return the keys of a JWK set (RFC 7517) that are for signatures.

    Raises KeyUnusable if the set or one of its keys cannot be used.
    """
    try:
        read = json.loads(octets)
    except (ValueError, RecursionError):
        raise KeyUnusable("is not JSON") from None
    listed = read.get("keys") if isinstance(read, dict) else None
    if not isinstance(listed, list) or not listed:
        raise KeyUnusable("is not a JWK set: it has no list of keys")
    if len(listed) > MOST_KEYS:
        raise KeyUnusable(f"has more than {MOST_KEYS} keys")
    found = [
        _from_jwk(each, index)
        for index, each in enumerate(listed)
        if not isinstance(each, dict) or each.get("use", "sig") == "sig"
    ]
    if not found:
        raise KeyUnusable("has no key for signatures")
    return found


def _from_jwk(told: object, index: int) -> JwtKey:
    from jwt import PyJWTError
    from jwt.algorithms import ECAlgorithm, HMACAlgorithm, OKPAlgorithm, RSAAlgorithm

    readers: dict[object, Any] = {
        "RSA": RSAAlgorithm,
        "EC": ECAlgorithm,
        "OKP": OKPAlgorithm,
        "oct": HMACAlgorithm,
    }
    try:
        if not isinstance(told, dict) or told.get("kty") not in readers:
            raise KeyUnusable(f"is of none of the kinds {', '.join(map(str, readers))}")
        kid = told.get("kid")
        if kid is not None and not isinstance(kid, str):
            raise KeyUnusable("has a kid that is not a string")
        try:
            key: Any = readers[told["kty"]].from_jwk(told)
        except (PyJWTError, ValueError, TypeError, KeyError):
            raise KeyUnusable("cannot be read") from None
        if isinstance(key, bytes):
            made = secret_key(key, kid)
        else:
            # only the public part is needed, and kept
            key = key.public_key() if hasattr(key, "private_bytes") else key
            made = JwtKey(key, algorithms_of(key), kid)
        alg = told.get("alg")
        if alg is not None and alg not in made.algorithms:
            raise KeyUnusable("has an algorithm (alg) that is not of its kind")
    except KeyUnusable as unusable:
        raise KeyUnusable(f"has a key, number {index + 1}, that {unusable}") from None
    return made if alg is None else attrs.evolve(made, algorithms=frozenset({alg}))


def algorithms_of(key: object) -> frozenset[str]:
    """Return the algorithms of a public key's kind; raise KeyUnusable if it is not supported."""
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    if isinstance(key, RSAPublicKey):
        if not LEAST_RSA_BITS <= key.key_size <= MOST_RSA_BITS:
            raise KeyUnusable(
                f"is an RSA key of {key.key_size} bits; {LEAST_RSA_BITS} to {MOST_RSA_BITS} are "
                "allowed"
            )
        if key.public_numbers().e > MOST_RSA_EXPONENT:
            raise KeyUnusable("is an RSA key with an exponent that takes too long")
        return frozenset(_RSA_ALGORITHMS)
    if isinstance(key, EllipticCurvePublicKey) and key.curve.name in _CURVE_ALGORITHMS:
        return frozenset({_CURVE_ALGORITHMS[key.curve.name]})
    if isinstance(key, Ed25519PublicKey):
        return frozenset({"EdDSA"})
    raise KeyUnusable("is not an RSA, EC (P-256, P-384 or P-521) or Ed25519 key")


def check_usable(keys: Iterable[JwtKey], algorithms: frozenset[str]) -> None:
    """Raise KeyUnusable if a key is for none of the allowed algorithms."""
    for key in keys:
        if not key.algorithms & algorithms:
            of_kind = " or ".join(sorted(key.algorithms))
            raise KeyUnusable(f"needs {of_kind} in algorithms")


def covers_audience(token: VerifiedToken, paths: Iterable[str]) -> bool:
    """Return whether a token gives any right at one of these paths."""
    wanted = set(paths)
    return any(grant.path in wanted and grant.rights & ANY for grant in token.grants)
