"""Web pages that may connect: the check of a request's Origin (RFC 6454, RFC 6455 section 10.2).

A browser lets every web page connect to every server, and says by `Origin` which page it is. Other
clients do not say it. Without this check, any page that a user looks at could use the access that
the user's host has (docs/decisions/0112).
"""

from __future__ import annotations

from collections.abc import Sequence

# How much of an origin is shown in a log line and in an answer.
_SHOWN_CHARACTERS = 200


def origin_objection(origins: Sequence[bytes], host: bytes, allowed: Sequence[str]) -> str | None:
    """Return why a request is refused for its `Origin` headers, or None if it is not.

    `host` is the value of its `Host`, and `allowed` the listener's allowedOrigins. A page that this
    host and port has served is allowed in any case.
    """
    if not origins or "*" in allowed:
        return None
    if len(origins) > 1:
        return "it has more than one Origin"
    origin = origins[0].decode("latin-1").strip().lower()
    if origin in {each.lower() for each in allowed}:
        return None
    _, separator, place = origin.partition("://")
    if separator and place and place == host.decode("latin-1").strip().lower():
        return None
    return (
        f"its Origin {origin[:_SHOWN_CHARACTERS]!a} is another host or port than its Host; to "
        "allow it, name it in the listener's allowedOrigins"
    )
