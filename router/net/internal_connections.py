"""Connections of the router to itself, which its management and its plugins use as clients."""

from __future__ import annotations

import socket

from router.engine.connection import Connection
from router.engine.settings import ConnectionSettings
from router.net.router_hub import RouterHub
from router.net.router_pump import RouterPump

OWN_NAME = "the router itself"
LINK_CAPACITY = 250


def internal_connection(hub: RouterHub, container_id: str) -> tuple[RouterPump, socket.socket]:
    """Return a pump for the router's end of a connection to itself, and the other end's socket.

    The caller has to run the pump. There are no heartbeats, since both ends are in one process.
    """
    settings = ConnectionSettings(
        container_id=container_id,
        idle_timeout_s=0,
        handshake_timeout_s=0,
        sasl_mechanisms=(),
        link_capacity=LINK_CAPACITY,
        is_own=True,
        shows_annotations=True,
    )
    return _paired(hub, settings, OWN_NAME)


def plugin_connection(
    hub: RouterHub, container_id: str, plugin: str
) -> tuple[RouterPump, socket.socket]:
    """Return a pump for the router's end of a plugin's connection, and the plugin's socket.

    The caller has to run the pump. The router treats the plugin like any other peer, with the same
    limits, but without heartbeats and SASL.
    """
    settings = ConnectionSettings(
        container_id=container_id,
        idle_timeout_s=0,
        handshake_timeout_s=0,
        sasl_mechanisms=(),
        link_capacity=LINK_CAPACITY,
    )
    return _paired(hub, settings, f"plugin {plugin}")


def _paired(
    hub: RouterHub, settings: ConnectionSettings, name: str
) -> tuple[RouterPump, socket.socket]:
    ours, theirs = socket.socketpair()
    for sock in (ours, theirs):
        sock.setblocking(False)
    connection = Connection(settings, hub.forwarder, hub.turn, name, False)
    return RouterPump(ours, connection, hub, None), theirs
