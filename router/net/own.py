"""A connection of the router with itself, over which a part of it is a client of the whole."""

from __future__ import annotations

import socket

from router.engine.connection import Connection
from router.engine.settings import ConnectionSettings
from router.net.exchange import Exchange
from router.net.pump import Pump

OWN_NAME = "the router itself"
LINK_CAPACITY = 250


def own_connection(exchange: Exchange, container_id: str) -> tuple[Pump, socket.socket]:
    """The router's end, to be run as any other, and the socket of the other end.

    Neither end needs heartbeats: both are gone when the process is. What is received there must
    not be held up by what others do not take, so `held_limit_bytes` is as much as a router holds.
    """
    ours, theirs = socket.socketpair()
    for sock in (ours, theirs):
        sock.setblocking(False)
    settings = ConnectionSettings(
        container_id=container_id,
        idle_timeout_s=0,
        handshake_timeout_s=0,
        sasl_mechanisms=(),
        link_capacity=LINK_CAPACITY,
        is_own=True,
        shows_annotations=True,
    )
    connection = Connection(settings, exchange.forwarder, exchange.turn, OWN_NAME, False)
    return Pump(ours, connection, exchange, None), theirs
