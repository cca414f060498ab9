"""Load a topology file, or report all mistakes in it, as for a configuration file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from router.config.building import is_within, without_paths
from router.config.load import read_text, read_toml
from router.config.mistakes import (
    Finding,
    InvalidConfiguration,
    Mistake,
    Path as DataPath,
    format_path,
)
from router.config.positions import line_of
from router.config.setting import file_name, setting_of
from router.config.structure import FileFormat, value_at
from router.simulation.plan import Plan, expand
from router.simulation.scheduled_events import OF_LINKS
from router.simulation.topology import ENTITIES, MOST_ROUTERS, Topology

_FORMAT: Final = FileFormat(Topology, ENTITIES)
# How many known routers are named if one is unknown.
MOST_NAMED: Final = 5


def load_topology(path: Path) -> Topology:
    """Load the topology file at `path`.

    Raises InvalidConfiguration, with every mistake found, if the file cannot be read or is invalid.
    """
    return parse_topology(read_text(path), source=str(path))


def parse_topology(text: str, *, source: str) -> Topology:
    """Parse a topology from TOML text; `source` is the name of the text in mistakes.

    Raises InvalidConfiguration, with every mistake found, if the text is invalid.
    """
    data, lines = read_toml(text, source)
    refused = _FORMAT.read(data)[1]
    usable = without_paths(data, {finding.path for finding in refused})
    topology: Topology = _FORMAT.read(usable)[0]
    wrong = {finding.path for finding in refused}
    wrong |= {(*one.path[:-1], one.nearest) for one in refused if one.nearest and one.path[1:]}
    found: dict[DataPath, Finding] = {finding.path: finding for finding in refused}
    for finding in find_contradictions(topology):
        if not any(is_within(path, wrong) for path in (finding.path, *finding.concerns)):
            found.setdefault(finding.path, finding)
    mistakes = [
        Mistake(
            source=source,
            line=line_of(lines, finding.path),
            column=0,
            path=format_path(finding.path),
            value=value_at(data, finding),
            problem=finding.problem,
            allowed=finding.allowed,
            nearest=finding.nearest,
        )
        for finding in found.values()
    ]
    if mistakes:
        raise InvalidConfiguration(sorted(mistakes, key=lambda mistake: mistake.line))
    return topology


def find_contradictions(topology: Topology) -> Iterator[Finding]:
    """Yield the mistakes in a topology whose values are valid one by one."""
    yield from _missing(topology)
    plan = expand(topology)
    if not plan.routers:
        yield Finding((), "there is no router", "add a [[router]], or several with a [[shape]]")
    if len(plan.routers) > MOST_ROUTERS:
        yield Finding(
            ("shape",), f"makes {len(plan.routers)} routers", f"at most {MOST_ROUTERS} are allowed"
        )
    yield from _twice(topology, plan)
    yield from _links(topology, plan)
    yield from _places(topology, plan)
    yield from _events(topology, plan)


def _missing(topology: Topology) -> Iterator[Finding]:
    for entity in ENTITIES:
        if not entity.repeated:
            continue
        for index, each in enumerate(getattr(topology, entity.attribute)):
            for field in attrs.fields(entity.settings):
                if setting_of(field).required and not getattr(each, field.name):
                    path = (entity.name, index, file_name(field.name))
                    yield Finding(path, "is missing", f"give {setting_of(field).kind.words}")
    for index, address in enumerate(topology.addresses):
        if (address.prefix is None) == (address.pattern is None):
            yield Finding(("address", index), "must have either a prefix or a pattern")


def _twice(topology: Topology, plan: Plan) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, (name, _) in enumerate(plan.routers):
        if name in seen and name:
            is_own = index < len(topology.routers)
            path: DataPath = ("router", index, "name") if is_own else ("shape",)
            yield Finding(path, f"makes a second router named {name}")
        seen.add(name)


def _unknown(path: DataPath, names: tuple[str, ...] | None, plan: Plan) -> Iterator[Finding]:
    known = {name for name, _ in plan.routers}
    for name in names or ():
        if name not in known:
            some = sorted(known)
            more = ", ..." if len(some) > MOST_NAMED else ""
            there = "there is" if len(some) == 1 else "there are"
            advice = f"{there} {', '.join(some[:MOST_NAMED])}{more}"
            yield Finding(path, f"there is no router {name}", advice)


def _links(topology: Topology, plan: Plan) -> Iterator[Finding]:
    modes = dict(plan.routers)
    for index, link in enumerate(topology.links):
        path = ("link", index, "between")
        yield from _unknown(path, link.between, plan)
        if [modes.get(name) for name in link.between or ()] == ["edge", "edge"]:
            yield Finding(path, "links two edge routers", "one must be interior", shown=True)
    seen: set[frozenset[str]] = set()
    for planned in plan.links:
        pair = frozenset((planned.dialler, planned.acceptor))
        if pair in seen and len(pair) == 2:
            yield Finding(("link",), f"joins {' and '.join(sorted(pair))} twice")
        seen.add(pair)


def _places(topology: Topology, plan: Plan) -> Iterator[Finding]:
    for index, receiver in enumerate(topology.receivers):
        yield from _unknown(("receiver", index, "at"), receiver.at, plan)
    for index, sender in enumerate(topology.senders):
        yield from _unknown(("sender", index, "at"), sender.at, plan)


def _events(topology: Topology, plan: Plan) -> Iterator[Finding]:
    joined = {frozenset((link.dialler, link.acceptor)) for link in plan.links}
    for index, event in enumerate(topology.events):
        here = ("event", index)
        yield from _unknown((*here, "routers"), event.routers, plan)
        of_link = event.action in OF_LINKS
        if event.link and not of_link:
            yield Finding((*here, "link"), f"does not apply to {event.action}")
        elif event.link and frozenset(event.link) not in joined:
            yield Finding((*here, "link"), f"there is no link {' - '.join(event.link)}")
        if event.routers and of_link:
            yield Finding((*here, "routers"), f"does not apply to {event.action}")
        if event.action == "partition" and not event.routers:
            yield Finding((*here, "routers"), "is missing", "give the routers of one side")
        if of_link and not plan.links:
            yield Finding((*here, "action"), "needs a link, but there is none", shown=True)
        if event.at > topology.simulation.seconds:
            yield Finding(
                (*here, "at"),
                f"is after the end of the simulation, at {topology.simulation.seconds:g} seconds",
                shown=True,
                concerns=(("simulation", "seconds"),),
            )
