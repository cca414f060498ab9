"""Attributes that listeners and connectors have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

import attrs

from router.config import kinds
from router.config.open_properties import open_properties
from router.config.setting import setting

Role = Literal["normal", "route-container", "inter-router", "edge"]
StripAnnotations = Literal["in", "out", "both", "no"]
Management = Literal["none", "read", "trusted", "change"]
Mechanism = Literal[
    "ANONYMOUS",
    "PLAIN",
    "EXTERNAL",
    "SCRAM-SHA-1",
    "SCRAM-SHA-256",
    "SCRAM-SHA-512",
    "XOAUTH2",
    "OAUTHBEARER",
]
TOKENS: Final = ("XOAUTH2", "OAUTHBEARER")
"""SASL mechanisms by which a client sends a token; at a listener, only a plugin can check it."""
CLEARTEXT: Final = ("PLAIN", *TOKENS)
"""SASL mechanisms that send a password or a token in clear text."""
AddressFamily = Literal["IPv4", "IPv6"]

MIB: Final = 2**20
# idle-time-out is a uint of milliseconds (AMQP 1.0 part 2.7.1).
LONGEST_TIMEOUT_S: Final = (2**32 - 1) // 1000

HOST: Final = kinds.text(255, spaces=False)
# Longer than any default name can be, so that no default is refused.
NAME: Final = kinds.text(512)
MECHANISMS: Final = kinds.words(get_args(Mechanism))


def name_from_socket(entity: str) -> str:
    """Return the default of an endpoint's name: its entity, host and port."""
    # attrs takes the factory for a value of the attribute's type
    return attrs.Factory(lambda self: f"{entity}/{self.host}:{self.port}", takes_self=True)


# Two classes may share a definition: attrs makes an attribute of each class from it.
ROLE: Final[Role] = attrs.field(
    default="normal",
    metadata=setting(
        kinds.choice(get_args(Role)),
        "What the peer is: a client (normal); a container, such as a broker, that this router "
        "attaches links to (route-container); another interior router (inter-router); or, with "
        "edge, an edge router at a listener of an interior router, and an interior router at a "
        "connector of an edge router.",
    ),
)
COST: Final[int] = attrs.field(
    default=1,
    metadata=setting(
        kinds.cost(),
        "With the role inter-router: the cost of a route over such a connection. If its two "
        "ends have different costs, the larger one counts. Messages take the cheapest route.",
    ),
)
MAX_FRAME_SIZE: Final[int] = attrs.field(
    default=65536,
    metadata=setting(
        kinds.whole_number(512, MIB, "bytes"),
        "The largest frame that the peer may send, announced in open as max-frame-size.",
    ),
)
MAX_SESSIONS: Final[int] = attrs.field(
    default=32768,
    metadata=setting(
        kinds.whole_number(1, 65536, "sessions"),
        "How many sessions the peer may begin on one connection; one less is announced in open as "
        "channel-max.",
    ),
)
MAX_SESSION_FRAMES: Final[int] = attrs.field(
    default=2048,
    metadata=setting(
        kinds.whole_number(1, 2**31 - 1, "frames"),
        "How many transfer frames the peer may send on one session before the router widens the "
        "incoming window.",
    ),
)
LINK_CAPACITY: Final[int] = attrs.field(
    default=1000,
    metadata=setting(
        kinds.whole_number(1, 1_000_000, "deliveries"),
        "How many deliveries a link may have in flight: the maximum credit of a sender.",
    ),
)
CONNECTION_BUFFER_BYTES: Final[int] = attrs.field(
    default=8 * MIB,
    metadata=setting(
        kinds.whole_number(64 * 1024, 2**40, "bytes"),
        "How many bytes of messages from one connection may wait in the router. Its sessions "
        "share half of that as their windows, and the window of one session may grow to all of "
        "it while a large message passes through. If more than all of it waits, the windows of "
        "sessions with waiting messages narrow to 256 KiB until half has been sent on.",
    ),
)
IDLE_TIMEOUT_SECONDS: Final[float] = attrs.field(
    default=16.0,
    metadata=setting(
        kinds.seconds(LONGEST_TIMEOUT_S, zero="never"),
        "How long the peer may be silent before the connection is closed; half of that time is "
        "announced in open as idle-time-out.",
    ),
)
OPEN_PROPERTIES: Final[Mapping[str, object]] = attrs.field(
    factory=dict,
    metadata=setting(
        open_properties(),
        "Additional properties to send in open, besides those that the router sets itself.",
        default="none",
    ),
)
ENABLE_PROTOCOL_TRACE: Final[bool] = attrs.field(
    default=False,
    metadata=setting(
        kinds.flag(),
        "Whether the frames of its connections are written to the log (module PROTOCOL), "
        "regardless of the log levels.",
    ),
)
STRIP_ANNOTATIONS: Final[StripAnnotations] = attrs.field(
    default="both",
    metadata=setting(
        kinds.choice(get_args(StripAnnotations)),
        "Where the router's own message annotations, such as x-opt-qd.ingress, are removed: "
        "from messages that the peer sends (in), so that it cannot forge them; from messages "
        "sent to it (out); from both; or nowhere (no). All other annotations pass unchanged.",
    ),
)
MANAGEMENT_SETTING: Final = setting(
    kinds.choice(get_args(Management)),
    "Which operations of $management the peer may request: none (none), those that change "
    "nothing (read), or all (change). With trusted, a peer may request all if it has "
    "authenticated with SASL other than ANONYMOUS, or connects from this host's loopback "
    "address; other peers, and those that the router connects to, may only read. If the "
    "peer is another router, this limits what its clients may do; with trusted, such a "
    "router is also trusted if it is on this host, whichever side connected.",
)
MANAGEMENT: Final[Management] = attrs.field(default="trusted", metadata=MANAGEMENT_SETTING)
