"""Routers are changed from other routers and from edges, by whom their listeners allow it."""

from __future__ import annotations

from support.configuring import entity
from support.management_tool import P, Tool
from support.router_lines import interior
from support.routers import RouterProcess, StartRouter

READERS = entity("listener", name="readers", host="127.0.0.1", port=0, management="read")
EDGES = entity("listener", name="edges", host="127.0.0.1", port=0, role="edge")
WHOLE = """\
[router]
id = "e"
mode = "edge"

"""


def edge(interior: RouterProcess) -> str:
    """Return the configuration of an edge of a router whose last listener is for edges."""
    port = interior.addresses[3][1]
    return (
        WHOLE
        + entity("listener", name="clients", host="127.0.0.1", port=0)
        + READERS
        + entity("connector", name="uplink", host="127.0.0.1", port=port, role="edge")
    )


def address_of(name: str) -> str:
    return f"_edge/{name}/$management" if name == "e" else f"_topo/0/{name}/$management"


def change(router: RouterProcess, listener: int, asked: str) -> tuple[int, str]:
    """Update a log setting of the router `asked`, over a listener of `router`.

    Return the status and the description of the answer.
    """
    tool = Tool(router, address_of(asked), url=router.url(listener=listener))
    try:
        named = {"operation": "UPDATE", "type": P + "log", "name": "log/AGENT"}
        answered = tool.ask({"enable": "debug+"}, **named).properties
        return int(answered["statusCode"]), str(answered["statusDescription"])
    finally:
        tool.close()


def test_rights_are_carried_between_routers_and_edges(routers: StartRouter) -> None:
    first = routers(interior("a", more=READERS + EDGES))
    started = {"a": (first, 2), "b": (routers(interior("b", first, more=READERS)), 2)}
    started["e"] = routers(edge(first)), 1
    for at, (router, readers) in started.items():
        for asked in started:
            status, why = change(router, 0, asked)
            assert status == 200, f"{at} -> {asked}: {why}"
            status, why = change(router, readers, asked)
            assert status == 403, f"{at} -> {asked}: {why}"
            is_here = 'readers has management = "read"' in why
            assert is_here is (at == asked)
            assert is_here or "does not state that the sender may change things" in why
    # the nodes for their answers have gone with them, which is nothing wrong
    logs = [router.log_text() for router, _ in started.values()]
    gone = [line for log in logs for line in log.splitlines() if "resource-deleted" in line]
    assert gone
    assert [line for line in gone if "[info" not in line] == []
