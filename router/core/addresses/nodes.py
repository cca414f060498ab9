"""Dynamic nodes: addresses made for one link, and their lifetimes (sections 3.5.9 to 3.5.13).

A node is a queue, or a topic if the peer asks for one, as JMS clients do for temporary topics. Each
receiver of a topic gets a copy of every message. A node exists at least until the link that it was
made for has ended. Then it is deleted, unless the peer asked to keep it while it has links or
messages. Links that still use a deleted node are detached with an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

from router.amqp.constants import Condition
from router.amqp.performatives import (
    DeleteOnClose,
    DeleteOnNoLinks,
    DeleteOnNoLinksOrMessages,
    DeleteOnNoMessages,
)
from router.amqp.types import Symbol
from router.core.addresses import node_names, tenants
from router.core.addresses.sources import COPY, MOVE
from router.core.model.address import BALANCED, MULTICAST, Address, Consumer, Producer
from router.engine import attaching
from router.engine.account import NODE_BYTES, NODES
from router.engine.link import Link, OutgoingLink
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.amqp.performatives import Source, Target
    from router.amqp.types import DecodedMap
    from router.core.ports import Core

LIFETIME_POLICY = Symbol("lifetime-policy")
DIST_MODES = Symbol("supported-dist-modes")
# Capabilities that ask for a node where each receiver gets a copy.
TOPICS = (Symbol("topic"), Symbol("temporary-topic"))
# Nodes examined in each turn: a peer may leave thousands of nodes with a message each.
MOST_EXAMINED = 16
# How many links are examined in the turn in which a node is deleted; a detach counts as examining
# WORK_OF_A_DETACH links. The remaining links are detached in later turns.
EXAMINED_AT_ONCE = 1024
WORK_OF_A_DETACH = 8
_LASTING = (DeleteOnNoLinks, DeleteOnNoMessages, DeleteOnNoLinksOrMessages)


def make(forwarder: Core, link: Link, asked: Source | Target) -> tuple[str, Address]:
    """Make a dynamic node for `link`; return its address text for the peer, and the address.

    `asked` is the terminus that asks for the node.
    """
    connection = link.session.connection
    mark = node_names.mark_of(connection, is_receiver=isinstance(link, OutgoingLink))
    text: str
    address: Address
    text, address = forwarder.table.create_dynamic(
        mark,
        *tenants.marks_of(connection),
        connection.remote_open.container_id,
        link.name,
        treatment=MULTICAST if _is_topic(asked) else BALANCED,
    )
    address.creator = link
    forwarder.node_accounts[address.key] = connection.account
    connection.account.charge(NODES, NODE_BYTES)
    policy = (asked.dynamic_node_properties or {}).get(LIFETIME_POLICY)
    address.lifetime = policy if isinstance(policy, _LASTING) else DeleteOnClose()
    return text, address


def properties(asked: Source | Target, address: Address | None) -> DecodedMap | None:
    """Return the dynamic node's properties for the answering attach.

    Return None if the terminus `asked` does not ask for a dynamic node.
    """
    if not asked.dynamic or address is None:
        return None
    modes = COPY if address.treatment == MULTICAST else MOVE
    return {LIFETIME_POLICY: address.lifetime, DIST_MODES: modes}


def granted(asked: Source | Target, address: Address | None) -> tuple[Symbol, ...]:
    """Return those capabilities that a terminus asks for and its dynamic node has."""
    if not asked.dynamic or address is None or address.treatment != MULTICAST:
        return ()
    return tuple(Symbol(each) for each in asked.capabilities if each in TOPICS)


def _is_topic(asked: Source | Target) -> bool:
    modes = (asked.dynamic_node_properties or {}).get(DIST_MODES)
    is_copied = isinstance(modes, Symbol) and modes == COPY
    return is_copied or any(each in TOPICS for each in asked.capabilities)


def link_left(forwarder: Core, address: Address | None, link: Link | None) -> None:
    """Remove an address that has lost a link, unless the address is still used.

    `link` is the link that has ended; it is None if the link is only suspended. A dynamic node may
    also be deleted while other links use it.
    """
    if address is None:
        return
    if address.is_dynamic:
        _node_left(forwarder, address, link)
    forwarder.credit.note(address, None)
    if address.related_addresses is not None and address.related_addresses.primary is not None:
        forwarder.credit.note(address.related_addresses.primary, None)
    forwarder.table.leave(address)


def _node_left(forwarder: Core, address: Address, link: Link | None) -> None:
    if link is not None and address.creator is link:
        address.creator = None
    if address.creator is not None:
        return
    if _is_over(address):
        _delete(forwarder, address)
    elif isinstance(address.lifetime, DeleteOnNoMessages):
        forwarder.dying_nodes.setdefault(address, None)


def delete_empty(forwarder: Core) -> None:
    """Delete dynamic nodes that were kept only for their messages and have none left.

    Call it at the end of a turn. Each call examines a few nodes, in rotation.
    """
    dying = forwarder.dying_nodes
    for address in list(islice(dying, MOST_EXAMINED)):
        holder: Consumer | None = dying.pop(address)
        if not address.is_dynamic:
            continue
        if holder is not None and holder.link.owner is holder and holder.link.unsettled:
            # the other receivers need not be examined
            dying[address] = holder
        elif _is_over(address):
            _delete(forwarder, address)
            forwarder.table.leave(address)
        else:
            dying[address] = _holder(address)


def _is_over(address: Address) -> bool:
    """Return whether to delete a dynamic node, now that the link it was made for has ended."""
    if isinstance(address.lifetime, DeleteOnNoMessages):
        return not _holds_messages(address)
    if isinstance(address.lifetime, _LASTING):
        # without links there can be no receiver that messages wait for
        return not (address.producers or address.consumers or address.resuming)
    return True


def _holds_messages(address: Address) -> bool:
    """Return whether a message waits at a node, or is unsettled at one of its receivers."""
    return address.waiting.count > 0 or _holder(address) is not None


def _holder(address: Address) -> Consumer | None:
    """Return a receiver with an unsettled message from a node, or None if there is none."""
    for consumer in chain(address.consumers, address.resuming):
        if consumer.link.unsettled:
            return consumer
    return None


def _delete(forwarder: Core, address: Address) -> None:
    """Delete a dynamic node and detach its links.

    If the node has very many links, the last ones are detached in later turns.
    """
    account = forwarder.node_accounts.pop(address.key)
    if account is not None:
        account.release(NODES, NODE_BYTES)
    address.is_dynamic = False
    gone = AmqpError(
        Condition.RESOURCE_DELETED, f"the dynamic node {address.name} has been deleted", Scope.LINK
    )
    forwarder.turn.deferred.process_each(
        _links(address), lambda link: attaching.detach(link, True, gone), at_once=EXAMINED_AT_ONCE
    )


def _links(address: Address) -> Iterator[Link | None]:
    """Yield the links of a node that is deleted, in the order in which they are detached.

    Receivers come first, so that the senders of their messages are still attached and get the
    outcomes. Each link is followed by several None, because detaching it takes as much time as
    several steps.
    """
    ends: list[Consumer | Producer] = [*address.consumers, *address.resuming, *address.producers]
    for end in ends:
        yield end.link
        for _ in range(WORK_OF_A_DETACH - 1):
            yield None
