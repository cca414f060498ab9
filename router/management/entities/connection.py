"""Entity type of connections."""

from __future__ import annotations

from functools import partial
from typing import Final

from router.core.model import memory_by_kind
from router.engine import account
from router.management.entities.attributes import AttributesOf, constant
from router.management.schema import OPERATIONAL, Attribute, EntityType
from router.management.views import ConnectionView

ENABLED: Final = "enabled"
DELETED: Final = "deleted"

# Memory that the router holds on behalf of a connection's peer, by kind.
_KEPT: Final = (
    (
        "Connection",
        account.CONNECTION,
        "the connection itself, with the content of the peer's open",
    ),
    ("Sessions", account.SESSIONS, "its sessions"),
    ("Links", account.LINKS, "its links, with their names and addresses"),
    ("Nodes", account.NODES, "dynamic nodes that were created for it"),
    ("Suspended", account.SUSPENDED, "its sources and targets without a link"),
    ("Routes", account.ROUTES, "what it has announced about other routers and their addresses"),
    ("Traces", account.TRACES, "lines of its traces that wait to be sent"),
    ("Messages", memory_by_kind.MESSAGES, "messages from it that wait in the router"),
    ("Deliveries", memory_by_kind.DELIVERIES, "unsettled deliveries that it has sent"),
    ("Input", memory_by_kind.INPUT, "an incomplete frame"),
    ("Output", memory_by_kind.OUTPUT, "output that it has not read yet"),
)


def _kept(kind: str, view: ConnectionView) -> int:
    return memory_by_kind.holdings_of(view.connection)[kind]


_OF: Final = AttributesOf[ConnectionView]()

CONNECTION: Final = EntityType[ConnectionView](
    "connection",
    "A connection with a peer, opened by either side.",
    OPERATIONAL,
    (
        *_OF.identified(lambda c: f"connection/{c.identity}", lambda c: c.identity, "connection"),
        Attribute(
            "adminStatus",
            "string",
            "Always enabled. Setting it to deleted closes the connection.",
            constant(ENABLED),
            changes=True,
        ),
        Attribute(
            "operStatus",
            "string",
            "up or closing.",
            lambda c: "closing" if c.connection.finished or c.connection.closed_at else "up",
        ),
        Attribute("protocol", "string", "Always amqp.", constant("amqp")),
        Attribute(
            "container",
            "string",
            "The peer's container-id.",
            lambda c: str(c.connection.remote_open.container_id),
        ),
        Attribute(
            "opened", "boolean", "Whether both sides have opened it: always true.", constant(True)
        ),
        Attribute("host", "string", "The peer's host and port.", lambda c: c.connection.name),
        Attribute(
            "dir",
            "string",
            "Who opened it: the peer (in) or the router (out).",
            lambda c: "out" if c.connection.is_client else "in",
        ),
        Attribute("role", "string", "The role of its listener or connector.", lambda c: c.role),
        Attribute(
            "active",
            "boolean",
            "For a connection between an edge router and an interior router: whether it is in "
            "use (true) or on standby (false). Null for other connections.",
            lambda c: c.use[0],
        ),
        Attribute(
            "uplink",
            "string",
            "At an edge router: why the connection is in use or on standby.",
            lambda c: c.use[1],
        ),
        Attribute(
            "isAuthenticated",
            "boolean",
            "Whether SASL was used, with any mechanism including ANONYMOUS.",
            lambda c: c.mechanism is not None,
        ),
        Attribute(
            "isEncrypted", "boolean", "Whether it uses TLS.", lambda c: c.pump.security is not None
        ),
        Attribute("sasl", "string", "The SASL mechanism that was used.", lambda c: c.mechanism),
        Attribute(
            "user",
            "string",
            "The user as whom the peer or, at a connector, this router has logged in; anonymous "
            "without a login. Null if this router has logged in with EXTERNAL.",
            lambda c: c.user,
        ),
        Attribute(
            "ssl", "boolean", "The same as isEncrypted.", lambda c: c.pump.security is not None
        ),
        Attribute(
            "sslProto",
            "string",
            "The TLS version, such as TLSv1.3; null without TLS.",
            lambda c: c.pump.security and c.pump.security.version,
        ),
        Attribute(
            "sslCipher",
            "string",
            "The TLS cipher; null without TLS.",
            lambda c: c.pump.security and c.pump.security.cipher,
        ),
        *_OF.integers(
            (
                (
                    "sslSsf",
                    "The strength of the TLS cipher: the bits of its key; null without TLS.",
                    lambda c: c.pump.security and c.pump.security.bits,
                ),
            )
        ),
        *_OF.integers(
            (("uptimeSeconds", "Seconds since the peer connected.", lambda c: c.uptime_s),)
        ),
        *_OF.integers(
            (
                (
                    "memoryHeld",
                    "Octets that the router holds on behalf of its peer, in total.",
                    lambda c: sum(memory_by_kind.holdings_of(c.connection).values()),
                ),
            )
        ),
        *_OF.integers(
            (f"memory{name}", f"Octets in memoryHeld for {what}.", partial(_kept, kind))
            for name, kind, what in _KEPT
        ),
        Attribute(
            "enableProtocolTrace",
            "boolean",
            "Whether its frames are written to the log.",
            lambda c: c.logs_frames,
            changes=True,
        ),
        Attribute(
            "properties",
            "map",
            "The properties in the peer's open.",
            lambda c: c.connection.remote_open.properties or {},
        ),
    ),
    unsupported=("tenant", "lastDlvSeconds"),
    operations=("READ", "UPDATE"),
)
