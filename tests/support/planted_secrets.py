"""Secrets that a test plants, and the search for them in all that a router says.

A secret may come out whole or in part, since logs and traces cut long values, and in another form:
as base64, in hexadecimal, as in a URL, reversed, or as a list of numbers.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

# A part of a secret that is long enough not to occur by chance.
PART_CHARACTERS = 12
_RANDOM_OCTETS = 15


def forms_of(secret: str) -> Iterator[tuple[str, str]]:
    """Yield each text that shows a secret, with the name of its form."""
    for part in dict.fromkeys((secret[:PART_CHARACTERS], secret[-PART_CHARACTERS:])):
        octets = part.encode()
        yield "plain", part
        yield "reversed", part[::-1]
        yield "URL", quote(part, safe="")
        yield "URL", quote_plus(part)
        yield "hexadecimal", octets.hex()
        yield "hexadecimal", octets.hex(" ")
        yield "escapes", "".join(f"\\x{octet:02x}" for octet in octets)
        yield "numbers", ", ".join(map(str, octets))
        for shift in range(3):
            yield from _base64_forms(octets, shift)


def _base64_forms(octets: bytes, shift: int) -> Iterator[tuple[str, str]]:
    """Yield the characters that stand for all of the octets, wherever they begin in a group."""
    behind = bytes(shift)
    # characters to which octets in front of or behind these contribute
    first = (0, 2, 3)[shift]
    last = -1 if (shift + len(octets)) % 3 else None
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield "base64", encode(behind + octets).decode().rstrip("=")[first:last]


class PlantedSecrets:
    """Secrets by name; each is another random text."""

    def __init__(self) -> None:
        self._by_name: dict[str, str] = {}

    def plant(self, name: str, secret: str | None = None) -> str:
        """Return a new secret, or `secret` itself, which is searched for from now on."""
        made = secret or f"{secrets.token_hex(_RANDOM_OCTETS)}+/~{secrets.token_hex(4)}"
        assert len(made) >= PART_CHARACTERS
        self._by_name[name] = made
        return made

    def __getitem__(self, name: str) -> str:
        return self._by_name[name]

    def leaks(self, source: str, text: str) -> list[str]:
        """Return what of the secrets a text shows, in which form, and where."""
        # hexadecimal has either case
        lower = text.lower()
        found = []
        for name, secret in self._by_name.items():
            for form, shown in forms_of(secret):
                is_there = shown.lower() in lower if form == "hexadecimal" else shown in text
                if is_there:
                    at = max((lower if form == "hexadecimal" else text).find(shown), 0)
                    found.append(f"{source}: {name} ({form}): ...{text[max(at - 60, 0) : at + 40]}")
        return list(dict.fromkeys(found))
