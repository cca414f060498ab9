"""Report about a policy, as text: who may connect to which vhost, and what they may do there."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from router.cli.tables import LEAST_CELLS
from router.cli.value_formats import text
from router.config.model import Configuration
from router.config.setting import default_of, file_name
from router.config.vhosts import (
    CONNECTOR_GROUP,
    DEFAULT_GROUP,
    VhostGroupSettings,
    VhostSettings,
)
from router.control.policy.review import Caution

# Maximum number of users, hosts or addresses that are listed for a group, unless all are wanted.
MOST_SHOWN: Final = 20
_NAMES_AT: Final = 18
_LIMIT: Final = ("max", "connection_buffer")
_SWITCH: Final = "allow"


def format_report(
    configuration: Configuration,
    cautions: Sequence[Caution],
    width: int | None,
    *,
    is_whole: bool = False,
) -> Iterator[str]:
    """Yield the lines of a report; with `is_whole`, long lists are not shortened."""
    policy = configuration.policy
    is_on = "is enforced" if policy.enable_vhost_policy else "is not enforced (enableVhostPolicy)"
    known = {each.hostname for each in configuration.vhosts}
    default = policy.default_vhost
    other = f"belong to {default}" if default in known else f"are refused (no vhost {default})"
    yield f"The policy {is_on}. Peers with other host names {other}."
    shown = None if is_whole else MOST_SHOWN
    for vhost in configuration.vhosts:
        yield ""
        yield from _lines("vhost", _vhost(vhost), width, 0)
        for name, group in vhost.groups.items():
            yield ""
            yield f"  group {text(name)}"
            for title, values in _group(vhost, name, group, shown):
                yield from _lines(title, values, width, 4)
    if cautions:
        yield ""
        count = len(cautions)
        yield f"{count} warning{'s' * (count != 1)}"
        for each in cautions:
            yield from _wrapped(f"  {text(str(each))}", width, 4)


def _vhost(vhost: VhostSettings) -> str:
    words = [text(vhost.hostname)]
    if vhost.aliases:
        words.append(f"also {', '.join(map(text, vhost.aliases))}")
    words += _limits(vhost)
    return "; ".join(words)


def _group(
    vhost: VhostSettings, name: str, group: VhostGroupSettings, most: int | None
) -> Iterator[tuple[str, str]]:
    """Yield the titles of the lines about a group, each with its text."""
    yield "users", _users(vhost, name, group, most)
    if name != CONNECTOR_GROUP:
        yield "hosts", _listed(group.remote_hosts, most)
    yield "send to", _listed((*group.targets, *group.target_pattern), most)
    yield "receive from", _listed((*group.sources, *group.source_pattern), most)
    switches = [
        file_name(field.name)
        for field in attrs.fields(VhostGroupSettings)
        if field.name.startswith(_SWITCH) and getattr(group, field.name)
    ]
    yield "on", ", ".join(switches) or "nothing"
    limits = _limits(group)
    if limits:
        yield "limits", ", ".join(limits)
    if group.management is not None:
        yield "management", group.management


def _users(vhost: VhostSettings, name: str, group: VhostGroupSettings, most: int | None) -> str:
    if name == CONNECTOR_GROUP:
        return "the peers that this router connects to"
    named = _listed(group.users, most) if group.users else ""
    if name == DEFAULT_GROUP and vhost.allow_unknown_user:
        return (
            f"{named}, and all that are in no other group"
            if named
            else "all that are in no other group"
        )
    return named or "nobody is listed"


def _listed(entries: Sequence[str], most: int | None) -> str:
    shown = ", ".join(map(text, entries[:most])) or "nothing"
    more = 0 if most is None else len(entries) - most
    return f"{shown} and {more} more" if more > 0 else shown


def _limits(settings: VhostSettings | VhostGroupSettings) -> list[str]:
    """Return the limits that differ from their defaults, each with its value."""
    return [
        f"{file_name(field.name)} {value}"
        for field in attrs.fields(type(settings))
        if field.name.startswith(_LIMIT)
        and (value := getattr(settings, field.name)) != default_of(field, settings)
    ]


def _lines(title: str, value: str, width: int | None, indent: int) -> Iterable[str]:
    return _wrapped(f"{' ' * indent}{title:{_NAMES_AT - indent}}{value}", width, _NAMES_AT)


def _wrapped(line: str, width: int | None, indent: int) -> Iterable[str]:
    room = max(width or sys.maxsize, LEAST_CELLS + indent)
    return textwrap.wrap(
        line, room, subsequent_indent=" " * indent, break_on_hyphens=False, break_long_words=False
    )
