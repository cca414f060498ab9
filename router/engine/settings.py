"""Settings of a connection endpoint: limits, names, security."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from router.amqp.types import DecodedMap

# How much work is done for one read before other connections have their turn, counted in
# per-message frames. One read contains no more of these, but a disposition of thirty octets can
# name thousands of deliveries (`engine/dispositions.py`).
TURN_WORK: Final = 32768


@attrs.frozen
class ConnectionSettings:
    """Settings of our side of a connection, fixed before it starts.

    If the peer is silent for `idle_timeout_s`, the connection is closed; 0 means never. Our open
    announces half of this time, as section 2.4.5 advises.
    """

    container_id: str
    # the name and role of the connection's listener or connector
    endpoint: str = ""
    role: str = "normal"
    # the cost of the connection, if it leads to another router
    cost: int = 1
    hostname: str | None = None
    # as a client: the port of the server, for mechanisms that name it
    port: int | None = None
    max_frame_size: int = 65536
    channel_max: int = 32767
    handle_max: int = 65535
    # how many transfer frames a peer may send ahead on each session
    window_limit: int = 2048
    idle_timeout_s: float = 16.0
    # how long a peer may take from connecting to its open; 0 switches it off
    handshake_timeout_s: float = 10.0
    # as a server: the mechanisms offered, and whether a peer must use SASL; as a client: an empty
    # tuple means to connect without SASL
    sasl_mechanisms: tuple[str, ...] = ("ANONYMOUS",)
    sasl_required: bool = False
    # whether mechanisms that send a secret in clear text, as PLAIN does, need TLS
    plain_needs_tls: bool = False
    # as a client: what people can do if only such mechanisms are left
    plain_advice: str = "use TLS"
    # the largest SASL frame that is accepted; the 512 octets of section 5.3.1 are too few for most
    # tokens
    sasl_frame_bytes: int = 512
    # as a client: the user, and the user's password or bearer token
    sasl_username: str | None = None
    sasl_password: str | None = attrs.field(default=None, repr=False)
    # whether the router's own message annotations are accepted from the peer, and whether they are
    # sent to it
    honours_annotations: bool = False
    shows_annotations: bool = False
    # the most credit that a sender is granted
    link_capacity: int = 1000
    # held octets of one connection above which reading from it stops
    held_limit_bytes: int = 8 * 1024 * 1024
    # unsent octets for the peer above which reading from it stops; 0: no limit
    unsent_limit_bytes: int = 0
    properties: DecodedMap = attrs.Factory(dict)
    offered_capabilities: tuple[str, ...] = ("ANONYMOUS-RELAY",)
    desired_capabilities: tuple[str, ...] = ()
    # the peer is this process itself, which alone may receive at the router's own nodes
    is_own: bool = False
    # which management requests the peer may make: none, read, change, or trusted
    # (`management/access.py`)
    management: str = "read"
    # whether the policy applies; the name of the virtual host, if it is not the one in the peer's
    # open; and whether the virtual host has an address space of its own
    is_policed: bool = False
    policy_vhost: str | None = None
    multi_tenant: bool = False
    # whether a peer on this host is trusted although it has not authenticated
    trusts_loopback: bool = True
    # whether its frames are logged
    traced: bool = False
