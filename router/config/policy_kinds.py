"""Kinds of configuration values that only policies have: lists of users, hosts and addresses."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable
from typing import Final

import attrs

from router.config.kinds import Kind, ValueNotAllowed

USER_TOKEN: Final = "${user}"
"""Token in an entry that stands for the name of the peer's user."""

LOCALHOST: Final = "localhost"
ANY: Final = "*"
# Host name with a port. A colon in an IPv6 address without brackets does not begin a port.
_WITH_PORT: Final = re.compile(r"([^:]*|\[.*\]):[0-9]+", re.DOTALL)
_MOST_ENTRIES: Final = 10_000
_LONGEST: Final = 512


@attrs.frozen
class Part:
    """Mistake within a table: a value that is not allowed or, with `is_unknown`, an unknown key.

    `path` leads to it from the table. `allowed` and `nearest` are as in `Finding`.
    """

    path: tuple[str, ...]
    allowed: str
    nearest: str = ""
    is_unknown: bool = False


class NotAllowedWithin(ValueNotAllowed):
    """Refusal of a table, because of the `parts` of it that are not allowed."""

    def __init__(self, allowed: str, parts: Iterable[Part]) -> None:
        super().__init__(allowed)
        self.parts = tuple(parts)


def user_names() -> Kind:
    """Return the kind for lists of user names."""
    return _listed("users", lambda _: True)


def address_names() -> Kind:
    """Return the kind for lists of addresses, which may end with `*` and contain `${user}`."""
    words = (
        "a list of addresses, or one text with commas; * at the end of an address stands for any "
        f"continuation, and {USER_TOKEN} may occur once in each"
    )
    kind = _listed("addresses", lambda text: text.count(USER_TOKEN) <= 1)
    return _with_words(kind, words)


def address_patterns() -> Kind:
    """Return the kind for lists of address patterns, with `${user}` at the beginning or end."""
    words = (
        "a list of address patterns, or one text with commas, in which * stands for one token and "
        f"# for any number; {USER_TOKEN} may be the first or the last token"
    )
    return _with_words(_listed("patterns", _has_user_at_an_end), words)


def host_name() -> Kind:
    """Return the kind for the host name of a virtual host, which may be empty."""
    words = "a host name without spaces, or an empty text"

    def read(value: object) -> str:
        if not isinstance(value, str) or len(value) > _LONGEST:
            raise ValueNotAllowed(words)
        if " " in value or not value.isprintable():
            raise ValueNotAllowed(words)
        return value

    return Kind(words, read)


def host_names() -> Kind:
    """Return the kind for lists of host names, or of patterns of host names."""
    return _listed("host names", lambda text: " " not in text)


def normal_hostname(text: str) -> str:
    """Return the form of a host name by which it is compared with others.

    It is in lower case, without a port and without a dot at the end.
    """
    name = text.strip()
    with_port = _WITH_PORT.fullmatch(name)
    return (name if with_port is None else with_port[1]).rstrip(".").lower()


def remote_hosts() -> Kind:
    """Return the kind for lists of hosts by IP address."""
    words = (
        "a list, or one text with commas, of IP addresses, networks such as 10.0.0.0/8, ranges "
        f'such as 10.0.0.1-10.0.0.9, "{LOCALHOST}", or "{ANY}" for all hosts'
    )
    return _with_words(_listed("hosts", is_host_range), words)


def host_range(text: str) -> tuple[int, int, int]:
    """Return the IP version, and the lowest and highest address, of an entry of remoteHosts.

    Raises ValueError if the entry is invalid, and for `localhost` and `*`, which have no range.
    """
    low, dash, high = (part.strip() for part in text.partition("-"))
    if not dash:
        network = ipaddress.ip_network(low, strict=False)
        return network.version, int(network.network_address), int(network.broadcast_address)
    first, last = ipaddress.ip_address(low), ipaddress.ip_address(high)
    if first.version != last.version or int(first) > int(last):
        raise ValueError(text)
    return first.version, int(first), int(last)


def is_host_range(text: str) -> bool:
    """Return whether a text is a valid entry of remoteHosts."""
    if text in (ANY, LOCALHOST):
        return True
    try:
        host_range(text)
    except ValueError:
        return False
    return True


def _has_user_at_an_end(text: str) -> bool:
    count = text.count(USER_TOKEN)
    if not count:
        return True
    before, _, after = text.partition(USER_TOKEN)
    starts = not before and (not after or after[0] in "./")
    ends = not after and before.endswith((".", "/"))
    return count == 1 and (starts or ends)


def _listed(what: str, allows: Callable[[str], bool]) -> Kind:
    """Return the kind for lists of texts that `allows` accepts, or one text with commas."""
    words = f"a list of {what}, or one text with commas between them"

    def read(value: object) -> tuple[str, ...]:
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",")] if value.strip() else []
        if not isinstance(value, (list, tuple)) or len(value) > _MOST_ENTRIES:
            raise ValueNotAllowed(words)
        for text in value:
            if not isinstance(text, str) or not 1 <= len(text) <= _LONGEST:
                raise ValueNotAllowed(words)
            if not text.isprintable() or "," in text or text != text.strip() or not allows(text):
                raise ValueNotAllowed(words)
        return tuple(dict.fromkeys(value))

    return Kind(words, read)


def _with_words(kind: Kind, words: str) -> Kind:
    """Return the same kind, with other words for what is allowed."""

    def read(value: object) -> object:
        try:
            return kind.read(value)
        except ValueNotAllowed:
            raise ValueNotAllowed(words) from None

    return attrs.evolve(kind, words=words, read=read)
