"""Checks of network settings: roles, costs, intervals, and the router's id.

See `router.config.checks`, which runs these checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.mistakes import Data, Finding
from router.config.model import Configuration

INTER_ROUTER: Final = "inter-router"
EDGE: Final = "edge"
# The mode that the router must have for a listener or connector of these roles.
_MODES: Final[Mapping[tuple[str, str], str]] = {
    ("listener", INTER_ROUTER): "interior",
    ("connector", INTER_ROUTER): "interior",
    ("listener", EDGE): "interior",
    ("connector", EDGE): "edge",
}


def _endpoints(
    configuration: Configuration,
) -> Iterator[tuple[str, int, ListenerSettings | ConnectorSettings]]:
    for index, listener in enumerate(configuration.listeners):
        if listener.serves_amqp:
            yield "listener", index, listener
    for index, connector in enumerate(configuration.connectors):
        yield "connector", index, connector


def _roles(configuration: Configuration, _: Data) -> Iterator[Finding]:
    mode = configuration.router.mode
    for entity, index, endpoint in _endpoints(configuration):
        needed = _MODES.get((entity, endpoint.role))
        if needed is None or needed == mode:
            continue
        if mode == "standalone":
            advice = f'give the router mode = "{needed}", or this {entity} another role'
        else:
            others = [role for (of, role), its in _MODES.items() if of == entity and its == mode]
            allowed = ", ".join(["normal", "route-container", *others])
            advice = f"give one of the roles {allowed}"
        yield Finding(
            (entity, index, "role"),
            f"is not allowed for a router with mode {mode}",
            advice,
            shown=True,
            concerns=(("router", "mode"),),
        )


def _costs(configuration: Configuration, data: Data) -> Iterator[Finding]:
    for entity, index, endpoint in _endpoints(configuration):
        # Dispatch files often give all of them the default cost, which is not a mistake
        if endpoint.role != INTER_ROUTER and data[entity][index].get("cost", 1) != 1:
            yield Finding(
                (entity, index, "cost"),
                f"has no effect on a {entity} without the role inter-router",
                'remove it, or give role = "inter-router"',
                shown=True,
                concerns=((entity, index, "role"),),
            )


def _intervals(configuration: Configuration, _: Data) -> Iterator[Finding]:
    router = configuration.router
    if router.hello_max_age_seconds <= router.hello_interval_seconds:
        yield Finding(
            ("router", "helloMaxAgeSeconds"),
            f"is not more than helloIntervalSeconds, {router.hello_interval_seconds:g}",
            "give at least twice as much, so that one late message does not lose a neighbour",
            shown=True,
            concerns=(("router", "helloIntervalSeconds"),),
        )
    if router.edge_heartbeat_max_age_seconds <= router.edge_heartbeat_seconds:
        yield Finding(
            ("router", "edgeHeartbeatMaxAgeSeconds"),
            f"is not more than edgeHeartbeatSeconds, {router.edge_heartbeat_seconds:g}",
            "give at least twice as much, so that one late message does not lose an uplink",
            shown=True,
            concerns=(("router", "edgeHeartbeatSeconds"),),
        )


def _ids(configuration: Configuration, _: Data) -> Iterator[Finding]:
    router = configuration.router
    if router.mode != "standalone" and router.id is not None and "/" in router.id:
        yield Finding(
            ("router", "id"),
            "contains a /, but is a part of the addresses that lead to this router",
            "give an id without a /",
            shown=True,
            concerns=(("router", "mode"),),
        )


NETWORK_CHECKS: Final = (_roles, _costs, _intervals, _ids)
