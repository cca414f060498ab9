"""Parts of a router that need no sockets, tasks or management: tables, hub and control.

`node` adds sockets and the real clock to these parts; a simulation uses the parts without them.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from router.config.model import Configuration
from router.config.router_settings import RouterSettings
from router.control.control import ControlPlane
from router.control.network.adjacency import Neighbours
from router.control.network.limits import limits_of
from router.control.network.timing import timing_of
from router.control.policy.gate import Gate
from router.control.policy.policy import Policy
from router.core.addresses.link_names import LinkNames
from router.core.addresses.table import AddressTable
from router.core.forwarding.rule_updates import RuleUpdater
from router.core.routers.membership import FEATURES_SPOKEN, Membership, Mode, instance_from
from router.net.endpoints import (
    configured_auto_links,
    configured_bindings,
    configured_exchanges,
    configured_link_routes,
    configured_redirects,
    configured_rules,
)
from router.net.router_hub import RouterHub


class Parts:
    """Address table, hub and control plane of a router, made from its configuration.

    `clock` returns monotonic time in seconds; the default is the system's clock. `make_token`
    returns a different text at each call; dynamic addresses contain such a text, because anyone who
    knows a dynamic address may use it. `wall_clock` returns the time in seconds since 1970. The
    router's instance number is made from that time, so that a later start has a larger number.
    """

    def __init__(
        self,
        configuration: Configuration,
        make_token: Callable[[], str],
        clock: Callable[[], float] | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        router = configuration.router
        self.container_id = router.id or socket.gethostname()
        # prefix of addresses that lead to this router from anywhere in the network
        is_edge = router.mode == "edge"
        self._place = f"_edge/{self.container_id}" if is_edge else f"_topo/0/{self.container_id}"
        self._make_token = make_token
        self.table = AddressTable(
            configured_rules(configuration.addresses),
            router.default_distribution,
            self._dynamic_name,
            configured_redirects(configuration.redirects),
        )
        self.table.place = f"{self._place}/"
        frame_sizes = [
            *(listener.max_frame_size for listener in configuration.listeners),
            *(connector.max_frame_size for connector in configuration.connectors),
        ]
        self.hub = RouterHub(
            self.table,
            router.memory_limit_bytes,
            max(frame_sizes, default=0),
            LinkNames(router.link_stealing),
            router.terminus_timeout_limit_seconds,
            self.container_id,
            clock=clock,
        )
        self.hub.turn.ledger.limit(
            router.memory_limit_bytes, router.state_limit_bytes, router.connection_state_limit_bytes
        )
        if router.honour_absolute_expiry_time:
            self.hub.honour_absolute_expiry()
        self.hub.forwarder.exchanges.configure(
            configured_exchanges(configuration.exchanges),
            configured_bindings(configuration.bindings),
        )
        self.control = ControlPlane(self.hub.forwarder)
        self.hub.forwarder.link_routes.allows_resumable = router.allow_resumable_link_route
        self.hub.forwarder.sources.configure(
            refuses_filters=router.unsupported_filters == "refuse",
            refuses_durable=router.durable_subscriptions == "refuse",
            rejects_unconfirmed=router.reject_unconfirmed_durable,
        )
        self.hub.forwarder.detaches_unroutable = router.unroutable_presettled == "detach"
        self.control.link_routes.configure(configured_link_routes(configuration.link_routes))
        self.hub.auto_links = self.control.auto_links
        self.control.auto_links.configure(configured_auto_links(configuration.auto_links))
        # do all deferred work now, as no connection waits yet
        while self.hub.turn.deferred.step():
            pass
        policy = Policy(configuration.policy, configuration.vhosts)
        self.hub.provide_for(policy.largest_frame)
        self.gate = Gate(self.hub.forwarder, policy, self.hub.each_connection)
        self.hub.listeners.append(self.gate.event_received)
        self.hub.listeners.append(self.control.event_received)
        self.hub.timer_callbacks.append(self.control.tick)
        if router.mode != "standalone":
            self._join_network(router, instance_from(wall_clock(), make_token()))
        self.treating = RuleUpdater(self.hub.forwarder)
        network = self.hub.forwarder.network
        network.treat = self.treating.treat
        self.hub.timer_callbacks.append(network.tick)
        if router.mode == "interior":
            network.turn_on()
        self.control.configure_uplinks(configuration)

    def _join_network(self, router: RouterSettings, instance: int) -> None:
        """Join a network of routers, as an edge or an interior router."""
        mode: Mode = "edge" if router.mode == "edge" else "interior"
        hub = self.hub
        membership = Membership(self.container_id, mode, instance, FEATURES_SPOKEN)
        network = Neighbours(
            hub.forwarder,
            membership,
            timing_of(router),
            hub.turn.now,
            limits_of(router),
        )
        hub.membership = membership
        hub.turn_end_callback = network.finish
        hub.network = network
        network.schedule_network_work = hub.schedule_network_work
        network.incoming.resting.cpu_clock = time.thread_time
        network.incoming.resting.others_are_active = hub.long_turns.others_are_active
        hub.forwarder.on_control = network.attach_received
        self.control.network = network
        if mode == "edge":
            network.edges = self.control.be_edge(network)
        else:
            network.edges = self.control.serve_edges(network)

    def _dynamic_name(self, maker: str) -> str:
        return f"amqp:/{self._place}/temp.{self._make_token()}.{maker}"
