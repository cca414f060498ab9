"""Metrics of the network of routers; a router that works alone has them too."""

from __future__ import annotations

from typing import Final

from router.metrics.metric import Metric, unlabelled

NETWORK: Final = (
    Metric(
        "trioute_network_connections",
        "gauge",
        "Connections to other routers, interior and edge ones.",
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
        "Addresses and link routes that others have said they receive from or have containers for.",
        (),
        unlabelled(lambda r: r.network.addresses),
    ),
    Metric(
        "trioute_network_synced",
        "gauge",
        "1 while this router knows of the network what its neighbours know, otherwise 0.",
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
        "Messages between neighbours about the network, by direction and by what they say.",
        ("direction", "opcode"),
        lambda r: r.network.messages.items(),
    ),
    Metric(
        "trioute_network_control_bytes_total",
        "counter",
        "The octets of those.",
        ("direction", "opcode"),
        lambda r: r.network.octets.items(),
    ),
    Metric(
        "trioute_network_changed_seconds",
        "gauge",
        "How long ago the ways through the network changed, or the router started.",
        (),
        unlabelled(lambda r: r.uptime_s if r.network.changed_s is None else r.network.changed_s),
    ),
    Metric(
        "trioute_network_changes_total",
        "counter",
        "Times that the ways through the network changed, as seen from here.",
        (),
        unlabelled(lambda r: r.network.changes),
    ),
    Metric(
        "trioute_network_conflicts_total",
        "counter",
        "Times that another router with an id that was taken was noticed.",
        (),
        unlabelled(lambda r: r.network.conflicts),
    ),
    Metric(
        "trioute_network_refused_total",
        "counter",
        "Connections that were refused or closed at once because the peer is no router, or not one "
        "that this router could be connected with.",
        (),
        unlabelled(lambda r: r.network.refused),
    ),
    Metric(
        "trioute_network_routers_left_out_total",
        "counter",
        "Times that a router was left out of which a neighbour told, because of "
        "maxRoutersPerNeighbour; one that is told of again and again counts each time.",
        (),
        unlabelled(lambda r: r.network.routers_left_out),
    ),
    Metric(
        "trioute_network_addresses_left_out",
        "gauge",
        "Addresses that other routers tell of and that are left out, because of "
        "maxAddressesPerRouter or maxAddressBytesPerNeighbour.",
        (),
        unlabelled(lambda r: r.network.addresses_left_out),
    ),
    Metric(
        "trioute_network_link_retries_total",
        "counter",
        "Times that a link to another router's receivers was refused, or ended unasked, or could "
        "not be attached, so that it is tried again.",
        (),
        unlabelled(lambda r: r.network.link_retries),
    ),
)
