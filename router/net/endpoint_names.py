"""Names of peers and of listening sockets: a host with a port."""

from __future__ import annotations

from router.fairness import counted_host


def endpoint_name(host: str, port: int) -> str:
    """Return `host:port`, the name of a peer or a listening socket in logs and messages."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def endpoint_host(name: str) -> str:
    """Return the host in a name that `endpoint_name` has returned."""
    return name.rpartition(":")[0].strip("[]")


def endpoint_counted_host(name: str) -> str:
    """Return the host, or IPv6 network, that a peer is counted as."""
    return counted_host(endpoint_host(name))
