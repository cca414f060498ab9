"""Link routes that a connection requests from $management, and that lead to that connection.

They are not part of the configuration: management does not show them to other connections, no file
contains them, and they end with their connection. Only clients with the right to change things may
request them (docs/decisions/0037-who-may-manage.md).
"""

from __future__ import annotations

from typing import Final

from router.core.addresses.access import tenant_name
from router.core.link_routes.route_outlets import LinkRouteRule
from router.management.entities.link_routes import CONNECTION_LINK_ROUTE, ConnectionLinkRoute
from router.management.request_settings import Given, known_attribute, setting_value
from router.management.requests import BAD_REQUEST, FORBIDDEN, Refused
from router.management.views import RouterView

# Maximum number of link routes that one connection can have.
MAX_LINK_ROUTES: Final = 1000


def create(router: RouterView, given: Given) -> ConnectionLinkRoute:
    """Create a link route to the requesting connection; raise Refused if it is not allowed."""
    # no connection in `pumps` has the number 0
    pump = router.observed.pumps.get(router.requester_number or 0)
    if pump is None or router.control is None:
        raise Refused(BAD_REQUEST, "the connection that requested the link route is closed")
    access = pump.connection.access
    if access is not None and not access.allows_link_routes:
        reason = "the policy does not allow the connection's group to request link routes"
        raise Refused(FORBIDDEN, f"{reason}: allowDynamicLinkRoutes is false")
    values = {name: _value(name, value) for name, value in given.items() if value is not None}
    for name in ("pattern", "direction"):
        if name not in values:
            raise Refused(BAD_REQUEST, f"a link route needs the attribute {name}")
    pattern, direction = str(values["pattern"]), str(values["direction"])
    tenant = tenant_name(pump.connection)
    if tenant:
        # a container of a tenant serves only addresses of the tenant
        pattern = f"{tenant}/{pattern.lstrip('/')}"
    name = str(values.get("name", f"{direction}/{pattern}"))
    routing, scope = router.control.link_routes, pump.connection
    mine = routing.requested_by(scope)
    if name in mine:
        raise Refused(BAD_REQUEST, f"the connection already has a link route named {name[:100]!r}")
    if len(mine) >= MAX_LINK_ROUTES:
        raise Refused(BAD_REQUEST, f"a connection can have at most {MAX_LINK_ROUTES} link routes")
    way = routing.add_requested(LinkRouteRule(name, direction, False, pattern, scope=scope))
    return ConnectionLinkRoute(way, pump.number)


def delete(router: RouterView, found: ConnectionLinkRoute) -> None:
    """Delete a link route; links that it has already forwarded stay attached."""
    assert router.control is not None
    router.control.link_routes.remove_requested(found.way)


def _value(name: str, value: object) -> object:
    if name == "type":
        return value
    if name == "name":
        if not isinstance(value, str) or not value:
            raise Refused(BAD_REQUEST, "name must be a non-empty string")
        return str(value)
    attribute = known_attribute(CONNECTION_LINK_ROUTE, name)
    if attribute.setting is None:
        raise Refused(BAD_REQUEST, f"{name} cannot be set: it is read-only")
    return setting_value(attribute, value)
