"""The placement of a routed link: the requested address, the sent address, route and origin."""

from __future__ import annotations

import pytest

from router.core.addresses.access import Access
from router.core.addresses.tenants import Tenant
from router.core.link_routes.placement import Placement
from router.core.link_routes.route_outlets import LinkRouteRule
from router.core.routers.names import COORDINATOR

from support.in_memory import Router


@pytest.mark.parametrize(
    ("rule", "asked", "sent"),
    [
        (LinkRouteRule("r", "in", True, "q"), "q.a", "q.a"),
        (LinkRouteRule("r", "in", True, "q"), "/q.a", "/q.a"),
        (LinkRouteRule("r", "in", True, "q", add_prefix="p/"), "q.a", "p/q.a"),
        (LinkRouteRule("r", "in", True, "q", del_prefix="q."), "q.a", "a"),
    ],
)
def test_a_placement_has_what_was_asked_for_and_what_was_sent(
    rule: LinkRouteRule, asked: str, sent: str
) -> None:
    placed = place(rule, asked)
    assert (placed.asked, placed.sent) == (asked, sent)
    assert not placed.is_coordinator
    assert placed.link_route is not None
    assert placed.link_route.rule is rule
    assert placed.outlet.place is placed.connection


def test_a_tenant_asks_for_its_own_addresses() -> None:
    rule = LinkRouteRule("r", "in", True, "a.com/q", del_prefix="a.com/")
    placed = place(rule, "q.x", tenant="a.com")
    assert (placed.asked, placed.sent) == ("q.x", "q.x")
    assert placed.origin.user == "a.com\0anonymous"


def test_placements_are_told_apart() -> None:
    first, second = (place(LinkRouteRule("r", "in", False, COORDINATOR), COORDINATOR),) * 2
    assert first == second
    assert first != place(LinkRouteRule("r", "in", False, COORDINATOR), COORDINATOR)


def place(rule: LinkRouteRule, address: str, tenant: str = "") -> Placement:
    """Return the placement of a client's sender by a link route."""
    router = Router()
    link_routes = router.forwarder.link_routes
    broker = router.client(role="route-container")
    link_routes.open(link_routes.add(rule), broker.connection)
    client = router.client()
    if tenant:
        client.connection.access = Access(tenant=Tenant(tenant))
    client.sender(address)
    (link,) = client.connection.local_sessions[0].local_links.values()
    placed = link_routes.placed(link)
    assert placed is not None
    return placed
