"""Read the initial responses of SASL mechanisms that send a password or a token.

PLAIN is RFC 4616, and OAUTHBEARER is RFC 7628. XOAUTH2 is the mechanism that Google has published.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

LONGEST_RESPONSE: Final = 16_384
"""Octets of the longest response that is read."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
# Escapes in an authorization identity, for "," and "=" (RFC 5801, section 4).
_ESCAPED: Final = re.compile(r"=(2C|3D)")
_SEPARATOR: Final = "\x01"


@attrs.frozen
class Password:
    """User name and password; `identity` is the authorization identity, empty for the user's."""

    user: str
    password: str = attrs.field(repr=False)
    identity: str = ""


@attrs.frozen
class Token:
    """Bearer token, and the user that the peer claims to be; empty if it names none."""

    user: str
    token: str = attrs.field(repr=False)


def read_plain(response: bytes) -> Password:
    """Read a response of PLAIN: an authorization identity, a user and a password.

    Raises ValueError, whose text shows nothing of the response, if it is not of that form.
    """
    parts = _decoded("PLAIN", response).split("\0")
    if len(parts) != 3 or not parts[1] or not parts[2]:
        raise ValueError("a response of PLAIN must have a user and a password, apart by NUL")
    identity, user, password = parts
    return Password(user, password, identity)


def read_token(mechanism: str, response: bytes) -> Token:
    """Read a response of XOAUTH2 or OAUTHBEARER: a user and a bearer token.

    With OAUTHBEARER the user may be left out. Raises ValueError, whose text shows nothing of the
    response, if it is not of that form, or if the mechanism is another one.
    """
    if mechanism == "XOAUTH2":
        return _read_xoauth2(_decoded(mechanism, response))
    if mechanism == "OAUTHBEARER":
        return _read_oauthbearer(_decoded(mechanism, response))
    raise ValueError(f"{mechanism} sends no token; XOAUTH2 and OAUTHBEARER do")


def _decoded(mechanism: str, response: bytes) -> str:
    if len(response) > LONGEST_RESPONSE:
        raise ValueError(
            f"a response of {mechanism} has {len(response)} octets; {LONGEST_RESPONSE} are allowed"
        )
    try:
        return response.decode()
    except UnicodeDecodeError:
        # not from the error, which holds the response
        raise ValueError(f"a response of {mechanism} is not UTF-8 text") from None


def _read_xoauth2(text: str) -> Token:
    parts = text.split(_SEPARATOR)
    if len(parts) != 4 or parts[2:] != ["", ""] or not parts[0].startswith("user="):
        raise ValueError("a response of XOAUTH2 must be user=...^Aauth=Bearer ...^A^A")
    user = parts[0].removeprefix("user=")
    if not user:
        raise ValueError("a response of XOAUTH2 must name a user")
    return Token(user, _bearer("XOAUTH2", parts[1]))


def _read_oauthbearer(text: str) -> Token:
    header, _, rest = text.partition(_SEPARATOR)
    parts = header.split(",")
    pairs = rest.split(_SEPARATOR)
    # the GS2 header must have no channel binding and no reserved attribute
    if len(parts) != 3 or parts[0] not in ("n", "y") or parts[2] or pairs[-2:] != ["", ""]:
        raise ValueError("a response of OAUTHBEARER must be n,a=...,^Aauth=Bearer ...^A^A")
    found = [pair for pair in pairs if pair.startswith("auth=")]
    if len(found) != 1:
        raise ValueError("a response of OAUTHBEARER must have one auth=")
    return Token(_identity(parts[1]), _bearer("OAUTHBEARER", found[0]))


def _identity(part: str) -> str:
    """Return the user in a GS2 header, without its escapes (RFC 5801, section 4)."""
    if not part:
        return ""
    name = part.removeprefix("a=")
    if name == part or not name or "=" in _ESCAPED.sub("", name):
        raise ValueError("a response of OAUTHBEARER has a wrong authorization identity")
    return _ESCAPED.sub(lambda match: "," if match[1] == "2C" else "=", name)


def _bearer(mechanism: str, pair: str) -> str:
    scheme, _, token = pair.removeprefix("auth=").partition(" ")
    token = token.strip(" ")
    if not pair.startswith("auth=") or scheme.lower() != "bearer" or not _TOKEN.fullmatch(token):
        raise ValueError(f"a response of {mechanism} must have auth=Bearer and a token")
    return token
