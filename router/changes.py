"""Prepare a change of configuration while the router runs.

A configuration may be very large, and so may its difference from the next one. `prepare` does all
work that grows with their size. It runs in a thread and changes nothing in the router. The data
that it reads stays the same until the next change of configuration. `stage` enters, in steps, the
data that cannot be entered from a thread. How much work is left for the turn in which the new
configuration takes effect does not depend on the size
(docs/decisions/0038-changes-under-traffic.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, Protocol, TypeVar

import attrs

from router.config.differences import Difference
from router.config.edits import Edit, Edits, removed_and_added
from router.config.model import ENTITIES, Configuration
from router.control.auto_links import AutoLinkRules
from router.control.control import ControlPlane
from router.control.link_routes import LinkRouteChange
from router.control.network.endpoint_costs import Endpoint
from router.control.policy.policy import Policy
from router.core.addresses.bindings import (
    ExchangeEdits as FewExchanges,
    ExchangesChange as ExchangeChange,
)
from router.core.addresses.redirects import Redirects
from router.core.addresses.rules import MANY_RULES, AddressRule, Rules
from router.core.links.auto_links import AutoLinkRule
from router.engine.deferred import grow_old
from router.net.endpoints import (
    configured_auto_links,
    configured_bindings,
    configured_exchanges,
    configured_link_routes,
    configured_redirects,
    configured_rules,
)
from router.net.router_hub import RouterHub

T = TypeVar("T")

# Number of steps after which new entries are moved to the oldest generation of the garbage
# collector.
GROWN_OLD_EVERY: Final = 1024
# If more entities change than this, the tables of the router are rebuilt as a whole.
MANY_EDITS: Final = 64


class Changed(Protocol):
    """Access to the parts of a router that are changed in several steps."""

    @property
    def hub(self) -> RouterHub:
        """Return the hub of the router's connections, which contains the core."""

    @property
    def control(self) -> ControlPlane:
        """Return the control plane: auto-links, link routes and the network of routers."""


@attrs.frozen
class RuleChange:
    """Small change of the address rules: which rules to remove and which to add."""

    removed: list[AddressRule]
    added: list[AddressRule]


@attrs.frozen
class Changes:
    """Prepared change of configuration; a part of the router that does not change has None.

    `fields` has a pair of entity and attribute name for each changed attribute.
    """

    wanted: Configuration
    differences: tuple[Difference, ...]
    fields: frozenset[tuple[str, str]]
    rules: Rules | RuleChange | None = None
    redirects: Redirects | None = None
    exchanges: ExchangeChange | FewExchanges | None = None
    link_routes: LinkRouteChange | None = None
    # all auto-links and the names of the changed ones; or only the changed ones by name, with None
    # for one that is removed
    auto_links: tuple[AutoLinkRules, list[str]] | dict[str, AutoLinkRule | None] | None = None
    costs: Mapping[Endpoint, int | None] | None = None
    policy: Policy | None = None


def prepare(
    running: Changed,
    old: Configuration,
    wanted: Configuration,
    differences: tuple[Difference, ...],
    edits: Edits | None = None,
) -> Changes:
    """Return the changes that a router needs to go from `old` to `wanted`; may run in a thread.

    `differences` has the differences between the two configurations. `edits`, if known, has all
    entities that differ. An entity that is equal in both configurations must be the same object in
    both (`router.config.revisions.share`). If there are few edits, the other entities are not
    examined.
    """
    if edits is not None and len(edits) > MANY_EDITS:
        edits = None
    fields = frozenset(
        (difference.entity, field.name) for difference in differences for field in difference.fields
    )
    entities = {entity for entity, _ in fields}
    changes: dict[str, Any] = {}
    if "address" in entities or ("router", "defaultDistribution") in fields:
        changes["rules"] = _rules(old, wanted, edits)
    if "redirect" in entities:
        changes["redirects"] = configured_redirects(wanted.redirects)
    if entities & {"exchange", "binding"}:
        changes["exchanges"] = _exchanges(running, wanted, edits)
    if entities & {"policy", "vhost"}:
        changes["policy"] = Policy(wanted.policy, wanted.vhosts)
    if "linkRoute" in entities:
        gone, come = _others("linkRoute", old.link_routes, wanted.link_routes, edits)
        changes["link_routes"] = LinkRouteChange(
            [each.name for each in gone], configured_link_routes(come)
        )
    if "autoLink" in entities:
        gone, come = _others("autoLink", old.auto_links, wanted.auto_links, edits)
        if edits is None:
            # names are taken from the end of the list
            names = list(dict.fromkeys(each.name for each in chain(gone, come)))[::-1]
            changes["auto_links"] = AutoLinkRules(configured_auto_links(wanted.auto_links)), names
        else:
            rules: dict[str, AutoLinkRule | None] = {each.name: None for each in gone}
            rules.update((rule.name, rule) for rule in configured_auto_links(come))
            changes["auto_links"] = rules
    if ("listener", "cost") in fields or ("connector", "cost") in fields:
        changes["costs"] = _costs(wanted, differences)
    return Changes(wanted, differences, fields, **changes)


def _costs(wanted: Configuration, differences: Iterable[Difference]) -> dict[Endpoint, int | None]:
    """Return the new costs of changed listeners and connectors; a removed one has None."""
    costs: dict[Endpoint, int | None] = {
        (each.entity == "connector", each.key): None
        for each in differences
        if each.entity in ("listener", "connector")
    }
    for is_connector, endpoints in ((False, wanted.listeners), (True, wanted.connectors)):
        for endpoint in endpoints:
            if (is_connector, endpoint.name) in costs:
                costs[is_connector, endpoint.name] = endpoint.cost
    return costs


def _rules(old: Configuration, wanted: Configuration, edits: Edits | None) -> Rules | RuleChange:
    gone, come = _others("address", old.addresses, wanted.addresses, edits)
    if len(gone) + len(come) > MANY_RULES:
        return Rules(configured_rules(wanted.addresses), wanted.router.default_distribution)
    return RuleChange(configured_rules(gone), configured_rules(come))


def _exchanges(
    running: Changed, wanted: Configuration, edits: Edits | None
) -> ExchangeChange | FewExchanges:
    exchanges = running.hub.forwarder.exchanges
    if edits is None:
        return exchanges.prepare(
            configured_exchanges(wanted.exchanges), configured_bindings(wanted.bindings)
        )
    rules = [_both(each, configured_exchanges) for each in edits if each.entity.name == "exchange"]
    bindings = [_both(each, configured_bindings) for each in edits if each.entity.name == "binding"]
    return exchanges.prepare_edits(rules, bindings)


def _both(
    edit: Edit, configured: Callable[[Iterable[Any]], Sequence[T]]
) -> tuple[T | None, T | None]:
    """Return the old and the new entity of an edit, each converted by `configured`.

    The old one is None if the entity was added; the new one is None if it was removed.
    """
    old, new = ([] if each is None else configured([each]) for each in (edit.old, edit.new))
    return old[0] if old else None, new[0] if new else None


def _others(
    entity: str, old: Iterable[Any], new: Iterable[Any], edits: Edits | None
) -> tuple[list[Any], list[Any]]:
    """Return the entities that only `old` has, and the entities that only `new` has."""
    if edits is not None:
        return removed_and_added(edits, entity)
    before, after = set(map(id, old)), set(map(id, new))
    gone = [each for each in old if id(each) not in after]
    return gone, [each for each in new if id(each) not in before]


def stage(running: Changed, changes: Changes) -> Iterator[None]:
    """Enter the data of prepared changes into the router, step by step.

    The data has no effect before the turn in which the changes are applied.
    """
    for number, _ in enumerate(_enter(running, changes), 1):
        if number % GROWN_OLD_EVERY == 0:
            grow_old()
        yield


def _enter(running: Changed, changes: Changes) -> Iterator[None]:
    if changes.exchanges is not None:
        yield from running.hub.forwarder.exchanges.enter(changes.exchanges)
    if changes.link_routes is not None:
        yield from running.control.link_routes.prepare(changes.link_routes)


def unstage(running: Changed, changes: Changes) -> None:
    """Remove the data that `stage` entered, because the changes are not made after all."""
    if changes.exchanges is not None:
        running.hub.forwarder.exchanges.discard(changes.exchanges)
    if changes.link_routes is not None:
        running.control.link_routes.discard(changes.link_routes)


def pieces(
    configuration: Configuration, differences: Iterable[Difference] = ()
) -> Iterator[object]:
    """Take apart a configuration that is no longer needed, and yield its pieces.

    `Deferred.forget` (`router.engine.deferred`) frees the pieces a few at a time. An entity that is
    also used elsewhere is not freed.
    """
    every = [list(getattr(configuration, each.attribute)) for each in ENTITIES if each.repeated]
    every.append(list(differences))
    del configuration, differences
    for some in every:
        while some:
            yield some.pop()
