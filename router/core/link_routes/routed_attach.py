"""Properties of a routed link on its way to a container at another router.

Each hop is a separate link, attached by one router at the next. Its attach is a copy of the
client's attach, except for the name, the handle and the properties. The properties hold the data
that routers need, and the client's properties unchanged (docs/reference/inter-router-protocol.md).
"""

from __future__ import annotations

import attrs

from router.amqp.constants import Condition
from router.amqp.encoded import AnyMap, EncodedMap
from router.amqp.performatives import Attach
from router.amqp.types import DecodedMap, Symbol, UInt
from router.core.addresses.link_origins import Origin
from router.core.routers.link_properties import (
    CLIENT,
    CONTAINER,
    COST,
    DESTINATION,
    IS_CONTAINER,
    LINK_ROUTE,
    NAME,
    PROPERTIES,
    USER,
)
from router.errors import AmqpError, Scope

# Condition of the error by which a router refuses a link whose path does not lead through it.
ROUTE_CHANGED = "trioute:route-changed"
MAX_COST = 0xFFFFFFFF


@attrs.frozen
class RoutedAttach:
    """Content of the attach of a routed link that is on its way to a container at another router.

    `key` is the key by which the link route was announced, and `destination` the router that has
    the container. `cost` is the cost of the path to the destination from the router that sends
    this attach; it decreases with each hop. `origin` is the client, and `properties` are the
    properties of the client's attach.
    """

    key: str
    destination: str
    cost: int
    origin: Origin
    properties: AnyMap | None

    def to_properties(self) -> DecodedMap:
        """Return the properties for the attach at the next router."""
        origin = self.origin
        told: DecodedMap = {
            LINK_ROUTE: self.key,
            DESTINATION: self.destination,
            COST: UInt(min(self.cost, MAX_COST)),
            NAME: origin.name,
            CONTAINER: origin.container_id,
            CLIENT: origin.key,
        }
        if origin.is_container:
            told[IS_CONTAINER] = True
        if origin.user is not None:
            told[USER] = origin.user
        if self.properties is not None:
            told[PROPERTIES] = self.properties
        return told


def client_key(router: str, number: int) -> str:
    """Return the key for all links of a client: the client's router and its connection's number."""
    return f"{router}#{number}"


def router_in_key(key: object) -> str:
    """Return the router in a client's key; empty if the key contains none."""
    return key.rpartition("#")[0] if isinstance(key, str) else ""


def is_routed_attach(frame: Attach) -> bool:
    """Return whether an attach from a router is for a routed link."""
    return frame.properties is not None and LINK_ROUTE in frame.properties


def read_routed_attach(frame: Attach) -> RoutedAttach:
    """Read the attach of a routed link; raise amqp:invalid-field if it is invalid."""
    told = frame.properties or {}
    properties = _map(told, PROPERTIES)
    user = told.get(USER)
    if user is not None and not isinstance(user, str):
        raise invalid(USER)
    cost = told.get(COST)
    if not isinstance(cost, int) or isinstance(cost, bool):
        raise invalid(COST)
    origin = Origin(
        _text(told, CLIENT),
        _text(told, NAME),
        _text(told, CONTAINER),
        told.get(IS_CONTAINER) is True,
        user,
    )
    return RoutedAttach(_text(told, LINK_ROUTE), _text(told, DESTINATION), cost, origin, properties)


def route_changed() -> AmqpError:
    """Return the error that makes the previous router choose another container or path."""
    return AmqpError(ROUTE_CHANGED, "the route of this link to a container has changed", Scope.LINK)


def _map(told: AnyMap, key: Symbol) -> AnyMap | None:
    """Return the map that the properties `told` have under `key`; None if it is missing.

    The map is still encoded if the properties are.
    """
    if isinstance(told, EncodedMap):
        try:
            return told.get_map(key)
        except ValueError:
            raise invalid(key) from None
    value = told.get(key)
    if value is not None and not isinstance(value, dict):
        raise invalid(key)
    return value


def _text(told: AnyMap, key: Symbol) -> str:
    text = told.get(key)
    if not isinstance(text, str):
        raise invalid(key)
    return text


def invalid(key: Symbol) -> AmqpError:
    """Return the error for a link that has a missing or invalid property."""
    return AmqpError(
        Condition.INVALID_FIELD,
        f"the link's property {key} is missing or has an invalid value",
        Scope.LINK,
    )
