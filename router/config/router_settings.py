"""Settings of the router as a whole; the other entities are in `model`."""

from __future__ import annotations

from typing import Final, Literal, get_args

import attrs

from router.config import kinds
from router.config.setting import checked, setting

Mode = Literal["standalone", "interior", "edge"]
Distribution = Literal["closest", "balanced", "multicast", "unavailable"]
LinkStealing = Literal["same-user", "any", "never", "off"]
Unsupported = Literal["refuse", "ignore"]
UnroutablePresettled = Literal["drop", "detach"]

MIB: Final = 2**20
MOST_UPLINKS: Final = 64
DISTRIBUTION: Final = kinds.choice(get_args(Distribution))
LONGEST_TERMINUS_TIMEOUT_S: Final = 86400
LONGEST_PERIOD_S: Final = 3600
PERIOD: Final = kinds.period(LONGEST_PERIOD_S)
MOST_BYTES: Final = 2**50
# A limit that is derived from another one if it is 0.
DERIVED_LIMIT: Final = kinds.whole_number(0, MOST_BYTES, "bytes")


@attrs.frozen(kw_only=True, field_transformer=checked)
class RouterSettings:
    """Settings of the router as a whole."""

    id: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.text(127, spaces=False),
            "The router's own name, unique among all routers that it connects with: its "
            "container-id and a part of the addresses that it generates.",
            default="the name of the host",
        ),
    )
    mode: Mode = attrs.field(
        default="standalone",
        metadata=setting(
            kinds.choice(get_args(Mode)),
            "Whether the router works alone (standalone), is one of the routers that make up a "
            "network (interior), or belongs to a network without forwarding messages between "
            "other routers (edge). An interior router has listeners and connectors with the "
            "role inter-router, and listeners with the role edge; an edge router has connectors "
            "with the role edge.",
        ),
    )
    hello_interval_seconds: float = attrs.field(
        default=1.0,
        metadata=setting(
            PERIOD,
            "How often an interior router sends hello to its neighbours.",
        ),
    )
    hello_max_age_seconds: float = attrs.field(
        default=3.0,
        metadata=setting(
            PERIOD,
            "How long a neighbour may be silent before its connection is closed and the neighbour "
            "counts as lost; more than helloIntervalSeconds.",
        ),
    )
    ra_interval_seconds: float = attrs.field(
        default=30.0,
        metadata=setting(
            PERIOD,
            "How often an interior router advertises its knowledge of the network to its "
            "neighbours when nothing changes, so that they can ask for what they have missed.",
        ),
    )
    max_routers_per_neighbour: int = attrs.field(
        default=2000,
        metadata=setting(
            kinds.whole_number(1, 16_384, "routers"),
            "How many routers an interior router learns from one neighbour, including the "
            "neighbour. Further routers are ignored; those already known stay.",
        ),
    )
    max_addresses_per_router: int = attrs.field(
        default=200_000,
        metadata=setting(
            kinds.whole_number(1, 2**31, "addresses"),
            "How many addresses of another router an interior router keeps. Further addresses "
            "are ignored, as if they had no receivers there; those already known stay.",
        ),
    )
    max_address_bytes_per_neighbour: int = attrs.field(
        default=256 * MIB,
        metadata=setting(
            kinds.whole_number(MIB, 2**40, "bytes"),
            "How much memory an interior router uses for the addresses, of all routers, that it "
            "learns from one neighbour. Each address counts 300 bytes and those of its name, "
            "four for each character unless all are ASCII. Further addresses are ignored.",
        ),
    )
    active_uplinks: int = attrs.field(
        default=1,
        metadata=setting(
            kinds.whole_number(1, MOST_UPLINKS, "connections"),
            "How many of its connections to interior routers an edge router uses at the same "
            "time, each to a different one; the others are on standby. The first connectors "
            "with the role edge in the configuration are preferred.",
        ),
    )
    edge_heartbeat_seconds: float = attrs.field(
        default=2.0,
        metadata=setting(
            PERIOD,
            "How often an edge router sends a heartbeat to its interior routers, which answer it.",
        ),
    )
    edge_heartbeat_max_age_seconds: float = attrs.field(
        default=8.0,
        metadata=setting(
            PERIOD,
            "How long an edge router and an interior router may hear nothing from each other "
            "before the connection counts as lost; more than edgeHeartbeatSeconds.",
        ),
    )
    metadata: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.text(1024),
            "Any information about this router for people or programs. It is shown in management, "
            "and the router does not use it.",
            default="none",
        ),
    )
    default_distribution: Distribution = attrs.field(
        default="balanced",
        metadata=setting(
            DISTRIBUTION,
            "How messages are spread over the receivers of an address that no address entity "
            "covers; with unavailable, links to such an address are refused.",
        ),
    )
    memory_limit_bytes: int = attrs.field(
        default=256 * MIB,
        metadata=setting(
            kinds.whole_number(MIB, MOST_BYTES, "bytes"),
            "How many bytes of messages the whole router may hold. Once half of it is used, "
            "senders whose messages wait may send no more. Beyond the limit, the newest "
            "messages of the senders with the most waiting are returned to them.",
        ),
    )
    state_limit_bytes: int = attrs.field(
        default=0,
        metadata=setting(
            DERIVED_LIMIT,
            "How many bytes the whole router may hold for its peers besides messages: their "
            "connections, sessions, links, names and properties, dynamic nodes, and sources and "
            "targets without a link. Beyond the limit, further ones are refused with "
            "amqp:resource-limit-exceeded to a connection that has more than an equal share. 0 "
            "stands for eight times memoryLimitBytes, but at least 64 MiB.",
        ),
    )
    connection_state_limit_bytes: int = attrs.field(
        default=0,
        metadata=setting(
            DERIVED_LIMIT,
            "How many bytes of stateLimitBytes one connection may have. Beyond the limit, "
            "further links are refused with amqp:resource-limit-exceeded; a peer that continues "
            "loses its session, and then the connection. 0 stands for half of stateLimitBytes.",
        ),
    )
    honour_absolute_expiry_time: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "Whether a waiting message also expires at its absolute-expiry-time, by the clock "
            "of this host, and not only at the end of its ttl.",
        ),
    )
    link_stealing: LinkStealing = attrs.field(
        default="same-user",
        metadata=setting(
            kinds.choice(get_args(LinkStealing)),
            "Whether a link is closed when a container with the same container-id attaches it "
            "again elsewhere: if the user is the same (same-user), always (any), or never; "
            "otherwise the second attach is refused. With off, both links stay attached.",
        ),
    )
    terminus_timeout_limit_seconds: int = attrs.field(
        default=60,
        metadata=setting(
            kinds.whole_number(0, LONGEST_TERMINUS_TIMEOUT_S, "seconds"),
            "Maximum time that a source or target is kept after its link has ended, if a peer "
            "requests that by a timeout or an expiry-policy, so that its unsettled deliveries "
            "can be resumed. With 0, no source or target outlives its link.",
        ),
    )
    allow_resumable_link_route: bool = attrs.field(
        default=True,
        metadata=setting(
            kinds.flag(),
            "Whether links that are forwarded to containers may request a source or target that "
            "outlives them, by a timeout or an expiry-policy; otherwise they are refused with "
            "qd:link-expiration.",
        ),
    )
    unsupported_filters: Unsupported = attrs.field(
        default="refuse",
        metadata=setting(
            kinds.choice(get_args(Unsupported)),
            "What to do with a receiver that requests source filters, such as a selector, or a "
            "distribution mode other than that of its address, as queue browsers do: refuse it "
            "with amqp:not-implemented, or ignore the request. The router's attach shows if it "
            "was ignored, but most clients do not check that. Links that are forwarded to "
            "containers are not affected.",
        ),
    )
    unroutable_presettled: UnroutablePresettled = attrs.field(
        default="drop",
        metadata=setting(
            kinds.choice(get_args(UnroutablePresettled)),
            "What to do if a client without a target address sends a settled message that has no "
            "`to`, or one to an address that the client could not attach a link to: drop the "
            "message, or also detach the client's link with the error, as the specification of "
            "the anonymous terminus requires. With detach, a server that sends settled answers "
            "loses its link to any client that asks with a wrong reply-to.",
        ),
    )
    durable_subscriptions: Unsupported = attrs.field(
        default="refuse",
        metadata=setting(
            kinds.choice(get_args(Unsupported)),
            "What to do with a receiver that requests a durable source that never expires, as "
            "durable subscriptions of JMS do: refuse it with amqp:not-implemented, or ignore "
            "the request and keep no messages for it while it is away. The router's attach "
            "shows if it was ignored. Links that are forwarded to containers are not affected.",
        ),
    )
    reject_unconfirmed_durable: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "Whether a durable message is rejected with amqp:precondition-failed if the "
            "receiver whose turn it is takes all messages settled, and so confirms nothing; the "
            "other receivers of a multicast still get it. A change applies to receivers that "
            "attach later. Without this, such a message is accepted once it is written to the "
            "receiver's socket, and is lost if the connection is.",
        ),
    )
