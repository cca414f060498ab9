"""Query a router for the entities and attributes that a view of `trioute stat` shows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from router.cli.columns import View
from router.cli.rates import LINK_ATTRIBUTES, Entity, Snapshot, rates_between, rates_of_connections
from router.client import ManagementClient, RequestRefused
from router.management.requests import BAD_REQUEST, NOT_FOUND, NOT_IMPLEMENTED

LINK: Final = "router.link"


@attrs.frozen
class EntityRange:
    """Range of entities to query, in the router's order.

    It begins with entity number `offset`, counted from 0, and has at most `count` entities; None is
    no limit.
    """

    offset: int = 0
    count: int | None = None


@attrs.frozen
class ViewData:
    """Content of a view: attribute names, entities in order, and rates of counters.

    `rates` maps the identities of entities to their rates by attribute. It is None if there is no
    earlier query to compare with.
    """

    view: View
    names: Sequence[str]
    entities: Sequence[Entity]
    rates: Mapping[str, Mapping[str, float]] | None = None

    def rates_of(self, entity: Entity) -> Mapping[str, float]:
        """Return the known rates of one entity, by attribute."""
        return (self.rates or {}).get(str(entity.get("identity")), {})


class Viewer:
    """Source of the content of one view, which can be queried repeatedly.

    With `every_attribute`, attributes that no column shows are requested as well. With
    `with_rates`, the rates since the previous query are computed.
    """

    def __init__(
        self, view: View, part: EntityRange, *, every_attribute: bool, with_rates: bool = False
    ) -> None:
        self.view = view
        self._part = part
        self._every_attribute = every_attribute
        self._with_rates = with_rates
        self._before: Snapshot | None = None

    async def query(self, management: ManagementClient) -> ViewData:
        """Query the router, and compute the rates since the previous query, if requested.

        Raises ClientError if the connection fails, and RequestRefused if the router refuses the
        query. If the router lacks the entity type, there are no entities.
        """
        view, part = self.view, self._part
        asked = () if self._every_attribute else known_names(view)
        names, entities = await _entities(management, view.kind, asked, part)
        kept = sorted(filter(view.keep, entities), key=view.order)
        if not self._with_rates:
            return ViewData(view, names, kept)
        links: Sequence[Entity] = ()
        if view.counted_by_links:
            _, links = await _entities(management, LINK, LINK_ATTRIBUTES, EntityRange())
        now = Snapshot(time.monotonic(), kept, links)
        before, self._before = self._before, now
        if before is None:
            return ViewData(view, names, kept)
        if view.counted_by_links:
            return ViewData(view, names, kept, rates_of_connections(before, now))
        counters = [attribute for _, attribute in view.counters]
        return ViewData(view, names, kept, rates_between(before, now, counters))


def known_names(view: View) -> tuple[str, ...]:
    """Return the attributes to request for a view.

    The view's attributes that are in `UNREPORTED` are left out: no Trioute router has them, and a
    query for them is refused.
    """
    wanted = {column.attribute for column in view.columns}
    wanted |= {"name", "identity", *_MADE_FROM.get(view.kind, ())}
    wanted |= {attribute for _, attribute in view.counters}
    return tuple(sorted(wanted - UNREPORTED.get(view.kind, frozenset())))


# A router refuses a query for an attribute that it lacks. These attributes are listed here because
# importing the schema takes longer than the command.
UNREPORTED: Final[Mapping[str, frozenset[str]]] = {
    "connection": frozenset({"deliveriesIn", "deliveriesOut", "lastDlvSeconds", "tenant"}),
}

# Attributes that computed columns read besides their own.
_MADE_FROM: Final = {
    "connection": ("sasl", "user", "sslProto", "sslCipher"),
    "vhostUserGroupSettings": ("targetPattern", "sourcePattern"),
}


async def _entities(
    management: ManagementClient, kind: str, names: Sequence[str], part: EntityRange
) -> tuple[Sequence[str], Sequence[Entity]]:
    """Return the attribute names and the entities of a type.

    Both are empty if the router lacks the type.
    """
    try:
        table = await management.query(kind, names, offset=part.offset, count=part.count)
    except RequestRefused as refused:
        if refused.status == NOT_FOUND and names:
            # the router's version differs from this command's, and it lacks one of the attributes
            return await _entities(management, kind, (), part)
        if refused.status in (BAD_REQUEST, NOT_IMPLEMENTED):
            return (), []
        raise
    rows = [dict(zip(table.names, row, strict=True)) for row in table.rows]
    return table.names, rows
