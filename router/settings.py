"""What of the settings of a running router is changed how: by entity and attribute.

Listeners and connectors are in `endpoints`. Whatever is in neither place, nor in
`router.config.reload.NOT_LIVE`, would be silently ignored until the next start; a test sees to it
that there is no such attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from router.config.model import Configuration, MetricsSettings
from router.config.reload import Difference
from router.config.router_settings import RouterSettings
from router.config.setting import file_name
from router.control.control import Control
from router.control.network.timing import timing_of
from router.core.shedding import set_limit
from router.core.treating import Treating
from router.logs.journal import Journal
from router.metrics.exposition import Exposition
from router.net.endpoints import (
    configured_auto_links,
    configured_exchanges,
    configured_link_routes,
    configured_redirects,
    configured_rules,
)
from router.net.exchange import Exchange


class Running(Protocol):
    """The parts of a router that settings are about."""

    exchange: Exchange
    control: Control
    exposition: Exposition
    treating: Treating
    journal: Journal

    @property
    def configuration(self) -> Configuration:
        """What it runs until now."""


def take_up(running: Running, differences: Iterable[Difference], wanted: Configuration) -> None:
    """Have a router's settings as they are wanted, in the turn that there is; never fails."""
    changed = {
        (difference.entity, field.name) for difference in differences for field in difference.fields
    }
    entities = {entity for entity, _ in changed}
    if "address" in entities or ("router", "defaultDistribution") in changed:
        _change_rules(running, wanted)
        running.exchange.forwarder.exchanges.resolve()
    if entities & {"exchange", "binding"}:
        running.exchange.forwarder.exchanges.configure(*configured_exchanges(wanted))
    if "redirect" in entities:
        _set_redirects(running, wanted)
    if "linkRoute" in entities:
        _change_link_routes(running, wanted)
    if "autoLink" in entities:
        running.control.auto_links.configure(configured_auto_links(wanted.auto_links))
    if entities & {"router", "connector"}:
        running.control.configure_uplinks(wanted)
    if "log" in entities:
        running.journal.change(wanted.log)
    for (entity, name), change in LIVE.items():
        if (entity, file_name(name)) in changed:
            change(running, getattr(wanted, entity))


def _change_rules(running: Running, wanted: Configuration) -> None:
    # there may be very many, of which few are others: most stay the very same objects
    old, new = running.configuration.addresses, wanted.addresses
    before, after = set(map(id, old)), set(map(id, new))
    running.treating.change_rules(
        configured_rules(each for each in old if id(each) not in after),
        configured_rules(each for each in new if id(each) not in before),
        wanted.router.default_distribution,
    )
    running.control.auto_links.phases_changed()


def _change_link_routes(running: Running, wanted: Configuration) -> None:
    # as with addresses
    old, new = running.configuration.link_routes, wanted.link_routes
    before, after = set(map(id, old)), set(map(id, new))
    running.control.link_routes.change(
        [each.name for each in old if id(each) not in after],
        configured_link_routes(each for each in new if id(each) not in before),
    )


def _set_redirects(running: Running, wanted: Configuration) -> None:
    redirects = configured_redirects(wanted.redirects)
    # counts only grow
    redirects.issued = running.exchange.table.redirects.issued
    running.exchange.table.redirects = redirects


def _set_stealing(running: Running, router: RouterSettings) -> None:
    exchange = running.exchange
    attached = [
        link
        for pump in exchange.pumps.values()
        for session in pump.connection.local_sessions.values()
        for link in session.local_links.values()
        if link.owner is not None and link.is_attached()
    ]
    exchange.forwarder.link_names.set_stealing(router.link_stealing, attached)


def _set_memory_limit(running: Running, router: RouterSettings) -> None:
    set_limit(running.exchange.forwarder, router.memory_limit_bytes)


def _set_absolute_expiry(running: Running, router: RouterSettings) -> None:
    running.exchange.honour_absolute_expiry(router.honour_absolute_expiry_time)


def _set_terminus_limit(running: Running, router: RouterSettings) -> None:
    running.exchange.forwarder.suspended.limit_s = router.terminus_timeout_limit_seconds


def _set_resumable_routes(running: Running, router: RouterSettings) -> None:
    allowed = router.allow_resumable_link_route
    running.exchange.forwarder.link_routes.allows_resumable = allowed


def _set_timing(running: Running, router: RouterSettings) -> None:
    network = running.control.network
    if network is not None:
        network.set_timing(timing_of(router))


def _set_metrics(running: Running, metrics: MetricsSettings) -> None:
    running.exposition.collector.configure(metrics)


def _elsewhere(_running: Running, _settings: Any) -> None:
    """Done in `take_up`."""


LIVE: Final[dict[tuple[str, str], Callable[[Running, Any], None]]] = {
    # it is read where it is told
    ("router", "metadata"): _elsewhere,
    ("router", "default_distribution"): _elsewhere,
    ("router", "hello_interval_seconds"): _set_timing,
    ("router", "hello_max_age_seconds"): _set_timing,
    ("router", "ra_interval_seconds"): _set_timing,
    ("router", "active_uplinks"): _elsewhere,
    ("router", "edge_heartbeat_seconds"): _elsewhere,
    ("router", "edge_heartbeat_max_age_seconds"): _elsewhere,
    ("router", "memory_limit_bytes"): _set_memory_limit,
    ("router", "honour_absolute_expiry_time"): _set_absolute_expiry,
    ("router", "link_stealing"): _set_stealing,
    ("router", "terminus_timeout_limit_seconds"): _set_terminus_limit,
    ("router", "allow_resumable_link_route"): _set_resumable_routes,
    ("log", "level"): _elsewhere,
    ("log", "levels"): _elsewhere,
    ("log", "format"): _elsewhere,
    ("log", "lines_per_second"): _elsewhere,
    ("metrics", "address_label_limit"): _set_metrics,
    ("metrics", "connection_label_limit"): _set_metrics,
    ("metrics", "qdr_names"): _set_metrics,
}
"""How each attribute is changed of an entity of which there is one."""
