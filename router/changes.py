"""What a changed configuration means for the parts of a running router, made ready beside it.

A configuration may be very large, and so may what is other in the next one. `prepare` does whatever
grows with either, in a thread; it reads of the router only what another configuration alone can
change, and changes nothing. What it cannot do in a thread is done in steps, in which nobody notices
anything yet. What is left for the turn in which the configuration is taken up does not grow
(docs/decisions/0038-changes-under-traffic.md).
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
    """The parts of a router that are changed in more than one step."""

    @property
    def exchange(self) -> Exchange:
        """Where its connections meet."""

    @property
    def control(self) -> Control:
        """What decides where addresses lead."""


@attrs.frozen
class RuleChange:
    """Some rules for addresses that go, and some that come; few of them."""

    removed: list[AddressRule]
    added: list[AddressRule]


@attrs.frozen
class Changes:
    """What becomes of the parts of a router; None of what stays as it is.

    `fields` are the attributes of entities that are others.
    """

    wanted: Configuration
    differences: tuple[Difference, ...]
    fields: frozenset[tuple[str, str]]
    rules: Rules | RuleChange | None = None
    redirects: Redirects | None = None
    exchanges: ExchangeChange | None = None
    link_routes: RouteChange | None = None
    # with the names of those that are not as they were
    auto_links: tuple[Wanted, list[str]] | None = None


def prepare(
    running: Changed,
    old: Configuration,
    wanted: Configuration,
    differences: tuple[Difference, ...],
) -> Changes:
    """Make ready what a router needs that runs `old`, and is to run `wanted`; in a thread.

    `differences` are those of the two, and what is the same in both is the very same objects.
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
    """What is in the one alone, and what in the other: most may well be the very same objects."""
    before, after = set(map(id, old)), set(map(id, new))
    gone = [each for each in old if id(each) not in after]
    return gone, [each for each in new if id(each) not in before]


def enter(running: Changed, changes: Changes) -> Iterator[None]:
    """Do ahead, step by step, what the turn needs that takes changes up: nobody notices."""
    if changes.exchanges is not None:
        yield from running.exchange.forwarder.exchanges.enter(changes.exchanges)
    if changes.link_routes is not None:
        yield from running.control.link_routes.enter(changes.link_routes)


def give_up(running: Changed, changes: Changes) -> None:
    """Have nothing left of what was entered of changes that are not taken up after all."""
    if changes.exchanges is not None:
        running.exchange.forwarder.exchanges.give_up(changes.exchanges)
    if changes.link_routes is not None:
        running.control.link_routes.give_up(changes.link_routes)


def pieces(
    configuration: Configuration, differences: Iterable[Difference] = ()
) -> Iterator[object]:
    """A configuration that is needed no more, taken apart piece by piece
    (`router.engine.deferred`); what others have of it as well stays.
    """
    every = [list(getattr(configuration, each.attribute)) for each in ENTITIES if each.repeated]
    every.append(list(differences))
    del configuration, differences
    for some in every:
        while some:
            yield some.pop()
