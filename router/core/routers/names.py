"""Keys by which routers announce addresses, and names that contain the id of the node's router.

The node `_topo/0/<id>/…` is at the router with that id and nowhere else, and `_edge/<id>/…` at the
edge router with that id. Messages to such names find that router even if it announces no receiver.
The names are those of Dispatch.
"""

from __future__ import annotations

import re

from router.core.model.address import FALLBACK, LAST_PHASE, Address
from router.core.routers.routing_state import EDGE, EDGE_AWAY, EDGE_RUN, MOBILE

MANAGEMENT_NODE = "$management"
MANAGEMENT = f"/{MANAGEMENT_NODE}"
# The address that a link to a transaction coordinator has in link routes, policies and plugins.
COORDINATOR = "$coordinator"
# the most digits that an instance has: instances are below 2^63
LONGEST_INSTANCE = 19
_TOPOLOGICAL = re.compile(r"_topo/0/([^/]+)/.")
_AT_EDGE = re.compile(r"_edge/([^/]+)/.")


def key_at(name: str, phase: int) -> str:
    """Return the key of a mobile address: `MOBILE`, the phase, and the name.

    The phase is a digit, or F for `FALLBACK`, or C for `MANAGEMENT_WRITERS`.
    """
    return f"{MOBILE}{chr(ord('0') + phase)}{name}"


def key_of(address: Address) -> str:
    """Return the key by which routers announce an address."""
    return key_at(address.name, address.phase)


def address_in(key: str) -> tuple[str, int] | None:
    """Return the name and the phase in the key of a mobile address.

    Return None for any other key, and for a key with an unknown phase.
    """
    if not key.startswith(MOBILE) or len(key) < len(MOBILE) + 2:
        return None
    phase = ord(key[1]) - ord("0")
    return (key[2:], phase) if 0 <= phase <= LAST_PHASE or phase == FALLBACK else None


def router_in(name: str) -> str | None:
    """Return the id of the router in a name, or None if the name does not contain an id."""
    found = _TOPOLOGICAL.match(name)
    return None if found is None else found[1]


def is_management_elsewhere(name: str, me: str) -> bool:
    """Return whether a name is the management node of another router or of an edge router."""
    if not name.endswith(MANAGEMENT):
        return False
    return router_in(name) not in (None, me) or edge_key_in(name) is not None


def edge_key_in(name: str) -> str | None:
    """Return the key of the edge router in a name, or None if the name contains no edge router."""
    found = _AT_EDGE.match(name)
    return None if found is None else EDGE + found[1]


def edge_run_key(edge: str, instance: int, letter: str = EDGE_RUN) -> str:
    """Return the key by which routers announce one run of an edge router."""
    return f"{letter}{edge}/{instance}"


def edge_run_in(key: str) -> tuple[str, int] | None:
    """Return the id and the instance in the key of a run of an edge router.

    Return None for any other key, and for a malformed one.
    """
    edge, _, instance = key[1:].rpartition("/")
    if not key.startswith((EDGE_RUN, EDGE_AWAY)) or not edge:
        return None
    if not (instance.isascii() and instance.isdigit() and len(instance) <= LONGEST_INSTANCE):
        return None
    return edge, int(instance)
