"""Edits of configurations: closely related entities, added and removed."""

from __future__ import annotations

from typing import Any, Final

import attrs
from hypothesis import strategies as st

from router.config.auto_links import AutoLinkSettings
from router.config.edits import Edit, Edits
from router.config.exchanges import BindingSettings, ExchangeSettings
from router.config.link_routes import LinkRouteSettings
from router.config.model import ENTITIES, AddressSettings, Configuration, Entity

BY_NAME: Final = {each.name: each for each in ENTITIES}

_NAMES: Final = st.sampled_from("abc")

_PLACES: Final = st.sampled_from(["p", "q", "r"])
_CONTAINERS: Final = st.sampled_from(["c", "d"])
_SECONDS: Final = st.sampled_from([0.0, 0.0, 1.0])


def _made(kind: str, settings: Any, **fields: Any) -> st.SearchStrategy[tuple[str, Any]]:
    return st.tuples(st.just(kind), st.builds(settings, **fields))


def _one_of_two(settings: Any, **fields: Any) -> st.SearchStrategy[Any]:
    given = st.sampled_from(["prefix", "pattern"])
    text = st.sampled_from(["p", "p/#", "q", "q/*"])
    return st.builds(
        lambda key, value, others: settings(
            **{key: value.rstrip("/#*") if key == "prefix" else value}, **others
        ),
        given,
        text,
        st.fixed_dictionaries(fields),
    )


_EXCHANGE: Final = _made(
    "exchange",
    ExchangeSettings,
    name=_NAMES,
    address=_PLACES,
    alternate_address=st.none() | _PLACES,
    match_method=st.sampled_from(["amqp", "amqp", "mqtt"]),
)
_BINDING: Final = _made(
    "binding",
    BindingSettings,
    exchange_name=_NAMES,
    binding_key=st.sampled_from([None, "k", "#/k"]),
    next_hop_address=st.sampled_from(["p", "q", "r", "s", "t"]),
    next_hop_phase=st.sampled_from([0, 0, 0, 1]),
)
ENTITY: Final[st.SearchStrategy[tuple[str, Any]]] = st.one_of(
    st.tuples(
        st.just("address"),
        _one_of_two(AddressSettings, distribution=st.sampled_from(["closest", "unavailable"])),
    ),
    _made("address", AddressSettings, prefix=_PLACES, name=_NAMES, hold_seconds=_SECONDS),
    st.tuples(
        st.just("linkRoute"),
        _one_of_two(
            LinkRouteSettings, direction=st.sampled_from(["in", "out"]), container_id=_CONTAINERS
        ),
    ),
    _made("linkRoute", LinkRouteSettings, prefix=_PLACES, direction=st.just("in"), name=_NAMES),
    _made(
        "autoLink",
        AutoLinkSettings,
        address=_PLACES,
        direction=st.sampled_from(["in", "out"]),
        container_id=_CONTAINERS,
    ),
    _EXCHANGE,
    _BINDING,
)
"""An entity, with what it is called in the configuration."""

_WHAT: Final = st.sampled_from(["add", "add", "put", "remove"])
STEP: Final = st.tuples(_WHAT, st.integers(0, 50), st.one_of(ENTITY, _BINDING, _BINDING, _EXCHANGE))

EXCHANGES: Final = Configuration(
    listeners=(),
    exchanges=tuple(
        ExchangeSettings(name=name, address=place) for name, place in zip("abc", "pqr", strict=True)
    ),
)
"""Exchanges that bindings may be added to."""


def edited(
    configuration: Configuration, step: tuple[str, int, tuple[str, Any]]
) -> tuple[Configuration, Edits]:
    """Another configuration, with one edit; or the same, where there is nothing to edit."""
    what, at, (kind, settings) = step
    entity = BY_NAME[kind]
    every = getattr(configuration, entity.attribute)
    if what == "add":
        return _with(configuration, entity, (*every, settings)), [Edit(entity, None, settings)]
    if not every:
        return configuration, []
    at %= len(every)
    old = every[at]
    if what == "remove":
        rest = (*every[:at], *every[at + 1 :])
        return _with(configuration, entity, rest), [Edit(entity, old, None)]
    # it keeps its name, as an UPDATE does
    new = attrs.evolve(settings, name=old.name)
    if new == old:
        return configuration, []
    replaced = (*every[:at], new, *every[at + 1 :])
    return _with(configuration, entity, replaced), [Edit(entity, old, new)]


def _with(configuration: Configuration, entity: Entity, every: Any) -> Configuration:
    values: dict[str, Any] = {entity.attribute: every}
    return attrs.evolve(configuration, **values)
