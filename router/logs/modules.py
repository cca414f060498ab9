"""Map loggers to Dispatch's log modules, by the logger's name or its nearest known parent.

Dispatch's log modules that are missing from the table belong to parts that this router does not
have, or that write no lines.
"""

from __future__ import annotations

from typing import Final

from router.config.log_levels import DEFAULT

_MODULES: Final = {
    # start, stop and configuration
    "router": "ROUTER",
    # links, and deliveries that wait
    "router.core": "ROUTER_CORE",
    "router.link": "ROUTER_CORE",
    # the network of routers: neighbours, reachable routers, and their addresses
    "router.hello": "ROUTER_HELLO",
    "router.ls": "ROUTER_LS",
    "router.ma": "ROUTER_MA",
    # connections in both directions
    "router.connection": "SERVER",
    "router.connector": "SERVER",
    "router.listener": "SERVER",
    "router.authentication": "AUTHSERVICE",
    # refusals by the policy
    "router.policy": "POLICY",
    "router.management": "AGENT",
    "router.http": "HTTP",
    # lines of plugins, and about their state
    "router.plugin": "PYTHON",
    # frames of traced connections
    "router.protocol": "PROTOCOL",
}


def module_of(logger: str) -> str:
    """Return the log module for the logger with this name; DEFAULT if no parent is known."""
    name = logger
    while name:
        if name in _MODULES:
            return _MODULES[name]
        name = name.rpartition(".")[0]
    return DEFAULT
