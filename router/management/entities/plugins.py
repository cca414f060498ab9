"""Configured plugins, and the entities that plugins report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

import attrs

from router.management.entities.attributes import constant
from router.management.entities.configured import named_type
from router.management.schema import (
    OPERATIONAL,
    PREFIX,
    Attribute,
    EntityType,
    LiveEntity,
    live_reader,
)

MOST_ENTITIES: Final = 10_000
"""Maximum number of entities of one type that a plugin may report."""


class PluginState(Protocol):
    """State of a configured plugin; see `router.hosting.host.HostedPlugin`."""

    status: str
    reason: str
    failure: str

    @property
    def lost_events(self) -> int:
        """Return the number of events that it did not take in time."""


class ReportedType(Protocol):
    """Type of entities that a plugin reports; see `router.plugin.ManagedType`."""

    @property
    def type(self) -> str:
        """Return its name."""

    @property
    def description(self) -> str:
        """Return its description."""

    @property
    def attributes(self) -> Iterable[Any]:
        """Return its attributes, each with a name, a type and a description."""

    @property
    def read(self) -> Callable[[], Iterable[Mapping[str, Any]]]:
        """Return a function that returns the entities."""


class Plugins(Protocol):
    """Plugins of a router."""

    def state_of(self, name: str) -> PluginState | None:
        """Return the state of a plugin; None if it is not known."""

    def reported(self) -> Iterator[tuple[str, ReportedType]]:
        """Yield the types of entities that plugins report, each with the plugin's name."""

    def read_failed(self, plugin: str, error: BaseException) -> None:
        """Stop a plugin whose entities cannot be read."""


_STATE: Final = (
    Attribute(
        "status",
        "string",
        "starting, running, finished, stopped or failed.",
        live_reader(lambda s: s.status),
    ),
    Attribute(
        "reason",
        "string",
        "Why it is not running, in words.",
        live_reader(lambda s: s.reason or None),
    ),
    Attribute(
        "failure",
        "string",
        "The kind of its last failure: unusable, slow-start, crashed, hung or flooded.",
        live_reader(lambda s: s.failure or None),
    ),
    Attribute(
        "lostEvents",
        "integer",
        "Events that it had subscribed to and did not take in time.",
        live_reader(lambda s: s.lost_events),
    ),
)

CONFIGURED_PLUGIN: Final = named_type(
    "router.config.plugin", "A plugin that the router runs. Dispatch has none.", "plugin", _STATE
)


def configured_plugins(router: Any) -> Iterator[LiveEntity]:
    """Yield the configured plugins, with their states."""
    for section in router.configuration.plugins:
        plugins: Plugins | None = router.plugins
        yield LiveEntity(section, None if plugins is None else plugins.state_of(section.name))


@attrs.frozen
class _Entity:
    """Entity that a plugin reports."""

    kind: str
    values: Mapping[str, Any]


def reported_types(plugins: Plugins) -> Iterator[tuple[EntityType, Callable[[Any], Iterator[Any]]]]:
    """Yield the entity types that plugins report, each with a source of its entities."""
    for plugin, reported in plugins.reported():
        kind = f"router.plugin.{plugin}.{reported.type}"
        attributes = [
            Attribute("name", "string", "Its name.", lambda e: e.values["name"]),
            Attribute(
                "identity",
                "string",
                "Its identity, unique within its type.",
                lambda e: f"{e.kind}/{e.values['name']}",
            ),
            Attribute("type", "string", "Its type.", constant(PREFIX + kind)),
        ]
        attributes.extend(
            Attribute(each.name, each.type, each.description, _reader(each.name))
            for each in reported.attributes
            if each.name not in ("name", "identity", "type")
        )
        entity_type = EntityType(kind, reported.description, OPERATIONAL, tuple(attributes))
        yield entity_type, _source(plugins, plugin, reported, kind)


def _reader(name: str) -> Callable[[_Entity], Any]:
    return lambda entity: entity.values.get(name)


def _source(
    plugins: Plugins, plugin: str, reported: ReportedType, kind: str
) -> Callable[[Any], Iterator[Any]]:
    """Return a source of the entities of a type; it stops a plugin that raises."""

    def entities(_: Any) -> Iterator[_Entity]:
        try:
            for number, values in enumerate(reported.read()):
                if number >= MOST_ENTITIES:
                    raise ValueError(f"it reports more than {MOST_ENTITIES} entities of {kind}")
                yield _Entity(kind, _checked(values, kind))
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - a plugin's code may raise anything
            plugins.read_failed(plugin, error)

    return entities


def _checked(values: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """Return the values of an entity; raise ValueError or TypeError if AMQP cannot carry them."""
    name = values.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f"an entity of {kind} needs a name that is text")
    return {str(key): _carried(value) for key, value in values.items()}


def _carried(value: Any) -> Any:
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, str):
        value.encode()
        return value
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise ValueError("a number of more than 64 bits is not allowed")
        return value
    if isinstance(value, (list, tuple)):
        return [_carried(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): _carried(each) for key, each in value.items()}
    raise TypeError(
        f"a value of type {type(value).__name__} is not allowed; give text, numbers, true, false, "
        "None, lists and maps"
    )
