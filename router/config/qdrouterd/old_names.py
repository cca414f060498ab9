"""Replace former names and entities of Dispatch by the current ones.

Names in this module are from releases before 1.0, whose files are still in use. Old names of
attributes that 1.19 still accepts are in `facts`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from router.config.qdrouterd.document import GivenAttribute, Section
from router.config.qdrouterd.values import read_value

# Old names of booleans that mean the opposite of the current ones.
INVERTED: Final[Mapping[tuple[str, str], str]] = {
    ("listener", "allowNoSasl"): "authenticatePeer",
    ("listener", "allowUnsecured"): "requireEncryption",
}
OLD_VALUES: Final[Mapping[tuple[str, str], Mapping[str, str]]] = {
    ("listener", "role"): {"on-demand": "route-container"},
    ("connector", "role"): {"on-demand": "route-container"},
}


def replace_old_entity(name: str, section: Section) -> tuple[tuple[str, Section], ...]:
    """Return what replaces a section of the entity `name`, as pairs of name and section.

    A section of a current entity is returned unchanged.
    """
    made = _MADE.get(name)
    return ((name, section),) if made is None else made(section)


def is_old(name: str) -> bool:
    """Return whether this is the name of an entity that Dispatch no longer has."""
    return name in _MADE


def inverted(value: object) -> bool:
    """Return the opposite of a boolean; raise `ValueNotAllowed` for anything else."""
    return not read_value("boolean", value)


def _container(section: Section) -> tuple[tuple[str, Section], ...]:
    names = {"containerName": "id"}
    return (("router", _renamed(section, names)),)


def _fixed_address(section: Section) -> tuple[tuple[str, Section], ...]:
    """Replace a fixedAddress by an address or, for an empty prefix, by a default distribution.

    The attribute fanout says how many receivers get a message, and the attribute bias says which.
    """
    given = dict(section.given)
    fanout, bias = given.pop("fanout", None), given.pop("bias", None)
    spread = "closest" if bias is None or bias.value != "spread" else "balanced"
    many = fanout is None or fanout.value != "single"
    distribution = "multicast" if many else spread
    origin = fanout or bias or GivenAttribute(distribution, section.line)
    given["distribution"] = attrs.evolve(origin, value=distribution)
    phase = given.pop("phase", None)
    if phase is not None and str(phase.value) != "0":
        given["ingressPhase"] = given["egressPhase"] = phase
    prefix = given.get("prefix")
    if prefix is not None and isinstance(prefix.value, str):
        bare = prefix.value.strip("/")
        if not bare:
            # an empty prefix, which covers all addresses, used to set the default
            default = attrs.evolve(given["distribution"], line=section.line)
            return (("router", attrs.evolve(section, given={"defaultDistribution": default})),)
        given["prefix"] = attrs.evolve(prefix, value=bare)
    return (("address", attrs.evolve(section, given=given)),)


def _link_route_pattern(section: Section) -> tuple[tuple[str, Section], ...]:
    """Replace a linkRoutePattern by a link route, or by two if its direction is both."""
    given = dict(_renamed(section, {"connector": "connection", "dir": "direction"}).given)
    direction = given.pop("direction", GivenAttribute("both", section.line))
    words = ("in", "out") if direction.value == "both" else (direction.value,)
    made = []
    for word in words:
        table = {**given, "direction": attrs.evolve(direction, value=word)}
        made.append(("linkRoute", attrs.evolve(section, given=table)))
    return tuple(made)


def _waypoint(section: Section) -> tuple[tuple[str, Section], ...]:
    """Replace a waypoint by two auto-links: to the container, and from the container.

    The first has the direction out and the inPhase of the waypoint; the second has the direction in
    and the outPhase. An auto-link is omitted if its phase is -1, or if only the other phase is
    given.
    """
    given = dict(_renamed(section, {"connector": "connection"}).given)
    phases = {"out": given.pop("inPhase", None), "in": given.pop("outPhase", None)}
    given.pop("name", None)
    made = []
    for direction, phase in phases.items():
        table = {**given, "direction": GivenAttribute(direction, section.line)}
        if phase is not None and str(phase.value) != "-1":
            table["phase"] = phase
        elif phase is not None or any(phases.values()):
            continue
        made.append(("autoLink", attrs.evolve(section, given=table)))
    return tuple(made)


def _renamed(section: Section, names: Mapping[str, str]) -> Section:
    given = {names.get(key, key): each for key, each in section.given.items()}
    return attrs.evolve(section, given=given)


_MADE: Final[Mapping[str, Callable[[Section], tuple[tuple[str, Section], ...]]]] = {
    "container": _container,
    "fixedAddress": _fixed_address,
    "linkRoutePattern": _link_route_pattern,
    "waypoint": _waypoint,
}
