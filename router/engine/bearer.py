"""Log in with a bearer token, as a client, by XOAUTH2 or OAUTHBEARER (RFC 7628).

XOAUTH2 is the mechanism that Google has published. With both, the first message has the token. If
the server refuses it, it says why in a challenge, which the client has to answer before it gets the
outcome. The token is what the settings have as the password.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from router.engine.settings import ConnectionSettings

TOKEN_FORM: Final = "a token has letters, digits and any of -._~+/, and = at its end only"
# RFC 6750, section 2.1
_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
# Characters that the messages have between their parts, and others that no name has.
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f]")
# How servers name an error: by a word that is registered for OAuth, or the status code of HTTP.
_STATUS: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def is_token(text: str) -> bool:
    """Return whether a text can be sent as a bearer token."""
    return _TOKEN.fullmatch(text) is not None


def objection(settings: ConnectionSettings, mechanism: str) -> str:
    """Return why no message can be made of the settings; "" if it can. It shows no secret."""
    if not settings.sasl_password:
        return f"{mechanism} needs a bearer token as the password"
    if not is_token(settings.sasl_password):
        return f"{mechanism} needs a bearer token as the password; {TOKEN_FORM}"
    user = settings.sasl_username or ""
    if mechanism == "XOAUTH2" and not user:
        return "XOAUTH2 needs a user name"
    if _CONTROLS.search(user):
        return f"{mechanism} cannot send a user name with control characters"
    return ""


def first_message(settings: ConnectionSettings, mechanism: str) -> bytes:
    """Return the client's first message; `objection` must have none.

    That of OAUTHBEARER names the server's host and port (RFC 7628, section 3.1), if they are known.
    It has no user if the token alone says who this is.
    """
    user, bearer = settings.sasl_username or "", f"auth=Bearer {settings.sasl_password}"
    if mechanism == "XOAUTH2":
        return f"user={user}\x01{bearer}\x01\x01".encode()
    # the escapes of RFC 5801, section 4
    identity = user.replace("=", "=3D").replace(",", "=2C")
    parts = [f"n,a={identity}," if user else "n,,"]
    host = settings.hostname or ""
    # no other characters are allowed there
    if host and host.isascii() and host.isprintable():
        parts.append(f"host={host}")
    if settings.port is not None:
        parts.append(f"port={settings.port}")
    return "\x01".join((*parts, bearer, "", "")).encode()


def answer_to_error(mechanism: str) -> bytes:
    """Return the client's answer to a challenge with an error (RFC 7628, section 3.2.3)."""
    return b"\x01" if mechanism == "OAUTHBEARER" else b""


def error_status(challenge: bytes, token: str) -> str:
    """Return the error that a challenge names, such as `invalid_token`; "" if it names none.

    What it says may be anything, so it is only returned if it is a short word without the token.
    """
    try:
        found = json.loads(challenge)
    except (ValueError, RecursionError):
        return ""
    status = found.get("status") if isinstance(found, dict) else None
    text = str(status) if isinstance(status, str | int) else ""
    return text if _STATUS.fullmatch(text) and token not in text else ""
