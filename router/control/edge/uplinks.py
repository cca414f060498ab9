"""Choose which of an edge router's connections to interior routers are active.

Up to the wanted number of connections are active; the others are on standby. An active uplink stays
active while it is open, because a switch would cost senders their credit. If it is lost, the first
uplink on standby, in the order of the configuration, replaces it at once. Otherwise a new uplink
waits briefly if a preferred one has not connected yet. Two connections to the same interior are
never both active.

This module does no I/O: connections are identified by number, and `take` returns the changes
(docs/decisions/0065-uplinks.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import attrs

# Time for which a new connection waits for a preferred one.
SETTLE_S: Final = 0.5


class UplinkChange(NamedTuple):
    """Change of an uplink, which has become active or is on standby again."""

    connection: int
    is_active: bool


@attrs.define
class Uplink:
    """Uplink, with the connector that opened it and the id of the interior that it leads to.

    `reason` explains to operators why the uplink is active or on standby. `since` is when it last
    became active or went on standby, and `came` is when it opened, both in seconds. `may_replace`
    is whether an active uplink was lost after this one opened. If so, this one may become active
    without waiting for preferred ones.
    """

    connection: int
    connector: str
    router: str
    came: float
    since: float
    is_active: bool = False
    may_replace: bool = False
    reason: str = ""


class Uplinks:
    """Set of an edge router's uplinks, of which at most `wanted` are active.

    `order` has the names of the router's connectors, in order of preference.
    """

    def __init__(self, order: Iterable[str] = (), wanted: int = 1) -> None:
        # by the number of their connections, in the order in which these opened
        self.links: dict[int, Uplink] = {}
        self.wanted = wanted
        self._places: dict[str, int] = {}
        self._changes: list[UplinkChange] = []
        # number of active uplinks that were lost
        self.losses = 0
        self.configure(order, wanted, 0.0)

    def configure(self, order: Iterable[str], wanted: int, now: float) -> None:
        """Set how many active uplinks are wanted, and the preferred order of the connectors.

        Active uplinks stay active, unless there are too many.
        """
        self._places = {name: place for place, name in enumerate(order)}
        self.wanted = wanted
        for uplink in self.active()[wanted:]:
            self._become(uplink, False, now)
        self._choose(now)

    def came(self, connection: int, connector: str, router: str, now: float) -> None:
        """Add an open and usable connection to the interior `router`."""
        self.links[connection] = Uplink(connection, connector, router, now, now)
        self._choose(now)

    def left(self, connection: int, now: float) -> None:
        """Remove a connection that has ended."""
        uplink = self.links.pop(connection, None)
        if uplink is None:
            return
        if uplink.is_active:
            self.losses += 1
            for each in self.links.values():
                each.may_replace = True
        self._choose(now)

    def tick(self, now: float) -> None:
        """Activate uplinks that have waited long enough for preferred ones."""
        if len(self.active()) < min(self.wanted, len(self.links)):
            self._choose(now)

    def take(self) -> list[UplinkChange]:
        """Return the changes since the last call, deactivations first."""
        changes, self._changes = self._changes, []
        return sorted(changes, key=lambda change: change.is_active)

    def active(self) -> list[Uplink]:
        """Return the active uplinks; the first is the primary, used if only one path is allowed."""
        used = [uplink for uplink in self.links.values() if uplink.is_active]
        return sorted(used, key=lambda uplink: (uplink.since, self._rank(uplink)))

    def _rank(self, uplink: Uplink) -> tuple[int, int]:
        place = self._places.get(uplink.connector, len(self._places))
        return place, uplink.connection

    def _choose(self, now: float) -> None:
        ranked = sorted(self.links.values(), key=self._rank)
        routers = {uplink.router: uplink for uplink in ranked if uplink.is_active}
        for uplink in ranked:
            if uplink.is_active or len(routers) >= self.wanted or uplink.router in routers:
                continue
            if self._is_ready(uplink, now):
                routers[uplink.router] = uplink
                self._become(uplink, True, now)
        for uplink in ranked:
            uplink.reason = self._reason(uplink, routers)

    def _is_ready(self, uplink: Uplink, now: float) -> bool:
        """Return whether an uplink need not wait any longer for a preferred one to connect."""
        if uplink.may_replace or now - uplink.came >= SETTLE_S:
            return True
        here = {each.connector for each in self.links.values()}
        place = self._places.get(uplink.connector, len(self._places))
        return all(name in here for name, rank in self._places.items() if rank < place)

    def _become(self, uplink: Uplink, is_active: bool, now: float) -> None:
        uplink.is_active = is_active
        uplink.since = now
        self._changes.append(UplinkChange(uplink.connection, is_active))

    def _reason(self, uplink: Uplink, routers: dict[str, Uplink]) -> str:
        if uplink.is_active:
            return (
                "in use"
                if self.wanted == 1
                else f"in use, one of up to {self.wanted} active uplinks"
            )
        other = routers.get(uplink.router)
        if other is not None:
            return f"standby: {other.connector} leads to {uplink.router} as well"
        if len(routers) < self.wanted:
            return "waits briefly for a preferred uplink to connect"
        names = ", ".join(each.connector for each in self.active())
        return f"standby for {names}"
