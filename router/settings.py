"""Apply changed settings to a running router, by entity and attribute.

Listeners and connectors are handled in `endpoints`. Any other attribute must be handled here or be
listed in `router.config.differences.RESTART_ONLY`, which a test ensures. Otherwise a change of the
attribute would be silently ignored until the next start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from router.changes import Changes, RuleChange
from router.config.model import MetricsSettings
from router.config.router_settings import RouterSettings
from router.config.setting import file_name
from router.control.control import ControlPlane
from router.control.network.limits import limits_of
from router.control.network.timing import timing_of
from router.control.policy.gate import Gate
from router.core.addresses.redirects import Redirects
from router.core.addresses.rules import Rules
from router.core.forwarding.rule_updates import RuleUpdater
from router.core.forwarding.shedding import set_limit
from router.hosting.host import PluginHost
from router.logs.journal import Journal
from router.metrics.exposition import Exposition
from router.net.router_hub import RouterHub


class Running(Protocol):
    """Access to the parts of a router that settings affect."""

    hub: RouterHub
    control: ControlPlane
    gate: Gate
    exposition: Exposition
    treating: RuleUpdater
    journal: Journal
    plugins: PluginHost


def apply_settings(running: Running, changes: Changes) -> None:
    """Apply changed settings to a router, in the current turn; never fails.

    The caller has already staged the changes (`router.changes.stage`).
    """
    wanted = changes.wanted
    if changes.rules is not None:
        _change_rules(running, changes.rules, wanted.router)
    if changes.exchanges is not None:
        running.hub.forwarder.exchanges.apply(changes.exchanges)
    if changes.rules is not None:
        running.hub.forwarder.exchanges.resolve()
    if changes.redirects is not None:
        _set_redirects(running, changes.redirects)
    if changes.link_routes is not None:
        running.control.link_routes.commit(changes.link_routes)
    if isinstance(changes.auto_links, dict):
        running.control.auto_links.change_few(changes.auto_links)
    elif changes.auto_links is not None:
        running.control.auto_links.change(*changes.auto_links)
    if changes.policy is not None:
        running.hub.provide_for(changes.policy.largest_frame)
        running.gate.replace(changes.policy)
    entities = {entity for entity, _ in changes.fields}
    if entities & {"router", "connector"}:
        running.control.configure_uplinks(wanted)
    if changes.costs is not None and running.control.network is not None:
        running.control.network.change_costs(changes.costs)
    if "plugin" in entities:
        running.plugins.change(wanted.plugins)
    if "log" in entities:
        running.journal.change(wanted.log)
    for (entity, name), change in LIVE.items():
        if (entity, file_name(name)) in changes.fields:
            change(running, getattr(wanted, entity))


def _change_rules(running: Running, rules: Rules | RuleChange, router: RouterSettings) -> None:
    if isinstance(rules, Rules):
        running.treating.replace_rules(rules)
    else:
        running.treating.change_rules(rules.removed, rules.added, router.default_distribution)
    running.control.auto_links.phases_changed()


def _set_redirects(running: Running, redirects: Redirects) -> None:
    table = running.hub.table
    before, table.redirects = table.redirects, redirects
    # the number of issued redirects must not go back
    redirects.issued = before.issued
    running.hub.turn.deferred.forget(before.pieces())


def _set_stealing(running: Running, router: RouterSettings) -> None:
    hub = running.hub
    attached = [
        link
        for pump in hub.pumps.values()
        for session in pump.connection.local_sessions.values()
        for link in session.local_links.values()
        if link.owner is not None and link.is_attached()
    ]
    hub.forwarder.link_names.set_stealing(router.link_stealing, attached)


def _set_memory_limit(running: Running, router: RouterSettings) -> None:
    set_limit(running.hub.forwarder, router.memory_limit_bytes)
    # the memory limit is the default for the limits on state
    _set_state_limits(running, router)


def _set_state_limits(running: Running, router: RouterSettings) -> None:
    running.hub.turn.ledger.limit(
        router.memory_limit_bytes, router.state_limit_bytes, router.connection_state_limit_bytes
    )


def _set_absolute_expiry(running: Running, router: RouterSettings) -> None:
    running.hub.honour_absolute_expiry(router.honour_absolute_expiry_time)


def _set_terminus_limit(running: Running, router: RouterSettings) -> None:
    running.hub.forwarder.suspended.limit_s = router.terminus_timeout_limit_seconds


def _set_resumable_routes(running: Running, router: RouterSettings) -> None:
    allowed = router.allow_resumable_link_route
    running.hub.forwarder.link_routes.allows_resumable = allowed


def _set_sources(running: Running, router: RouterSettings) -> None:
    running.hub.forwarder.sources.configure(
        refuses_filters=router.unsupported_filters == "refuse",
        refuses_durable=router.durable_subscriptions == "refuse",
        rejects_unconfirmed=router.reject_unconfirmed_durable,
    )


def _set_unroutable(running: Running, router: RouterSettings) -> None:
    running.hub.forwarder.detaches_unroutable = router.unroutable_presettled == "detach"


def _set_network(running: Running, router: RouterSettings) -> None:
    network = running.control.network
    if network is not None:
        network.set_timing(timing_of(router))
        network.set_limits(limits_of(router))


def _set_metrics(running: Running, metrics: MetricsSettings) -> None:
    running.exposition.collector.configure(metrics)


def _elsewhere(_running: Running, _settings: object) -> None:
    """Do nothing: `apply_settings` itself applies the setting, or it is read when it is needed."""


LIVE: Final[dict[tuple[str, str], Callable[[Running, Any], None]]] = {
    # read when management reports it
    ("router", "metadata"): _elsewhere,
    ("router", "default_distribution"): _elsewhere,
    ("router", "hello_interval_seconds"): _set_network,
    ("router", "hello_max_age_seconds"): _set_network,
    ("router", "ra_interval_seconds"): _set_network,
    ("router", "max_routers_per_neighbour"): _set_network,
    ("router", "max_addresses_per_router"): _set_network,
    ("router", "max_address_bytes_per_neighbour"): _set_network,
    ("router", "active_uplinks"): _elsewhere,
    ("router", "edge_heartbeat_seconds"): _elsewhere,
    ("router", "edge_heartbeat_max_age_seconds"): _elsewhere,
    ("router", "memory_limit_bytes"): _set_memory_limit,
    ("router", "state_limit_bytes"): _set_state_limits,
    ("router", "connection_state_limit_bytes"): _set_state_limits,
    ("router", "honour_absolute_expiry_time"): _set_absolute_expiry,
    ("router", "link_stealing"): _set_stealing,
    ("router", "terminus_timeout_limit_seconds"): _set_terminus_limit,
    ("router", "allow_resumable_link_route"): _set_resumable_routes,
    ("router", "unsupported_filters"): _set_sources,
    ("router", "unroutable_presettled"): _set_unroutable,
    ("router", "durable_subscriptions"): _set_sources,
    ("router", "reject_unconfirmed_durable"): _set_sources,
    ("log", "level"): _elsewhere,
    ("log", "levels"): _elsewhere,
    ("log", "format"): _elsewhere,
    ("log", "lines_per_second"): _elsewhere,
    ("policy", "enable_vhost_policy"): _elsewhere,
    ("policy", "max_connections"): _elsewhere,
    ("policy", "max_message_size"): _elsewhere,
    ("policy", "default_vhost"): _elsewhere,
    ("policy", "enable_vhost_name_patterns"): _elsewhere,
    ("metrics", "address_label_limit"): _set_metrics,
    ("metrics", "connection_label_limit"): _set_metrics,
    ("metrics", "qdr_names"): _set_metrics,
}
"""Functions that apply changed attributes, for the entities that exist only once."""
