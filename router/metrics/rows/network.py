"""Metrics of the network of routers; a standalone router also has them."""

from __future__ import annotations

from typing import Final

from router.metrics.metric import Metric, unlabelled

NETWORK: Final = (
    Metric(
        "trioute_network_connections",
        "gauge",
        "Connections to other routers, interior and edge.",
        (),
        unlabelled(lambda r: r.network.connections),
    ),
    Metric(
        "trioute_network_neighbours",
        "gauge",
        "Interior routers that messages go to directly.",
        (),
        unlabelled(lambda r: r.network.neighbours),
    ),
    Metric(
        "trioute_network_routers",
        "gauge",
        "Other interior routers that can be reached.",
        (),
        unlabelled(lambda r: r.network.routers),
    ),
    Metric(
        "trioute_network_addresses",
        "gauge",
        "Addresses and link routes that other routers advertise.",
        (),
        unlabelled(lambda r: r.network.addresses),
    ),
    Metric(
        "trioute_network_synced",
        "gauge",
        "1 while this router knows the network as its neighbours do, otherwise 0.",
        (),
        unlabelled(lambda r: r.network.is_synced),
    ),
    Metric(
        "trioute_network_round_trip_seconds",
        "gauge",
        "The shortest of the last eight round trips of control messages to a neighbour.",
        ("router",),
        lambda r: r.network.round_trips_s.items(),
    ),
    Metric(
        "trioute_network_control_messages_total",
        "counter",
        "Messages between neighbours about the network, by direction and opcode.",
        ("direction", "opcode"),
        lambda r: r.network.messages.items(),
    ),
    Metric(
        "trioute_network_control_bytes_total",
        "counter",
        "Octets of the messages between neighbours about the network.",
        ("direction", "opcode"),
        lambda r: r.network.octets.items(),
    ),
    Metric(
        "trioute_network_changed_seconds",
        "gauge",
        "Seconds since the routes through the network last changed, or since the router started.",
        (),
        unlabelled(lambda r: r.uptime_s if r.network.changed_s is None else r.network.changed_s),
    ),
    Metric(
        "trioute_network_changes_total",
        "counter",
        "Times that the routes through the network changed, as seen from this router.",
        (),
        unlabelled(lambda r: r.network.changes),
    ),
    Metric(
        "trioute_network_conflicts_total",
        "counter",
        "Times that another router was noticed with an id that was already in use.",
        (),
        unlabelled(lambda r: r.network.conflicts),
    ),
    Metric(
        "trioute_network_refused_total",
        "counter",
        "Connections that were refused, or closed immediately, because the peer is not a "
        "router, or not one that this router can connect with.",
        (),
        unlabelled(lambda r: r.network.refused),
    ),
    Metric(
        "trioute_network_routers_left_out_total",
        "counter",
        "Times that a router advertised by a neighbour was ignored because of "
        "maxRoutersPerNeighbour; repeated advertisements of one router count each time.",
        (),
        unlabelled(lambda r: r.network.routers_left_out),
    ),
    Metric(
        "trioute_network_addresses_left_out",
        "gauge",
        "Addresses advertised by other routers that are ignored because of "
        "maxAddressesPerRouter or maxAddressBytesPerNeighbour.",
        (),
        unlabelled(lambda r: r.network.addresses_left_out),
    ),
    Metric(
        "trioute_network_link_retries_total",
        "counter",
        "Times that a link to another router's receivers was refused, ended unexpectedly or "
        "could not be attached, so that it is attached again later.",
        (),
        unlabelled(lambda r: r.network.link_retries),
    ),
)
