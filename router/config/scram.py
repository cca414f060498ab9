"""Keys for SCRAM in a users file: what a server needs to check a password without knowing it.

The form is that of RFC 5803, as in LDAP and PostgreSQL:
`SCRAM-SHA-256$iterations:salt$storedKey:serverKey`, with the last three in base64.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
from typing import Final

import attrs

from router.config.decoys import decoy_bytes

MECHANISMS: Final = {"SCRAM-SHA-1": "sha1", "SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""SCRAM mechanisms, with the hash function of each, as Python names it."""

# A client computes this many hashes for each login: about 10 ms. RFC 7677 requires at least 4096.
ITERATIONS: Final = 15_000
FEWEST_ITERATIONS: Final = 4096
# Limits what checking one password of PLAIN may cost, or what a server may ask of this router.
MOST_ITERATIONS: Final = 1_000_000
SALT_BYTES: Final = 16

_FORM: Final = re.compile(r"(SCRAM-SHA-\d+)\$(\d{1,9}):([^$:]*)\$([^$:]*):([^$:]*)", re.ASCII)


@attrs.frozen
class ScramKeys:
    """Keys of one user for one mechanism (RFC 5802 section 3)."""

    mechanism: str
    iterations: int
    salt: bytes = attrs.field(repr=False)
    stored_key: bytes = attrs.field(repr=False)
    server_key: bytes = attrs.field(repr=False)

    def matches(self, password: bytes) -> bool:
        """Return whether `password` is the right one; takes the same time either way."""
        stored_key, _ = _keys(self.mechanism, password, self.salt, self.iterations)
        return hmac.compare_digest(stored_key, self.stored_key)

    def text(self) -> str:
        """Return the keys in the form that `parse_scram` reads."""
        salt, stored, server = (
            base64.b64encode(each).decode("ascii")
            for each in (self.salt, self.stored_key, self.server_key)
        )
        return f"{self.mechanism}${self.iterations}:{salt}${stored}:{server}"


def make_scram(mechanism: str, password: str) -> ScramKeys:
    """Return the keys for a password, with a salt of their own."""
    salt = os.urandom(SALT_BYTES)
    stored_key, server_key = _keys(mechanism, password.encode(), salt, ITERATIONS)
    return ScramKeys(mechanism, ITERATIONS, salt, stored_key, server_key)


def parse_scram(text: str) -> ScramKeys:
    """Parse keys in the form of `ScramKeys.text`.

    Raises ValueError if the text has another form; the error does not show the keys.
    """
    found = _FORM.fullmatch(text)
    if found is None or found[1] not in MECHANISMS:
        raise ValueError("has no keys of the form SCRAM-SHA-256$iterations:salt$key:key")
    iterations = int(found[2])
    if not FEWEST_ITERATIONS <= iterations <= MOST_ITERATIONS:
        raise ValueError(
            f"has a number of iterations that is not from {FEWEST_ITERATIONS} to {MOST_ITERATIONS}"
        )
    try:
        salt, stored_key, server_key = (
            base64.b64decode(found[index], validate=True) for index in (3, 4, 5)
        )
    except (binascii.Error, ValueError):
        raise ValueError("has a salt or a key that is not base64") from None
    size = hashlib.new(MECHANISMS[found[1]]).digest_size
    if len(salt) < 8 or {len(stored_key), len(server_key)} != {size}:
        raise ValueError(f"has a salt of less than 8 bytes, or a key that is not of {size} bytes")
    return ScramKeys(found[1], iterations, salt, stored_key, server_key)


def decoy_scram(mechanism: str, name: str, iterations: int, salt_bytes: int) -> ScramKeys:
    """Return keys that fit no password, for an unknown user; a name has the same salt each time."""
    salt = decoy_bytes(f"{mechanism} salt", name, salt_bytes)
    size = hashlib.new(MECHANISMS[mechanism]).digest_size
    return ScramKeys(mechanism, iterations, salt, os.urandom(size), os.urandom(size))


def _keys(mechanism: str, password: bytes, salt: bytes, iterations: int) -> tuple[bytes, bytes]:
    """Return the stored key and the server key of a password (RFC 5802 section 3)."""
    name = MECHANISMS[mechanism]
    salted = hashlib.pbkdf2_hmac(name, password, salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", name)
    return hashlib.new(name, client_key).digest(), hmac.digest(salted, b"Server Key", name)
