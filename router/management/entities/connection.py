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

# Memory that the peer of a connection makes the router keep, by kind.
_KEPT: Final = (
    ("Connection", account.CONNECTION, "the connection itself, and what the peer said in open"),
    ("Sessions", account.SESSIONS, "its sessions"),
    ("Links", account.LINKS, "its links, with their names and addresses"),
    ("Nodes", account.NODES, "dynamic nodes that were made for it"),
    ("Suspended", account.SUSPENDED, "sources and targets that it has left without a link"),
    ("Routes", account.ROUTES, "what it has told of other routers and their addresses"),
    ("Traces", account.TRACES, "lines of its traces that wait to be sent"),
    ("Messages", memory_by_kind.MESSAGES, "messages from it that wait"),
    ("Deliveries", memory_by_kind.DELIVERIES, "deliveries that it has sent and that are unsettled"),
    ("Input", memory_by_kind.INPUT, "an incomplete frame"),
    ("Output", memory_by_kind.OUTPUT, "output that it has not read yet"),
)


def _kept(kind: str, view: ConnectionView) -> int:
    return memory_by_kind.holdings_of(view.connection)[kind]


_OF: Final = AttributesOf[ConnectionView]()

CONNECTION: Final = EntityType[ConnectionView](
    "connection",
    "A connection with a peer, whoever opened it.",
    OPERATIONAL,
    (
        *_OF.identified(lambda c: f"connection/{c.identity}", lambda c: c.identity, "connection"),
        Attribute(
            "adminStatus",
            "string",
            "Always enabled; a connection that is given deleted is closed.",
            constant(ENABLED),
            changes=True,
        ),
        Attribute(
            "operStatus",
            "string",
            "Whether it is up, or closing.",
            lambda c: "closing" if c.connection.finished or c.connection.closed_at else "up",
        ),
        Attribute("protocol", "string", "Always amqp.", constant("amqp")),
        Attribute(
            "container",
            "string",
            "The peer's container-id.",
            lambda c: str(c.connection.remote_open.container_id),
        ),
        Attribute("opened", "boolean", "Whether both sides have opened it.", constant(True)),
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
            "Of a connection between an edge router and an interior one: whether it is used, and "
            "does not stand by. Null of others.",
            lambda c: c.use[0],
        ),
        Attribute(
            "uplink",
            "string",
            "At an edge router: why that connection is used or stands by.",
            lambda c: c.use[1],
        ),
        Attribute(
            "isAuthenticated",
            "boolean",
            "Whether the peer went through SASL; with ANONYMOUS it did.",
            lambda c: c.mechanism is not None,
        ),
        Attribute("isEncrypted", "boolean", "Never: there is no TLS.", constant(False)),
        Attribute("sasl", "string", "The SASL mechanism that was used.", lambda c: c.mechanism),
        Attribute("user", "string", "The user name of the peer.", lambda c: c.connection.user),
        Attribute("ssl", "boolean", "Never: there is no TLS.", constant(False)),
        Attribute("sslProto", "string", "None: there is no TLS.", constant(None)),
        Attribute("sslCipher", "string", "None: there is no TLS.", constant(None)),
        *_OF.integers((("sslSsf", "None: there is no TLS.", constant(None)),)),
        *_OF.integers(
            (("uptimeSeconds", "Seconds since the peer connected.", lambda c: c.uptime_s),)
        ),
        *_OF.integers(
            (
                (
                    "memoryHeld",
                    "Octets that its peer makes the router keep, in total.",
                    lambda c: sum(memory_by_kind.holdings_of(c.connection).values()),
                ),
            )
        ),
        *_OF.integers(
            (f"memory{name}", f"Of these, octets for {what}.", partial(_kept, kind))
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
