"""State attributes of a link route, with and without a connected container."""

from __future__ import annotations

from router.amqp.performatives import Attach, Target
from router.core.link_routes.route_outlets import LinkRouteRule
from router.engine.link import IncomingLink
from router.management.entities.link_route_state import LINK_ROUTE_STATE, LinkRouteState
from router.management.schema import LiveEntity

from support.in_memory import Router


def test_what_has_become_of_a_link_route() -> None:
    router = Router()
    routes = router.forwarder.link_routes
    way = routes.add(LinkRouteRule("n", "in", True, "q"))

    def told() -> dict[str, object]:
        state = LiveEntity(None, LinkRouteState(way, router.turn.now))
        return {each.name: each.read(state) for each in LINK_ROUTE_STATE}

    nothing = {each.name: each.read(LiveEntity(None, None)) for each in LINK_ROUTE_STATE}
    assert told() == nothing
    assert nothing == {
        "operStatus": "inactive",
        "containerCount": 0,
        "containers": [],
        "linkCount": 0,
        "linksForwarded": 0,
        "linksRefused": 0,
        "lastRefusal": None,
        "lastRefusalSeconds": None,
    }
    for _ in range(2):
        routes.open(way, router.client(container="broker").connection)
    client = router.client()
    links = []
    for _ in range(3):
        link = IncomingLink(client.connection.local_sessions[0], "l", 0)
        link.remote_attach = Attach("l", 0, False, target=Target(address="q"))
        route = routes.route_of(link)
        assert route is not None
        route.place(link)
        links.append(link)
    routes.refused(links[0], "amqp:not-found", "no queue")
    routes.left(links[0])
    router.wait(7.5)
    assert told() == {
        "operStatus": "active",
        "containerCount": 2,
        "containers": ["broker"],
        "linkCount": 2,
        "linksForwarded": 3,
        "linksRefused": 1,
        "lastRefusal": "amqp:not-found: no queue",
        "lastRefusalSeconds": 7,
    }
