"""Real routers in a line, each connected to the next: clients at the first, brokers at the last.

The first and the last one may be edges.
"""

from __future__ import annotations

import time
from typing import Any

from proton import Message
from proton.utils import BlockingConnection, SyncRequestResponse

from support.configuring import PATIENT, entity
from support.management_tool import Tool
from support.routers import RouterProcess, StartRouter

PATIENCE_S = 60.0


def interior(name: str, *joined: RouterProcess, costs: tuple[int, ...] = (), more: str = "") -> str:
    """Return the configuration of a router with connectors to the second listeners of `joined`.

    `costs` are those of the connections, 1 where there are none.
    """
    configuration = f'[router]\nid = "{name}"\nmode = "interior"\n\n'
    configuration += entity("listener", name="clients", host="127.0.0.1", port=0, **PATIENT)
    configuration += entity(
        "listener", name="routers", host="127.0.0.1", port=0, role="inter-router"
    )
    for number, other in enumerate(joined):
        configuration += entity(
            "connector",
            name=f"next-{number}",
            host="127.0.0.1",
            port=other.addresses[1][1],
            role="inter-router",
            cost=costs[number] if costs else 1,
        )
    return configuration + more


EDGES = entity("listener", name="edges", host="127.0.0.1", port=0, role="edge")


def edge(name: str, *interiors: RouterProcess, more: str = "") -> str:
    """Return the configuration of an edge router with uplinks to the third listeners of these.

    These listeners are for edges.
    """
    configuration = f'[router]\nid = "{name}"\nmode = "edge"\nedgeHeartbeatSeconds = 0.5\n'
    configuration += "edgeHeartbeatMaxAgeSeconds = 3\n\n"
    configuration += entity("listener", name="clients", host="127.0.0.1", port=0, **PATIENT)
    for other in interiors:
        port = other.addresses[2][1]
        configuration += entity(
            "connector", name=f"uplink-{port}", host="127.0.0.1", port=port, role="edge"
        )
    return configuration + more


def start_between_edges(routers: StartRouter, last: str = "") -> list[RouterProcess]:
    """Start an edge, two interiors and another edge, which is configured with more, in a line."""
    far = routers(interior("c", more=EDGES))
    near = routers(interior("b", far, more=EDGES))
    return [routers(edge("e", near)), near, far, routers(edge("f", far, more=last))]


def start_line(
    routers: StartRouter, *names: str, every: str = "", last: str = ""
) -> list[RouterProcess]:
    """Start routers, and have each configured with more besides, and the last one with yet more."""
    started: list[RouterProcess] = []
    for name in reversed(names):
        more = every + ("" if started else last)
        started.insert(0, routers(interior(name, *started[:1], more=more)))
    return started


def until_known(router: RouterProcess, *keys: str, known: bool = True) -> None:
    """Wait until a router has these addresses, by their keys in management; or has none of them."""
    tool = Tool(router)
    deadline = time.monotonic() + PATIENCE_S
    try:
        while True:
            found = {entity["key"] for entity in tool.query("router.address", "key")}
            if found.issuperset(keys) if known else not found.intersection(keys):
                return
            assert time.monotonic() < deadline, f"{keys} of {sorted(found)}"
    finally:
        tool.close()


def ask_for_route(router: RouterProcess, pattern: str) -> BlockingConnection:
    """Return a container's connection that has created a link route in for a pattern."""
    connection = BlockingConnection(router.url())
    request = Message(
        body={"pattern": pattern, "direction": "in"},
        properties={
            "operation": "CREATE",
            "type": "org.apache.qpid.dispatch.router.connection.linkRoute",
            "name": "mine",
        },
    )
    answer: Any = SyncRequestResponse(connection, "$management").call(request)
    assert answer.properties["statusCode"] == 201
    return connection
