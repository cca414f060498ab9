"""What a configured value may be: a small class per kind, with its rule in words and its reader.

A kind is the only place that knows its rule. The loader calls `read` on what the file says, the
attrs model calls it on what a program passes, and the reference prints `words`, so the three cannot
disagree. Two properties hold for every kind and are tested: `read(read(x)) == read(x)`, and a value
that is not allowed leaves as `Refused`, never as another exception.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

import attrs

from router.config.secret import Secret

AMQP_PORT: Final = 5672
# AMQP 1.0 part 1 has no wider integers than 64 bits, and TOML promises no more either.
SMALLEST_LONG: Final = -(2**63)
LARGEST_LONG: Final = 2**63 - 1
# Open's properties travel in one frame and the spec nests them freely; nobody reads a map eight
# levels deep.
DEEPEST_PROPERTY: Final = 8


class Refused(ValueError):
    """A value is not allowed. `allowed` says in words what is, as the rest of "give ..."."""

    def __init__(self, allowed: str) -> None:
        super().__init__(f"give {allowed}")
        self.allowed = allowed


class Kind(Protocol):
    """One kind of value. `unit` is empty where a value has none."""

    @property
    def words(self) -> str: ...

    @property
    def unit(self) -> str: ...

    def read(self, value: object) -> object: ...


@attrs.frozen
class Flag:
    """true or false, and nothing that merely looks like one."""

    unit: str = ""

    @property
    def words(self) -> str:
        return "true or false"

    def read(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise Refused(self.words)
        return value


@attrs.frozen
class WholeNumber:
    """An integer from `low` to `high`, both included. `zero` says what 0 means, if special."""

    low: int
    high: int
    unit: str = ""
    zero: str = ""

    @property
    def words(self) -> str:
        unit = f" of {self.unit}" if self.unit else ""
        zero = f" (0: {self.zero})" if self.zero else ""
        return f"a whole number{unit} from {self.low} to {self.high}{zero}"

    def read(self, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise Refused(self.words)
        if not self.low <= value <= self.high:
            raise Refused(self.words)
        return value


@attrs.frozen
class Seconds:
    """A time in seconds, whole or not, up to `high`. `zero` says what 0 means."""

    high: int
    zero: str
    unit: str = "seconds"

    @property
    def words(self) -> str:
        return f"a number of seconds: 0 ({self.zero}), or from 0.001 to {self.high}"

    def read(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Refused(self.words)
        # Milliseconds are the finest the wire knows (idle-time-out, AMQP 1.0 part 2.7.1). The
        # comparison is also what refuses nan.
        if value != 0 and not 0.001 <= value <= self.high:
            raise Refused(self.words)
        return float(value)


@attrs.frozen
class Choice:
    """One word out of a few."""

    choices: tuple[str, ...]
    unit: str = ""

    @property
    def words(self) -> str:
        return _one_of(self.choices)

    def read(self, value: object) -> str:
        if not isinstance(value, str) or value not in self.choices:
            raise Refused(self.words)
        return value


@attrs.frozen
class Text:
    """Text of 1 to `longest` printable characters; with `token`, none of them a space."""

    longest: int
    token: bool = False
    unit: str = ""

    @property
    def words(self) -> str:
        spaces = " and no spaces" if self.token else ""
        return f"text of 1 to {self.longest} characters, with no control characters{spaces}"

    def read(self, value: object) -> str:
        if not isinstance(value, str) or not 1 <= len(value) <= self.longest:
            raise Refused(self.words)
        if not value.isprintable() or (self.token and " " in value):
            raise Refused(self.words)
        return value


@attrs.frozen
class Port:
    """A TCP port by number, or by the one service name that this protocol has without TLS."""

    low: int
    unit: str = ""

    @property
    def words(self) -> str:
        zero = " (0: any free port)" if self.low == 0 else ""
        return f'a whole number from {self.low} to 65535{zero}, or "amqp" ({AMQP_PORT})'

    def read(self, value: object) -> int:
        if value == "amqp":
            return AMQP_PORT
        if isinstance(value, bool) or not isinstance(value, int):
            raise Refused(self.words)
        if not self.low <= value <= 65535:
            raise Refused(self.words)
        return value


@attrs.frozen
class Mechanisms:
    """SASL mechanisms, as a list or, as in Dispatch, as one text with spaces; each at most once."""

    known: tuple[str, ...]
    unit: str = ""

    @property
    def words(self) -> str:
        return (
            f"one or more of {_one_of(self.known)}, in a list or in one text with spaces, each once"
        )

    def read(self, value: object) -> tuple[str, ...]:
        if isinstance(value, str):
            value = value.split()
        if not isinstance(value, (list, tuple)) or not value:
            raise Refused(self.words)
        named = [name for name in value if isinstance(name, str) and name in self.known]
        if len(named) != len(value) or len(set(named)) != len(named):
            raise Refused(self.words)
        return tuple(named)


@attrs.frozen
class FilePath:
    """The path of a file. Whether it can be read is asked by the loader, which knows the folder."""

    unit: str = ""

    @property
    def words(self) -> str:
        return "the path of a file, absolute or relative to the folder of the configuration file"

    def read(self, value: object) -> Path:
        if isinstance(value, Path):
            return value
        if not isinstance(value, str) or not value or not value.isprintable():
            raise Refused(self.words)
        return Path(value)


@attrs.frozen
class SecretText:
    """Something nobody may see in a log: the text itself, or where to find it."""

    unit: str = ""

    @property
    def words(self) -> str:
        return "text, or env:VARIABLE, file:PATH, pass:TEXT or literal:TEXT"

    def read(self, value: object) -> Secret:
        if isinstance(value, Secret):
            return value
        if not isinstance(value, str):
            raise Refused(self.words)
        secret = Secret.parse(value)
        if not secret.reference or (
            secret.kind != "literal" and not secret.reference.isprintable()
        ):
            raise Refused(self.words)
        return secret


@attrs.frozen
class AddressPrefix:
    """The first tokens of an address; tokens are separated by `/` or `.`."""

    unit: str = ""

    @property
    def words(self) -> str:
        return "the first tokens of an address, separated by / or . and without * or #"

    def read(self, value: object) -> str:
        if not isinstance(value, str) or not value.isprintable() or set(value) & set("*# "):
            raise Refused(self.words)
        if "" in address_tokens(value):
            raise Refused(self.words)
        return value


@attrs.frozen
class AddressPattern:
    """Tokens separated by `/` or `.`, where `*` is any one token and `#` is any number of them, or
    none.
    """

    unit: str = ""

    @property
    def words(self) -> str:
        return (
            "tokens separated by / or . where a whole token may be * (exactly one token) "
            "or # (any number of tokens, or none)"
        )

    def read(self, value: object) -> str:
        if not isinstance(value, str) or not value.isprintable() or " " in value:
            raise Refused(self.words)
        for token in address_tokens(value):
            if not token or (token not in ("*", "#") and set(token) & set("*#")):
                raise Refused(self.words)
        return value


@attrs.frozen
class Properties:
    """A map for the open performative; the names that the router itself sets are kept free."""

    unit: str = ""

    @property
    def words(self) -> str:
        return (
            "a table of text, true or false, numbers (whole ones of 64 bits), and lists and "
            f"tables of those; without the router's own keys ({', '.join(RESERVED_PROPERTIES)}, "
            f"and what begins with {' or '.join(RESERVED_PREFIXES)})"
        )

    def read(self, value: object) -> Mapping[str, object]:
        if not isinstance(value, Mapping):
            raise Refused(self.words)
        for key, item in value.items():
            if not isinstance(key, str) or not _is_symbol(key):
                raise Refused("keys of 1 to 255 ASCII characters, as AMQP symbols are")
            if key in RESERVED_PROPERTIES or key.startswith(RESERVED_PREFIXES):
                raise Refused(f"no {key}, which the router sets itself")
            if not _is_property(item, DEEPEST_PROPERTY):
                raise Refused(self.words)
        return dict(value)


RESERVED_PROPERTIES: Final = (
    "product",
    "version",
    "failover-server-list",
    "network-host",
    "port",
    "scheme",
    "hostname",
)
RESERVED_PREFIXES: Final = ("qd.", "x-opt-qd.")


def address_tokens(address: str) -> tuple[str, ...]:
    """The tokens of an address, a prefix or a pattern, without the empty one that a last separator
    leaves.
    """
    return tuple(re.split(r"[/.]", address.rstrip("/.")))


def _one_of(words: tuple[str, ...]) -> str:
    quoted = [f'"{word}"' for word in words]
    if len(quoted) == 1:
        return quoted[0]
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def _is_symbol(key: str) -> bool:
    return 1 <= len(key) <= 255 and key.isascii() and key.isprintable()


def _is_property(value: object, depth: int) -> bool:
    if isinstance(value, (str, bool)):
        return True
    if isinstance(value, int):
        return SMALLEST_LONG <= value <= LARGEST_LONG
    if isinstance(value, float):
        return math.isfinite(value)
    if depth == 0:
        return False
    if isinstance(value, (list, tuple)):
        return all(_is_property(item, depth - 1) for item in value)
    if isinstance(value, Mapping):
        return all(
            isinstance(key, str) and _is_property(item, depth - 1) for key, item in value.items()
        )
    return False
