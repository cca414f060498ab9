"""Configured plugins, and the entities that plugins report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

import attrs

from router.management.entities.attributes import constant
from router.management.entities.configured import named_type
from router.management.names import PREFIX
from router.management.ports import Plugins, PluginState, ReportedType
from router.management.schema import OPERATIONAL, Attribute, EntityType, LiveEntity, live_reader
from router.management.views import RouterView

MOST_ENTITIES: Final = 10_000
"""Maximum number of entities of one type that a plugin may report."""


@attrs.frozen
class PluginView:
    """View of the state of a configured plugin."""

    state: PluginState


def _attribute(
    name: str, kind: str, meaning: str, read: Callable[[PluginState], object]
) -> Attribute[object]:
    return Attribute(
        name, kind, meaning, live_reader(PluginView, lambda plugin: read(plugin.state))
    )


_STATE: Final = (
    _attribute(
        "status",
        "string",
        "starting, running, finished, stopped or failed.",
        lambda s: s.status,
    ),
    _attribute(
        "reason",
        "string",
        "Why it is not running, in words.",
        lambda s: s.reason or None,
    ),
    _attribute(
        "failure",
        "string",
        "The kind of its last failure: unusable, slow-start, crashed, hung or flooded.",
        lambda s: s.failure or None,
    ),
    _attribute(
        "lostEvents",
        "integer",
        "Events that it subscribed to but did not take in time.",
        lambda s: s.lost_events,
    ),
)

CONFIGURED_PLUGIN: Final = named_type(
    "router.config.plugin",
    "A plugin that the router runs. Dispatch has no plugins.",
    "plugin",
    _STATE,
)


def configured_plugins(router: RouterView) -> Iterator[LiveEntity]:
    """Yield the configured plugins, with their states."""
    for section in router.configuration.plugins:
        state = None if router.plugins is None else router.plugins.state_of(section.name)
        yield LiveEntity(section, None if state is None else PluginView(state))


@attrs.frozen
class _Entity:
    """Entity that a plugin reports."""

    kind: str
    values: Mapping[str, object]


_Type: TypeAlias = EntityType[_Entity]
_Source: TypeAlias = Callable[[object], Iterator[_Entity]]


def reported_types(plugins: Plugins) -> Iterator[tuple[_Type, _Source]]:
    """Yield the entity types that plugins report, each with a function that yields its entities."""
    for plugin, reported in plugins.reported():
        kind = f"router.plugin.{plugin}.{reported.type}"
        attributes: list[Attribute[_Entity]] = [
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


def _reader(name: str) -> Callable[[_Entity], object]:
    return lambda entity: entity.values.get(name)


def _source(plugins: Plugins, plugin: str, reported: ReportedType, kind: str) -> _Source:
    """Return a function that yields the entities of a reported type.

    If the plugin's code raises an exception, or an entity is invalid, the plugin is stopped.
    """

    def entities(_: object) -> Iterator[_Entity]:
        try:
            for number, values in enumerate(reported.read()):
                if number >= MOST_ENTITIES:
                    raise ValueError(
                        f"the plugin reports more than {MOST_ENTITIES} entities of {kind}"
                    )
                yield _Entity(kind, _checked(values, kind))
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - a plugin's code may raise anything
            plugins.read_failed(plugin, error)

    return entities


def _checked(values: Mapping[str, object], kind: str) -> Mapping[str, object]:
    """Return a reported entity's values; raise ValueError or TypeError if they are invalid.

    An entity needs a name, and AMQP must be able to carry all values.
    """
    name = values.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f"an entity of {kind} needs a name: non-empty text")
    return {str(key): _carried(value) for key, value in values.items()}


def _carried(value: object) -> object:
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, str):
        value.encode()
        return value
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise ValueError("a number of more than 64 bits is not allowed in an entity")
        return value
    if isinstance(value, (list, tuple)):
        return [_carried(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): _carried(each) for key, each in value.items()}
    raise TypeError(
        f"a value of type {type(value).__name__} is not allowed in an entity; give text, numbers, "
        "true, false, None, lists and maps"
    )
