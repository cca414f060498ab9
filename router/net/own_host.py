"""Sockets whose peer is on this host, so that nobody else can read what is sent."""

from __future__ import annotations

import ipaddress
import socket


def is_on_this_host(sock: socket.socket) -> bool:
    """Return whether the peer of a connected socket has a loopback address."""
    try:
        return ipaddress.ip_address(sock.getpeername()[0]).is_loopback
    except (OSError, ValueError):
        # reset meanwhile, or an address with a zone, which loopback ones do not have
        return False
