"""Map loggers to Dispatch's modules: by the logger's name, or the nearest one above it.

Dispatch's other modules have no lines here: the parts of the router that would write them do not
exist, or write none.
"""

from __future__ import annotations

from typing import Final

from router.config.log_levels import DEFAULT

_MODULES: Final = {
    # starting, stopping, what is configured
    "router": "ROUTER",
    # links, and what waits
    "router.core": "ROUTER_CORE",
    "router.link": "ROUTER_CORE",
    # the network of routers: neighbours, the routers that can be reached, their addresses
    "router.hello": "ROUTER_HELLO",
    "router.ls": "ROUTER_LS",
    "router.ma": "ROUTER_MA",
    # connections, whoever opened them
    "router.connection": "SERVER",
    "router.connector": "SERVER",
    "router.listener": "SERVER",
    "router.authentication": "AUTHSERVICE",
    "router.management": "AGENT",
    "router.http": "HTTP",
    # what plugins write, and what becomes of them
    "router.plugin": "PYTHON",
    # frames of connections that are traced
    "router.protocol": "PROTOCOL",
}


def module_of(logger: str) -> str:
    """Return the module of the logger with this name; DEFAULT if no other is nearer."""
    name = logger
    while name:
        if name in _MODULES:
            return _MODULES[name]
        name = name.rpartition(".")[0]
    return DEFAULT
