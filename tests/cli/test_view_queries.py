"""Views query only attributes that they show and that the router reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from router.cli.columns import View
from router.cli.rates import LINK_ATTRIBUTES
from router.cli.view_queries import (
    LINK,
    UNREPORTED,
    EntityRange,
    Viewer,
    known_names,
)
from router.cli.views import ADDRESSES, CONNECTIONS, EDGES, LINKS, NODES, VIEWS
from router.client import ManagementClient, RequestRefused, connect_management
from router.client.management import Table
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.router_settings import RouterSettings
from router.management.entity_types import ENTITY_TYPES
from router.management.names import long_name

from support.loopback import running_node

SOLO = Configuration(router=RouterSettings(id="solo"), listeners=(ListenerSettings(port=0),))


class Told:
    """A router that tells what the test wants it to, one answer for each type at a time."""

    def __init__(self, answers: Mapping[str, list[Table | RequestRefused]]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, Sequence[str], int, int | None]] = []

    async def query(
        self, kind: str, names: Sequence[str], *, offset: int, count: int | None
    ) -> Table:
        """Answer a query."""
        self.asked.append((kind, names, offset, count))
        answer = self.answers[kind].pop(0)
        if isinstance(answer, RequestRefused):
            raise answer
        return answer


def viewer(view: View, **options: Any) -> Viewer:
    """Create a viewer of a whole view, with its default columns."""
    return Viewer(view, EntityRange(), **{"every_attribute": False, **options})


def test_it_is_known_what_a_router_does_not_report() -> None:
    unreported: dict[str, set[str]] = {}
    for view in VIEWS.values():
        of, _ = ENTITY_TYPES[long_name(view.kind)]
        reported = {each.name for each in of.attributes}
        assert set(known_names(view)) <= reported
        wanted = {each.attribute for each in view.columns} | {name for _, name in view.counters}
        unreported.setdefault(view.kind, set()).update(wanted - reported)
    assert {kind: names for kind, names in unreported.items() if names} == UNREPORTED


async def test_no_more_is_asked_for_than_is_shown() -> None:
    names = known_names(ADDRESSES)
    assert {"name", "identity", "key", "deliveriesIngress"} <= set(names)
    assert "remoteHostRouters" not in names
    assert {"sasl", "user"} <= set(known_names(CONNECTIONS))
    assert {"id", "nextHop", "cost"} <= set(known_names(NODES))
    assert "instance" not in known_names(NODES)
    async with (
        running_node(SOLO) as running,
        connect_management(f"127.0.0.1:{running.address[1]}") as management,
    ):
        seen = await viewer(ADDRESSES).query(management)
        assert tuple(seen.names) == names
        every = await viewer(ADDRESSES, every_attribute=True).query(management)
        assert set(names) < set(every.names)


async def test_a_router_without_one_of_the_attributes_tells_the_rest() -> None:
    found = Table(("identity", "name"), (("a", "a"),))
    told = Told({LINK: [RequestRefused(404, "no attribute rate"), found]})
    seen = await viewer(LINKS).query(cast("ManagementClient", told))
    assert seen.entities == [{"identity": "a", "name": "a"}]
    assert [asked[1] for asked in told.asked] == [known_names(LINKS), ()]


@pytest.mark.parametrize("status", [400, 501])
async def test_a_router_without_the_type_has_none_of_it(status: int) -> None:
    told = Told({LINK: [RequestRefused(status, "what is that?")]})
    assert (await viewer(LINKS).query(cast("ManagementClient", told))).entities == []


async def test_another_refusal_is_told() -> None:
    told = Told({LINK: [RequestRefused(403, "not for you")]})
    with pytest.raises(RequestRefused, match="403"):
        await viewer(LINKS).query(cast("ManagementClient", told))


async def test_a_part_in_the_order_of_the_view() -> None:
    found = Table(("identity", "role"), (("10", "edge"), ("9", "edge"), ("8", "normal")))
    told = Told({"connection": [found]})
    seen = await Viewer(EDGES, EntityRange(3, 7), every_attribute=True).query(
        cast("ManagementClient", told)
    )
    assert [entity["identity"] for entity in seen.entities] == ["9", "10"]
    assert told.asked == [("connection", (), 3, 7)]


async def test_rates_come_with_the_second_look() -> None:
    tables = [Table(("identity", "deliveriesIngress"), (("a", count),)) for count in (1, 5)]
    told = Told({"router.address": list(tables)})
    watched = viewer(ADDRESSES, with_rates=True)
    assert (await watched.query(cast("ManagementClient", told))).rates is None
    seen = await watched.query(cast("ManagementClient", told))
    assert seen.rates_of({"identity": "a"})["deliveriesIngress"] > 0
    assert seen.rates_of({"identity": "b"}) == {}


async def test_the_links_of_connections_are_counted() -> None:
    connections = [Table(("identity",), (("1",),))] * 2
    links = [Table(LINK_ATTRIBUTES, (("1.0", "1", "in", count),)) for count in (1, 5)]
    told = Told({"connection": list(connections), LINK: list(links)})
    watched = viewer(CONNECTIONS, with_rates=True)
    await watched.query(cast("ManagementClient", told))
    seen = await watched.query(cast("ManagementClient", told))
    assert seen.rates_of({"identity": "1"})["deliveriesIn"] > 0
    assert seen.rates_of({"identity": "1"})["deliveriesOut"] == 0
