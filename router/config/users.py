"""Users file of a listener that offers PLAIN or SCRAM: user names, and hashes of their passwords.

Each line is one user, `name:hash hash ...`, with a hash for PLAIN, `scrypt$n$r$p$salt$hash` in
base64, and others for SCRAM (`router.config.scram`). A user needs only those for the mechanisms in
use; PLAIN works with any of them. Empty lines and lines that begin with # are skipped.

Each hash has its own cost (RFC 7914 section 2), so that the usual cost can rise while old ones stay
valid. A line whose cost exceeds the limit for a login is refused when the file is read.

The file may also be a database of Cyrus SASL (`router.config.sasldb`). It has the passwords
themselves; in memory there are only hashes of them, for PLAIN.

A name USER@HOST is that of a user of one host: clients that name this host in sasl-init log in as
USER (`Users.name_of`).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import attrs

from router.config.decoys import Cost, Costs, decoy_bytes
from router.config.mistakes import InvalidConfiguration, Mistake
from router.config.policy_kinds import normal_hostname
from router.config.sasldb import LARGEST_BYTES, StoredUser, is_sasldb, read_sasldb
from router.config.scram import (
    ITERATIONS,
    MECHANISMS as SCRAM,
    SALT_BYTES as SCRAM_SALT_BYTES,
    ScramKeys,
    decoy_scram,
    make_scram,
    parse_scram,
)

SCHEME: Final = "scrypt"
# 16 MiB and about 35 ms. More would be stronger against a stolen file, but after a restart all
# clients log in together, and those that wait longer than the handshake timeout try again.
SCRYPT_N: Final = 2**14
SCRYPT_R: Final = 8
SCRYPT_P: Final = 1
SALT_BYTES: Final = 16
HASH_BYTES: Final = 32
# Limits of what one login may cost: 128 * n * r bytes, and time proportional to n * r * p.
LARGEST_MEMORY_BYTES: Final = 64 * 2**20
LARGEST_WORK: Final = 2**20
LONGEST_NAME: Final = 255
# The user of a peer that chose SASL ANONYMOUS; no other user may have this name.
ANONYMOUS: Final = "anonymous"
# One salt for all users of databases, so that a database that is read again has the same hashes.
_SALT: Final = os.urandom(SALT_BYTES)
# The lowest cost, n, r and p.
_CHEAP: Final = (2, 1, 1)
# A SASL response has to fit the smallest max-frame-size, which every peer has to accept.
LONGEST_PASSWORD_BYTES: Final = 512


@attrs.frozen
class PasswordHash:
    """Stored hash of one password, with its cost."""

    n: int
    r: int
    p: int
    salt: bytes = attrs.field(repr=False)
    digest: bytes = attrs.field(repr=False)

    def matches(self, password: bytes) -> bool:
        """Return whether `password` is the right one; takes the same time either way."""
        found = _scrypt(password, self.salt, self.n, self.r, self.p, len(self.digest))
        return hmac.compare_digest(found, self.digest)


@attrs.frozen
class Credentials:
    """Hashes of one user's password; the two kinds are for PLAIN and for SCRAM, by mechanism."""

    password: PasswordHash | None
    scram: Mapping[str, ScramKeys] = attrs.Factory(dict)

    def matches(self, password: bytes) -> bool:
        """Return whether `password` is the right one; takes the same time either way."""
        if self.password is not None:
            return self.password.matches(password)
        return next(iter(self.scram.values())).matches(password)


def _plain_cost(credentials: Credentials) -> Cost:
    """Return what checking a password for PLAIN costs: the hash, and its parameters."""
    stored = credentials.password
    if stored is not None:
        return (SCHEME, stored.n, stored.r, stored.p, len(stored.digest))
    keys = next(iter(credentials.scram.values()))
    return (keys.mechanism, keys.iterations)


def _decoy_costs(users: Users) -> Mapping[str, Costs]:
    """Return the costs of users by mechanism; for SCRAM with the sizes of salts, which are seen."""
    every = users.by_name.values()
    usual: Cost = (SCHEME, SCRYPT_N, SCRYPT_R, SCRYPT_P, HASH_BYTES)
    costs = {"PLAIN": Costs.of(map(_plain_cost, every), usual)}
    for mechanism in SCRAM:
        keys = [one.scram[mechanism] for one in every if mechanism in one.scram]
        costs[mechanism] = Costs.of(
            ((each.iterations, len(each.salt)) for each in keys), (ITERATIONS, SCRAM_SALT_BYTES)
        )
    return costs


def _hosts(users: Users) -> Mapping[str, str]:
    """Return the hosts that have users of their own, by the host's usual form."""
    names = (name.rpartition("@") for name in users.by_name)
    return {normal_hostname(host): host for user, _, host in names if user and host}


@attrs.frozen
class Users:
    """Users in one users file.

    An unknown user's password is checked against a decoy, which costs what a user's does; see
    `router.config.decoys`.
    """

    by_name: Mapping[str, Credentials]
    _costs: Mapping[str, Costs] = attrs.field(
        init=False, repr=False, eq=False, default=attrs.Factory(_decoy_costs, takes_self=True)
    )
    _hosts: Mapping[str, str] = attrs.field(
        init=False, repr=False, eq=False, default=attrs.Factory(_hosts, takes_self=True)
    )

    def name_of(self, given: str, hostname: str | None) -> str:
        """Return the name of the user that logs in with the name `given`, known or not.

        `hostname` is the host that the peer names, which may choose among users (section 5.3.3.2):
        the user USER@HOSTNAME comes before the user USER. If both have the same hashes, they are
        one user with two names, as in a database of Cyrus SASL, and USER counts.
        """
        host = self._hosts.get(normal_hostname(hostname or ""))
        if host is None:
            return given
        full = f"{given}@{host}"
        user, user_of_host = self.by_name.get(given), self.by_name.get(full)
        if user_of_host is not None:
            return given if user == user_of_host else full
        # some unknown users appear to be those of the host, too
        is_decoy = user is None and decoy_bytes("host", full, 1)[0] & 1
        return full if is_decoy else given

    def scram_of(self, name: str, mechanism: str) -> ScramKeys:
        """Return a user's keys for a mechanism, or keys that fit no password if there are none."""
        credentials = self.by_name.get(name)
        found = None if credentials is None else credentials.scram.get(mechanism)
        if found is not None:
            return found
        iterations, salt_bytes = self._costs[mechanism].pick(mechanism, name)
        return decoy_scram(mechanism, name, int(iterations), int(salt_bytes))

    def decoy_of(self, name: str) -> Credentials:
        """Return the credentials against which the password of an unknown user is checked."""
        kind, *rest = self._costs["PLAIN"].pick("PLAIN", name)
        numbers = [int(each) for each in rest]
        salt = decoy_bytes("salt", name, SALT_BYTES)
        if kind == SCHEME:
            n, r, p, size = numbers
            return Credentials(PasswordHash(n, r, p, salt, os.urandom(size)))
        keys = decoy_scram(str(kind), name, numbers[0], SALT_BYTES)
        return Credentials(None, {keys.mechanism: keys})


def load_users(path: Path) -> Users:
    """Read a users file; raises InvalidConfiguration with every mistake in it, by line."""
    data = _read(path)
    if is_sasldb(data):
        return Users(_hashed(users_of_database(data, str(path)), str(path)))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise _invalid(str(path), "is not UTF-8 text") from None
    users: dict[str, Credentials] = {}
    mistakes: list[Mistake] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, stored = line.partition(":")
        try:
            check_name(name)
            if name in users:
                raise ValueError("repeats a user of an earlier line")
            users[name] = parse_credentials(stored)
        except ValueError as error:
            mistakes.append(Mistake(str(path), number, 0, "", "", str(error)))
    if mistakes:
        raise InvalidConfiguration(mistakes)
    return Users(users)


def load_database(path: Path) -> dict[str, str]:
    """Read a database of Cyrus SASL; return the passwords by the names to log in with.

    Raises InvalidConfiguration if the file is no such database, or is damaged.
    """
    return users_of_database(_read(path), str(path))


def users_of_database(data: bytes, source: str, host: str = "") -> dict[str, str]:
    """Return the passwords in a database of Cyrus SASL by the names to log in with.

    These are USER@REALM and, as in Cyrus SASL, USER alone if the realm is the name of this host,
    `host`, with or without its domain. Raises InvalidConfiguration if the database is damaged;
    `source` is its name there.
    """
    try:
        stored = read_sasldb(data)
    except ValueError as error:
        raise _invalid(source, str(error)) from None
    found = {user.full_name: user.password for user in stored}
    near: dict[str, list[StoredUser]] = {}
    for user in stored:
        if _is_realm_of(user.realm, host or os.uname().nodename):
            near.setdefault(user.name, []).append(user)
    for name, users in near.items():
        # with several realms that this host may have, only the full names tell them apart
        if len(users) == 1 and name != ANONYMOUS:
            found.setdefault(name, users[0].password)
    return found


def _is_realm_of(realm: str, host: str) -> bool:
    realm, host = realm.casefold(), host.casefold()
    return bool(realm) and (f"{realm}.".startswith(f"{host}.") or host.startswith(f"{realm}."))


def _hashed(passwords: Mapping[str, str], source: str) -> dict[str, Credentials]:
    """Return hashes of the passwords in a database.

    Their cost is the lowest: anyone who can read them can also read the database.
    """
    users: dict[str, Credentials] = {}
    mistakes: list[Mistake] = []
    for name, password in passwords.items():
        try:
            _check_user(name)
            data = _checked(password)
        except ValueError as error:
            # an invalid name may have any characters, so it is not shown as it is
            mistakes.append(Mistake(source, 0, 0, "", "", f"the user {name[:80]!a}: {error}"))
            continue
        digest = _scrypt(data, _SALT, *_CHEAP, HASH_BYTES)
        users[name] = Credentials(PasswordHash(*_CHEAP, _SALT, digest))
    if mistakes:
        raise InvalidConfiguration(mistakes)
    return users


def _read(path: Path) -> bytes:
    """Return the content of a users file; of a database, at most one byte more than is allowed."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_BYTES + 1)
            return data if is_sasldb(data) else data + file.read()
    except (OSError, ValueError) as error:
        raise _invalid(
            str(path), f"cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None


def _invalid(source: str, problem: str) -> InvalidConfiguration:
    return InvalidConfiguration([Mistake(source, 0, 0, "", "", problem)])


def verify(users: Users, user: str, password: str) -> bool:
    """Return whether `user` is known and `password` is that user's password.

    `user` is a name from `Users.name_of`. The check takes 35 ms and 16 MiB at the usual cost, and
    for an unknown user as much as for some known one. Call this function in a thread, since other
    threads can run meanwhile, and only in a few threads at a time.
    """
    stored = users.by_name.get(user)
    given = password.encode("utf-8", "surrogatepass")
    # An overlong password is always wrong, but must take as long to check as any other.
    fits = len(given) <= LONGEST_PASSWORD_BYTES
    matches = (stored or users.decoy_of(user)).matches(given[:LONGEST_PASSWORD_BYTES])
    return matches and stored is not None and fits


def parse_credentials(text: str) -> Credentials:
    """Parse the hashes of one user, which are separated by spaces.

    Raises ValueError if one of them has another form, or an excessive cost; the error does not show
    it.
    """
    password = None
    scram: dict[str, ScramKeys] = {}
    words = text.split()
    for word in words:
        if word.startswith("SCRAM-"):
            keys = parse_scram(word)
            if keys.mechanism in scram:
                raise ValueError(f"repeats the keys for {keys.mechanism}")
            scram[keys.mechanism] = keys
        elif password is None:
            password = parse_hash(word)
        else:
            raise ValueError("has two hashes for PLAIN")
    if not words:
        raise ValueError("has no hash of the form scrypt$n$r$p$salt$hash")
    return Credentials(password, scram)


def credentials_of(password: str, mechanisms: Iterable[str]) -> str:
    """Return the text to store for a password: a hash for each mechanism, PLAIN or SCRAM.

    Raises ValueError if the password is empty, too long, or contains NUL.
    """
    plain = hash_password(password)
    return " ".join(
        plain if each == "PLAIN" else make_scram(each, password).text() for each in mechanisms
    )


def hash_password(password: str) -> str:
    """Return the hash to store for `password` for PLAIN, with a salt of its own.

    Raises ValueError if the password is empty, too long, or contains NUL.
    """
    data = _checked(password)
    salt = os.urandom(SALT_BYTES)
    digest = _scrypt(data, salt, SCRYPT_N, SCRYPT_R, SCRYPT_P, HASH_BYTES)
    parts = (SCHEME, str(SCRYPT_N), str(SCRYPT_R), str(SCRYPT_P), _encode(salt), _encode(digest))
    return "$".join(parts)


def parse_hash(text: str) -> PasswordHash:
    """Parse a hash in the form that `hash_password` returns.

    Raises ValueError if the text has another form or an excessive cost; the error does not show the
    hash.
    """
    scheme, *fields = text.split("$")
    if scheme != SCHEME or len(fields) != 5:
        raise ValueError("has no hash of the form scrypt$n$r$p$salt$hash")
    if not all(field.isascii() and field.isdigit() and len(field) <= 9 for field in fields[:3]):
        raise ValueError("has a cost n, r or p that is not a number")
    n, r, p = (int(field) for field in fields[:3])
    if n < 2 or n & (n - 1) or r < 1 or p < 1:
        raise ValueError(
            "has an invalid scrypt cost: n must be a power of two, r and p must not be 0"
        )
    if 128 * n * r > LARGEST_MEMORY_BYTES or n * r * p > LARGEST_WORK:
        raise ValueError(
            "exceeds the cost limit of a login: 128 * n * r must be at most "
            f"{LARGEST_MEMORY_BYTES}, and n * r * p at most {LARGEST_WORK}"
        )
    try:
        salt, digest = (base64.b64decode(field, validate=True) for field in fields[3:])
    except (binascii.Error, ValueError):
        raise ValueError("has a salt or a hash that is not base64") from None
    if len(salt) < 8 or not 16 <= len(digest) <= 64:
        raise ValueError("has a salt of less than 8 bytes, or a hash not of 16 to 64 bytes")
    return PasswordHash(n, r, p, salt, digest)


def _checked(password: str) -> bytes:
    """Return a password as octets; raises ValueError if nobody could log in with it."""
    data = password.encode("utf-8")
    if not data or b"\0" in data:
        raise ValueError("a password must not be empty or contain NUL, which PLAIN cannot carry")
    if len(data) > LONGEST_PASSWORD_BYTES:
        raise ValueError(f"a password must have at most {LONGEST_PASSWORD_BYTES} bytes")
    return data


def check_name(name: str) -> None:
    """Raise ValueError if a users file cannot contain a user of this name."""
    _check_user(name)
    if ":" in name or name.startswith("#"):
        raise ValueError("has a name that contains a colon or begins with #")


def _check_user(name: str) -> None:
    """Raise ValueError if no user may have this name."""
    if not name or name != name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise ValueError(
            f"needs a name of 1 to {LONGEST_NAME} printable characters, without spaces around it"
        )
    if name == ANONYMOUS:
        raise ValueError(f"has the name {ANONYMOUS}, which is reserved for peers without a user")


def _scrypt(password: bytes, salt: bytes, n: int, r: int, p: int, length: int) -> bytes:
    # OpenSSL needs a little more than the 128 * r * (n + p) of the algorithm.
    memory = 128 * r * (n + p + 2) + 65536
    return hashlib.scrypt(password, salt=salt, n=n, r=r, p=p, maxmem=memory, dklen=length)


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
