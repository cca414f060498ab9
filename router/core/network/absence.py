"""What is not there that a name says it is at: a router, or an edge router (`_edge/<id>/…`).

For those who want to know why nothing flows. None of this runs once a message.
"""

from __future__ import annotations

from typing import Any

from router.core.network.names import edge_key_in, router_in


def absent(network: Any, name: str) -> str | None:
    """Which router a name leads to that is nowhere to be found, in words; None where it is there,
    or may be, or the name leads to none.
    """
    router, edge = router_in(name), edge_key_in(name)
    if network.is_on and router is not None:
        is_there = router == network.reach.me or network.reach.path(router) is not None
        return None if is_there else f"there is no way to a router {router}"
    if network.edges is None or not network.edges.lacks(name):
        return None
    if not network.is_on:
        place = f"router {router}" if edge is None else f"edge router {edge[1:]}"
        return f"the interior routers know no {place}"
    return None if edge is None else f"no edge router {edge[1:]} is connected to the network"
