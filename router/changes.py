"""Prepare the changes of a new configuration beside the running router.

A configuration may be very large, and so may the difference to the next one. `prepare` does all
work that grows with either, in a thread. It changes nothing in the router, and reads only what no
one but another change of the configuration can change. What cannot be done in a thread is entered
in steps, without any effect yet (`enter`). The work left for the turn in which the configuration is
taken up does not grow with it (docs/decisions/0038-changes-under-traffic.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Protocol

import attrs

from router.config.model import ENTITIES, Configuration
from router.config.reload import Difference
from router.control.auto_links import Wanted
from router.control.control import Control
from router.control.link_routes import RouteChange
from router.core.exchanges import Change as ExchangeChange
from router.core.redirects import Redirects
from router.core.rules import MANY_RULES, AddressRule, Rules
from router.net.endpoints import (
    configured_auto_links,
    configured_exchanges,
    configured_link_routes,
    configured_redirects,
    configured_rules,
)
from router.net.exchange import Exchange


class Changed(Protocol):
    """The parts of a router that change in more than one step."""

    @property
    def exchange(self) -> Exchange:
        """Return the hub of its connections, with the core."""

    @property
    def control(self) -> Control:
        """Return what decides where addresses lead: auto-links, link routes, the network."""


@attrs.frozen
class RuleChange:
    """The address rules to remove and to add, if they are few."""

    removed: list[AddressRule]
    added: list[AddressRule]


@attrs.frozen
class Changes:
    """What changes in each part of a router; None for a part that stays as it is.

    `fields` are the changed attributes, each with its entity.
    """

    wanted: Configuration
    differences: tuple[Difference, ...]
    fields: frozenset[tuple[str, str]]
    rules: Rules | RuleChange | None = None
    redirects: Redirects | None = None
    exchanges: ExchangeChange | None = None
    link_routes: RouteChange | None = None
    # with the names of those that have changed
    auto_links: tuple[Wanted, list[str]] | None = None


def prepare(
    running: Changed,
    old: Configuration,
    wanted: Configuration,
    differences: tuple[Difference, ...],
) -> Changes:
    """Prepare what a router needs to go from `old` to `wanted`; may run in a thread.

    `differences` are those of the two. Entities that are the same in both have to be the same
    objects (`router.config.revisions.share`).
    """
    fields = frozenset(
        (difference.entity, field.name) for difference in differences for field in difference.fields
    )
    entities = {entity for entity, _ in fields}
    changes: dict[str, Any] = {}
    if "address" in entities or ("router", "defaultDistribution") in fields:
        changes["rules"] = _rules(old, wanted)
    if "redirect" in entities:
        changes["redirects"] = configured_redirects(wanted.redirects)
    if entities & {"exchange", "binding"}:
        exchanges = running.exchange.forwarder.exchanges
        changes["exchanges"] = exchanges.prepare(*configured_exchanges(wanted))
    if "linkRoute" in entities:
        gone, come = _others(old.link_routes, wanted.link_routes)
        changes["link_routes"] = RouteChange(
            [each.name for each in gone], configured_link_routes(come)
        )
    if "autoLink" in entities:
        others = chain(*_others(old.auto_links, wanted.auto_links))
        # they are taken from the end of the list
        names = list(dict.fromkeys(each.name for each in others))[::-1]
        changes["auto_links"] = Wanted(configured_auto_links(wanted.auto_links)), names
    return Changes(wanted, differences, fields, **changes)


def _rules(old: Configuration, wanted: Configuration) -> Rules | RuleChange:
    gone, come = _others(old.addresses, wanted.addresses)
    if len(gone) + len(come) > MANY_RULES:
        return Rules(configured_rules(wanted.addresses), wanted.router.default_distribution)
    return RuleChange(configured_rules(gone), configured_rules(come))


def _others(old: Iterable[Any], new: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Return the objects that only the first has, and those that only the second has."""
    before, after = set(map(id, old)), set(map(id, new))
    gone = [each for each in old if id(each) not in after]
    return gone, [each for each in new if id(each) not in before]


def enter(running: Changed, changes: Changes) -> Iterator[None]:
    """Enter ahead, step by step, what the turn needs that takes the changes up.

    It has no effect before that turn.
    """
    if changes.exchanges is not None:
        yield from running.exchange.forwarder.exchanges.enter(changes.exchanges)
    if changes.link_routes is not None:
        yield from running.control.link_routes.enter(changes.link_routes)


def give_up(running: Changed, changes: Changes) -> None:
    """Remove what was entered of changes that are not taken up after all."""
    if changes.exchanges is not None:
        running.exchange.forwarder.exchanges.give_up(changes.exchanges)
    if changes.link_routes is not None:
        running.control.link_routes.give_up(changes.link_routes)


def pieces(
    configuration: Configuration, differences: Iterable[Difference] = ()
) -> Iterator[object]:
    """Take apart, piece by piece, a configuration that is no longer needed.

    See `Deferred.forget` (`router.engine.deferred`). Objects that are also used elsewhere stay.
    """
    every = [list(getattr(configuration, each.attribute)) for each in ENTITIES if each.repeated]
    every.append(list(differences))
    del configuration, differences
    for some in every:
        while some:
            yield some.pop()
