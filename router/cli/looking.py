"""Looking at a router for `trioute stat`: what a view needs is asked for, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from router.cli.columns import View
from router.cli.rates import LINK_ATTRIBUTES, Look, rates_between, rates_of_connections
from router.client import ManagementClient, RequestRefused
from router.management.entity_types import ENTITY_TYPES
from router.management.requests import BAD_REQUEST, NOT_FOUND, NOT_IMPLEMENTED
from router.management.schema import long_name

LINK: Final = "router.link"


@attrs.frozen
class Slice:
    """Which of the entities are shown: `count` of them, or all, from `offset` on, in the order in
    which the router tells them.
    """

    offset: int = 0
    count: int | None = None


@attrs.frozen
class Seen:
    """What a view shows: the attributes told, the entities in order, and what grew how quickly.

    `rates` are by identity, and None where there has been no look before.
    """

    view: View
    names: Sequence[str]
    entities: Sequence[Mapping[str, Any]]
    rates: Mapping[str, Mapping[str, float]] | None = None

    def rates_of(self, entity: Mapping[str, Any]) -> Mapping[str, float]:
        """The rates of one entity, without those that are not known."""
        return (self.rates or {}).get(str(entity.get("identity")), {})


class Viewer:
    """Looks at one view again and again. `every_attribute`: also those that no column shows."""

    def __init__(
        self, view: View, part: Slice, *, every_attribute: bool, with_rates: bool = False
    ) -> None:
        self.view = view
        self._part = part
        self._every_attribute = every_attribute
        self._with_rates = with_rates
        self._before: Look | None = None

    async def look(self, management: ManagementClient) -> Seen:
        """Ask, and compare with the look before.

        Raises ClientError, and RequestRefused where the router says no to more than the type.
        """
        view, part = self.view, self._part
        asked = () if self._every_attribute else known_names(view)
        names, entities = await _entities(management, view.kind, asked, part)
        kept = sorted(filter(view.keep, entities), key=view.order)
        if not self._with_rates:
            return Seen(view, names, kept)
        links: Sequence[Mapping[str, Any]] = ()
        if view.counted_by_links:
            _, links = await _entities(management, LINK, LINK_ATTRIBUTES, Slice())
        now = Look(time.monotonic(), kept, links)
        before, self._before = self._before, now
        if before is None:
            return Seen(view, names, kept)
        if view.counted_by_links:
            return Seen(view, names, kept, rates_of_connections(before, now))
        counters = [attribute for _, attribute in view.counters]
        return Seen(view, names, kept, rates_between(before, now, counters))


def known_names(view: View) -> tuple[str, ...]:
    """The attributes that a view is made from, of those that the schema has."""
    entry = ENTITY_TYPES.get(long_name(view.kind))
    if entry is None:
        return ()
    of, _ = entry
    wanted = {column.attribute for column in view.columns}
    wanted |= {"name", "identity", *_MADE_FROM.get(view.kind, ())}
    wanted |= {attribute for _, attribute in view.counters}
    return tuple(each.name for each in of.attributes if each.name in wanted)


# What columns read besides the attribute that they stand for.
_MADE_FROM: Final = {
    "connection": ("sasl", "user", "sslProto", "sslCipher"),
}


async def _entities(
    management: ManagementClient, kind: str, names: Sequence[str], part: Slice
) -> tuple[Sequence[str], list[dict[str, Any]]]:
    """The names told, and the entities; none where the router has no such type."""
    try:
        table = await management.query(kind, names, offset=part.offset, count=part.count)
    except RequestRefused as refused:
        if refused.status == NOT_FOUND and names:
            # a router of another version than this command, which lacks one of the attributes
            return await _entities(management, kind, (), part)
        if refused.status in (BAD_REQUEST, NOT_IMPLEMENTED):
            return (), []
        raise
    rows = [dict(zip(table.names, row, strict=True)) for row in table.rows]
    return table.names, rows
