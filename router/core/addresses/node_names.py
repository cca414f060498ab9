"""Restrict which peers may receive from dynamic nodes, by marks in the nodes' names.

Names of dynamic nodes appear on the wire, in logs and in management views, so being hard to guess
does not protect them. Each name therefore contains a mark of the peer that the node was made for.
Any router of the network can compare the mark with a peer that wants to receive. A node made for a
receiver is only for the receiver's own container and user; a node made for a sender is for any peer
of the same user (docs/decisions/0077). None of this runs once per message.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from router.amqp.constants import Condition
from router.core.addresses.link_names import user_of
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.engine.connection import Connection

# Beginning of the last part of a dynamic node's name; dots separate the words after it.
DYNAMIC: Final = "temp."
_PLACED: Final = re.compile(r"_(topo/0|edge)/([^/]+)/(.+)", re.DOTALL)
MARK_BYTES: Final = 8


def mark_of(connection: Connection, *, is_receiver: bool) -> str:
    """Return the mark for the name of a dynamic node that is made for a link of this peer.

    The mark is a hash of the peer's user or, if the peer is the receiver on that link, of its user
    and container-id.
    """
    is_dialled, user = user_of(connection)
    whose = [f"{int(is_dialled)}{user}"]
    if is_receiver:
        whose.append(connection.remote_open.container_id)
    digest = blake2b(digest_size=MARK_BYTES)
    for each in whose:
        octets = each.encode()
        digest.update(len(octets).to_bytes(4, "big") + octets)
    return digest.hexdigest()


def check_receiver(
    connection: Connection, name: str, me: str, *, is_member: bool, is_edge: bool
) -> None:
    """Raise `AmqpError` if a peer may not receive from the address `name`.

    The forbidden addresses are those of other peers' dynamic nodes, and those of nodes that exist
    only at another router.
    `me` is this router's id. `is_member` says whether this router is in a network, and `is_edge`
    whether it is an edge router there.
    """
    found = _PLACED.fullmatch(name)
    if found is None:
        return
    area, router, rest = found.groups()
    is_here = router == me and (area == "edge") == is_edge
    if rest.startswith(DYNAMIC):
        if not _is_marked(connection, rest):
            raise _refused(
                f"only the peer that the dynamic node {name} was made for may receive from it"
            )
    elif is_here or not is_member:
        return
    if is_member and not is_here and (area == "edge" or not rest.startswith(DYNAMIC)):
        kind = "edge router" if area == "edge" else "router"
        raise _refused(f"{name} is a node of the {kind} {router}; receivers can attach only there")


def _is_marked(connection: Connection, rest: str) -> bool:
    """Return whether a dynamic node's name contains a mark of this peer (`mark_of`)."""
    parts = rest.split(".")
    return any(mark_of(connection, is_receiver=each) in parts for each in (True, False))


def _refused(reason: str) -> AmqpError:
    return AmqpError(Condition.NOT_ALLOWED, reason, Scope.LINK)
