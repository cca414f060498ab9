"""Kinds of configuration values: each has a rule in words, and a function that reads a value.

The loader, the model and the reference all use the same kind of an attribute, so they cannot
disagree. Two properties hold for every kind and are tested: reading a value that was read before
returns the same value, and a value that is not allowed raises `ValueNotAllowed`, never another
exception.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeGuard

import attrs

from router.config.secret import Secret

AMQP_PORT: Final = 5672
AMQPS_PORT: Final = 5671
_PORTS: Final = {"amqp": AMQP_PORT, "amqps": AMQPS_PORT}
LONGEST_ADDRESS: Final = 255
LONGEST_HOST: Final = 255
# about the interval at which the router checks its clock
SHORTEST_PERIOD_S: Final = 0.25
HIGHEST_COST: Final = 1_000_000


class ValueNotAllowed(ValueError):
    """Refusal of a value that is not allowed.

    `allowed` says in words which values are allowed, and completes the sentence "give ...".
    """

    def __init__(self, allowed: str) -> None:
        super().__init__(f"give {allowed}")
        self.allowed = allowed


@attrs.frozen
class Kind:
    """Kind of configuration values, such as ports or passwords.

    `words` describe the allowed values. `unit` is their unit, or empty. Values of a `secret` kind
    are never shown. `read` converts a value from a file to the value that the program uses, or
    raises ValueNotAllowed.
    """

    words: str
    read: Callable[[object], object]
    unit: str = ""
    secret: bool = False


def flag() -> Kind:
    """Return the kind for booleans, which refuses look-alikes such as "yes"."""
    words = "true or false"

    def read(value: object) -> bool:
        if not isinstance(value, bool):
            raise ValueNotAllowed(words)
        return value

    return Kind(words, read)


def whole_number(low: int, high: int, unit: str, *, zero: str = "") -> Kind:
    """Return the kind for integers from `low` to `high`; `zero` says what 0 means, if special."""
    words = f"a whole number of {unit} from {low} to {high}"
    if zero:
        words += f" (0: {zero})"

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueNotAllowed(words)
        return value

    return Kind(words, read, unit)


def priority() -> Kind:
    """Return the kind for address priorities."""
    words = "a priority from 0 to 9, or -1 (that of each message)"

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not -1 <= value <= 9:
            raise ValueNotAllowed(words)
        return value

    return Kind(words, read)


def cost() -> Kind:
    """Return the kind for costs of connections between routers.

    The upper bound keeps the sum of many costs below 2**31.
    """
    words = f"a cost from 1 to {HIGHEST_COST}"

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= HIGHEST_COST:
            raise ValueNotAllowed(words)
        return value

    return Kind(words, read)


def period(high: int) -> Kind:
    """Return the kind for intervals between repeated actions, in seconds, up to `high`."""
    words = f"a number of seconds from {SHORTEST_PERIOD_S} to {high}"

    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueNotAllowed(words)
        if not SHORTEST_PERIOD_S <= value <= high:
            raise ValueNotAllowed(words)
        return float(value)

    return Kind(words, read, "seconds")


def phase() -> Kind:
    """Return the kind for address phases."""
    return attrs.evolve(whole_number(0, 9, "waypoints"), words="a phase from 0 to 9", unit="")


def seconds(high: int, *, zero: str) -> Kind:
    """Return the kind for a number of seconds up to `high`; `zero` says what 0 means."""
    words = f"a number of seconds: 0 ({zero}), or from 0.001 to {high}"

    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueNotAllowed(words)
        # AMQP has no unit below milliseconds (idle-time-out, AMQP 1.0 part 2.7.1). The
        # comparison also refuses nan.
        if value != 0 and not 0.001 <= value <= high:
            raise ValueNotAllowed(words)
        # abs makes -0.0 an ordinary 0.0
        return abs(float(value))

    return Kind(words, read, "seconds")


def number(low: float, high: float, unit: str = "") -> Kind:
    """Return the kind for numbers, whole or not, from `low` to `high`."""
    of_unit = f" of {unit}" if unit else ""
    words = f"a number{of_unit} from {low:g} to {high:g}"

    def read(value: object) -> float:
        # the comparison also refuses nan
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueNotAllowed(words)
        if not low <= value <= high:
            raise ValueNotAllowed(words)
        return float(value)

    return Kind(words, read, unit)


def names(longest: int, least: int = 0, most: int = 10_000) -> Kind:
    """Return the kind for lists of `least` to `most` different names.

    If `least` is below 2, a single name stands for a list of one.
    """
    one = text(longest, spaces=False)
    words = f"a name, or a list of {least} to {most} different ones"
    if least == most:
        words = f"a list of {least} different names"

    def read(value: object) -> tuple[str, ...]:
        listed = [value] if isinstance(value, str) and least < 2 else value
        if not isinstance(listed, (list, tuple)) or not least <= len(listed) <= most:
            raise ValueNotAllowed(words)
        if not all(isinstance(name, str) for name in listed) or len(set(listed)) != len(listed):
            raise ValueNotAllowed(words)
        for name in listed:
            one.read(name)
        return tuple(listed)

    return Kind(words, read)


def choice(choices: tuple[str, ...]) -> Kind:
    """Return the kind that allows one word out of `choices`."""
    words = _one_of(choices)

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise ValueNotAllowed(words)
        return value

    return Kind(words, read)


def text(longest: int, *, spaces: bool = True) -> Kind:
    """Return the kind for printable texts of 1 to `longest` characters."""
    words = f"text of 1 to {longest} printable characters"
    if not spaces:
        words += " without spaces"

    def read(value: object) -> str:
        if not isinstance(value, str) or not 1 <= len(value) <= longest:
            raise ValueNotAllowed(words)
        if not value.isprintable() or (" " in value and not spaces):
            raise ValueNotAllowed(words)
        return value

    return Kind(words, read)


def port(low: int) -> Kind:
    """Return the kind for TCP ports from `low` on; or named by a scheme of AMQP."""
    zero = " (0: any free port)" if low == 0 else ""
    words = (
        f'a whole number from {low} to 65535{zero}, "amqp" ({AMQP_PORT}) or "amqps" ({AMQPS_PORT})'
    )

    def read(value: object) -> int:
        if isinstance(value, str) and value in _PORTS:
            return _PORTS[value]
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= 65535:
            raise ValueNotAllowed(words)
        return value

    return Kind(words, read)


def words(known: tuple[str, ...]) -> Kind:
    """Return the kind for lists of known words or, as in Dispatch, one text with spaces."""
    allowed = f"a list of one or more of {_one_of(known)}, or the same in one text with spaces"

    def read(value: object) -> tuple[str, ...]:
        if isinstance(value, str):
            value = value.split()
        if not isinstance(value, (list, tuple)) or not value:
            raise ValueNotAllowed(allowed)
        named = tuple(name for name in value if isinstance(name, str) and name in known)
        if len(named) != len(value) or len(set(named)) != len(named):
            raise ValueNotAllowed(allowed)
        return named

    return Kind(allowed, read)


def letters(known: str) -> Kind:
    """Return the kind for texts of different letters out of `known`."""
    words = f"one or more different letters of {known}"

    def read(value: object) -> str:
        if not isinstance(value, str) or not value or len(set(value)) != len(value):
            raise ValueNotAllowed(words)
        if set(value) - set(known):
            raise ValueNotAllowed(words)
        return value

    return Kind(words, read)


def host() -> Kind:
    """Return the kind for hosts to connect to, by name or IP address."""
    words = "a host name or IP address, without spaces or a port"

    def read(value: object) -> str:
        if not isinstance(value, str) or not is_host(value):
            raise ValueNotAllowed(words)
        return value

    return Kind(words, read)


def hosts(*, any_host: bool = False) -> Kind:
    """Return the kind for lists of hosts, by name or IP address.

    With `any_host`, a list may contain *, which stands for all hosts.
    """
    words = "a list of host names and IP addresses, without spaces or ports"
    others = {"*"} if any_host else set()
    if any_host:
        words += ', or of "*"'

    def read(value: object) -> tuple[str, ...]:
        if not isinstance(value, (list, tuple)):
            raise ValueNotAllowed(words)
        named = tuple(
            name for name in value if isinstance(name, str) and (name in others or is_host(name))
        )
        if len(named) != len(value) or len({name.lower() for name in named}) != len(named):
            raise ValueNotAllowed(words)
        return named

    return Kind(words, read)


def file_path() -> Kind:
    """Return the kind for file paths; the loader checks whether a file can be read."""
    words = "the path of a file, absolute or relative to the folder of the configuration file"

    def read(value: object) -> Path:
        if isinstance(value, Path):
            return value
        if not isinstance(value, str) or not value or not value.isprintable():
            raise ValueNotAllowed(words)
        return Path(value)

    return Kind(words, read)


def secret() -> Kind:
    """Return the kind for passwords: the password itself, or a reference to where it is stored."""
    words = "text, or env:VARIABLE, file:PATH, pass:TEXT or literal:TEXT"

    def read(value: object) -> Secret:
        if isinstance(value, Secret):
            return value
        if not isinstance(value, str):
            raise ValueNotAllowed(words)
        found = Secret.parse(value)
        if not found.reference or not (found.kind == "literal" or found.reference.isprintable()):
            raise ValueNotAllowed(words)
        return found

    return Kind(words, read, secret=True)


def secret_reference() -> Kind:
    """Return the kind for references to passwords, which keep passwords out of the file."""
    words = "env:VARIABLE or file:PATH, where the secret is stored"

    def read(value: object) -> Secret:
        if isinstance(value, Secret):
            return value
        found = Secret.parse(value) if isinstance(value, str) else None
        if found is None or found.kind == "literal":
            raise ValueNotAllowed(words)
        if not found.reference or not found.reference.isprintable():
            raise ValueNotAllowed(words)
        return found

    return Kind(words, read, secret=True)


def address_prefix() -> Kind:
    """Return the kind for address prefixes: the first tokens of an address."""
    return _spelt_out("the first tokens of an address")


def address() -> Kind:
    """Return the kind for single addresses."""
    return _spelt_out("the tokens of one address")


def _spelt_out(what: str) -> Kind:
    words = (
        f"{what}, up to {LONGEST_ADDRESS} characters, separated by / or . "
        "and without *, # or spaces"
    )

    def read(value: object) -> str:
        if not _is_address(value) or set(value) & set("*#") or "" in address_tokens(value):
            raise ValueNotAllowed(words)
        return value

    return Kind(words, read)


def address_pattern() -> Kind:
    """Return the kind for address patterns, whose tokens may be wildcards."""
    words = (
        f"tokens, up to {LONGEST_ADDRESS} characters, separated by / or . and without spaces, "
        "where a whole token may be * (exactly one token) or # (any number of tokens, or none)"
    )

    def read(value: object) -> str:
        if not _is_address(value):
            raise ValueNotAllowed(words)
        for token in address_tokens(value):
            if not token or (token not in ("*", "#") and set(token) & set("*#")):
                raise ValueNotAllowed(words)
        return value

    return Kind(words, read)


def address_tokens(address: str) -> tuple[str, ...]:
    """Split an address, prefix or pattern into tokens, ignoring separators at the end."""
    return tuple(re.split(r"[/.]", address.rstrip("/.")))


def is_host(value: str) -> bool:
    """Return whether a text can be a host name or IP address, without a port or brackets."""
    if not 1 <= len(value) <= LONGEST_HOST or not value.isprintable() or set(value) & set(" []/*"):
        return False
    return value.count(":") != 1


def _is_address(value: object) -> TypeGuard[str]:
    return (
        isinstance(value, str)
        and len(value) <= LONGEST_ADDRESS
        and value.isprintable()
        and " " not in value
    )


def _one_of(words: tuple[str, ...]) -> str:
    quoted = [f'"{word}"' for word in words]
    if len(quoted) == 1:
        return quoted[0]
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"


@lru_cache(maxsize=65536)
def tokens_covered(prefix: str | None, pattern: str | None) -> tuple[str, ...] | None:
    """Return a prefix or a pattern as the tokens of a pattern; those of a prefix end in #.

    Return None unless exactly one of the two is given.
    """
    # cached: among very many addresses, few change from one configuration to the next
    if (prefix is None) == (pattern is None):
        return None
    if prefix is not None:
        return (*address_tokens(prefix), "#")
    return address_tokens(pattern or "")
