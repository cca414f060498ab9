"""Connections."""

from __future__ import annotations

from typing import Final

from router.management.entities.attributes import constant, identified, integers
from router.management.schema import OPERATIONAL, Attribute, EntityType

ENABLED: Final = "enabled"
DELETED: Final = "deleted"

CONNECTION: Final = EntityType(
    "connection",
    "A connection with a peer, whoever opened it.",
    OPERATIONAL,
    (
        *identified(lambda c: f"connection/{c.identity}", lambda c: c.identity, "connection"),
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
        Attribute("role", "string", "That of its listener or connector.", lambda c: c.role),
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
        Attribute("user", "string", "Who the peer is.", lambda c: c.connection.user),
        Attribute("ssl", "boolean", "Never: there is no TLS.", constant(False)),
        Attribute("sslProto", "string", "None: there is no TLS.", constant(None)),
        Attribute("sslCipher", "string", "None: there is no TLS.", constant(None)),
        *integers((("sslSsf", "None: there is no TLS.", constant(None)),)),
        *integers((("uptimeSeconds", "How long ago it was made.", lambda c: c.uptime_s),)),
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
            "What the peer said of itself in open.",
            lambda c: dict(c.connection.remote_open.properties or {}),
        ),
    ),
    absent=("tenant", "lastDlvSeconds"),
    operations=("READ", "UPDATE"),
)
