"""Audit of a router in memory: at any moment its counters must match what is there.

The router keeps each counter where things happen, so that it never has to walk over everything.
The audit does walk over everything: `check_accounts` after any turn, `check_views` when a peer has
heard all that it was told, and `check_nothing_is_left` when the last peer has gone.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import attrs

from router.core.addresses.table import AddressTable
from router.core.deliveries import redelivery
from router.core.forwarding.forward import Forwarder
from router.core.model.address import MULTICAST
from router.core.model.deadlines import TICK_S
from router.engine import serial
from router.engine.connection import Connection
from router.engine.delivery import Delivery
from router.engine.link import IncomingLink, OutgoingLink
from router.engine.outbox import Turn
from router.engine.session import Session
from router.engine.traffic import Traffic
from router.metrics.address_labels import AddressLabels
from router.metrics.connection_labels import ConnectionLabels
from router.metrics.reading import Reading, take_reading

from support.in_memory import Client, ReceivingLink, Router, SendingLink

AnyLink = SendingLink | ReceivingLink


def session_of(client: Client) -> Session | None:
    """Return the router's end of a client's session, None if there is none."""
    for session in client.connection.local_sessions.values():
        assert isinstance(session, Session)
        return session
    return None


def router_end(link: AnyLink) -> Any:
    """Return the router's end of a link while it is attached, None afterwards."""
    session = session_of(link.client)
    end = None if session is None else session.links.find(link.handle)
    return end if end is not None and end.is_attached() else None


def check_accounts(router: Router) -> None:
    """Check that the router's counters match what it has."""
    _check_what_waits(router)
    kept = 0
    names = 0
    for client in router.clients:
        for session in client.connection.local_sessions.values():
            for unsettled in (session.incoming, session.outgoing):
                assert unsettled.count == len(list(_all_of(unsettled)))
            for link in session.local_links.values():
                is_incoming = isinstance(link, IncomingLink)
                unsettled = session.incoming if is_incoming else session.outgoing
                assert link.unsettled == len(unsettled.of_link(link))
                assert link.credit >= 0
                names += link.owner is not None and bool(client.container)
            for delivery in _all_of(session.outgoing):
                assert delivery.outgoing_open
                if delivery.kept is not None:
                    assert delivery.incoming_open or delivery.suspended is not None
                    assert delivery.outcome == 0, "kept, and yet its outcome is told"
                    kept += len(delivery.kept.octets)
            for delivery in _all_of(session.incoming):
                assert delivery.incoming_open
    core = router.forwarder
    for terminus in _termini(router):
        if isinstance(terminus.link, OutgoingLink):
            for delivery in terminus.unsettled.values():
                assert not delivery.outgoing_open
                kept += 0 if delivery.kept is None else len(delivery.kept.octets)
    assert core.redelivery.kept_bytes == kept
    assert core.redelivery.kept_bytes <= core.redelivery.limit_bytes
    assert len(core.link_names) == names
    assert core.credit.due == []
    assert router.turn.touched == []


def _termini(router: Router) -> list[Any]:
    """Return all termini that may outlive their links, or have."""
    found = list(router.forwarder.suspended._termini.values())
    for client in router.clients:
        for session in _sessions(client):
            found += [
                link.terminus
                for link in session.local_links.values()
                if link.owner is not None and link.terminus is not None
            ]
    return found


def _all_of(unsettled: Any) -> Iterator[Any]:
    yield from unsettled.stragglers.values()
    yield from (each for each in unsettled.ring if each is not None)


def _check_what_waits(router: Router) -> None:
    now = router.turn.now
    core = router.forwarder
    held: Counter[int] = Counter()
    frames: Counter[int] = Counter()
    ahead: Counter[int] = Counter()
    sessions = {id(each): each for client in router.clients for each in _sessions(client)}
    seen = set()
    owned = {
        id(link.owner.address)
        for session in sessions.values()
        for link in session.local_links.values()
        if link.owner is not None
    }
    for address in core.table.addresses():
        assert id(address) in owned or address.waiting, "an address in no use"
        assert address.keeps_octets == redelivery.keeps_messages(address)
        queues = [address.waiting]
        if address.treatment == MULTICAST:
            queues += [consumer.waiting for consumer in address.consumers]
        for delivery in [each for queue in queues for each in queue]:
            assert delivery.outgoing is None
            assert delivery.chunks is not None
            assert not delivery.discarded
            assert delivery.address is address
            assert any(delivery.waits_in is queue for queue in queues)
            if delivery.deadline:
                # those of one slot expire together
                late = delivery.deadline + TICK_S
                assert late > now, "it waits, and has expired"
                assert 0 < core.backlog.deadlines.next <= late
            producer = delivery.incoming.owner
            if producer is not None and producer.address is None and delivery.parent is None:
                ahead[id(producer)] += 1
            seen.add(delivery)
        for producer in address.producers:
            assert producer.address is address
            assert producer.link.owner is producer
        for consumer in address.consumers:
            assert consumer.link.owner is consumer
            if consumer.link.current is not None:
                seen.add(consumer.link.current)
    for session in sessions.values():
        for link in session.local_links.values():
            if isinstance(link, OutgoingLink) and link.owner is not None and link.current:
                seen.add(link.current)
    for delivery in seen:
        octets = sum(len(chunk) for chunk in delivery.chunks or ())
        assert delivery.held_bytes == octets
        session = delivery.incoming.session
        sessions[id(session)] = session
        held[id(session.connection)] += octets
        frames[id(session)] += len(delivery.chunks or ())
    assert core.backlog.held_bytes == sum(held.values()) <= core.backlog.limit_bytes
    assert router.turn.is_pressed == (core.backlog.held_bytes * 2 > core.backlog.limit_bytes)
    for session in sessions.values():
        assert session.window.held_frames == frames[id(session)]
        assert session.connection.held_bytes == held[id(session.connection)]
        for link in session.local_links.values():
            if isinstance(link, IncomingLink) and link.owner is not None:
                assert link.owner.waiting == ahead[id(link.owner)]


def _sessions(client: Client) -> list[Any]:
    return list(client.connection.local_sessions.values())


def check_views(client: Client) -> None:
    """Check that a peer and the router agree on credit and windows while nothing is in flight."""
    session = session_of(client)
    if client.over or not client.reads or session is None:
        return
    window = serial.distance(client.next_incoming_id, client.window_end)
    assert session.remote_incoming_window == window
    assert session.window.size == client.router_window
    for link in client.links:
        end = router_end(link)
        if end is None:
            assert not link.attached, f"{link.name} has gone and nobody was told"
            continue
        assert end.credit == link.credit
        assert end.delivery_count == link.delivery_count
        if isinstance(link, SendingLink):
            open_ones = sum(
                not each.is_over and not each.settled
                for each in client.sent.values()
                if each.link is link
            )
            assert end.unsettled == open_ones
        else:
            assert end.unsettled == len(link.unsettled)
            is_idle = end.current is None and session.remote_incoming_window > 0
            # its senders have a moment to send what they can
            is_idle = is_idle and end.owner not in client.router.forwarder.queues.drains
            is_idle = is_idle and end.owner.resuming is None
            assert not (end.drain and end.credit and is_idle), "a drain without an answer"


# When everybody has gone.


@attrs.frozen
class _Carried:
    connection: Connection
    counters: Any = None


@attrs.frozen
class _Observed:
    """Parts of a router that metrics read, without sockets."""

    table: AddressTable
    forwarder: Forwarder
    pumps: dict[int, _Carried]
    turn: Turn
    connection_counters: tuple[Any, ...] = ()
    buffer: memoryview = attrs.Factory(lambda: memoryview(b""))
    own_pump: None = None
    individually_shown: set[int] = attrs.Factory(set)
    unshown_past: Traffic = attrs.Factory(Traffic)
    auto_links: None = None
    network: None = None
    certificate_expiries: dict[str, float] = attrs.Factory(dict)
    crl_expiries: dict[str, float] = attrs.Factory(dict)


def reading_of(router: Router) -> Reading:
    """Return the reading that the metrics would be made from."""
    pumps = {number: _Carried(client.connection) for number, client in enumerate(router.clients)}
    observed = _Observed(router.table, router.forwarder, pumps, router.turn)
    labels = AddressLabels(router.table, 0)
    return take_reading(observed, labels, ConnectionLabels(observed, 0), 0.0)


_OF_PEERS = (Connection, Session, IncomingLink, OutgoingLink, Delivery)
_NOT_INTO = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, Router, Client)


def check_nothing_is_left(router: Router, links: list[Any] | None = None) -> None:
    """Check that after all peers have left nothing is held and every gauge is at zero.

    `links` are the router's ends of the links that existed.
    """
    core = router.forwarder
    for client in router.clients:
        if not client.over:
            client.close()
        client.connection.end_of_input()
        router.finish_turn()
    # what outlives its link does not for ever
    router.wait(10**6)
    assert len(core.suspended) == 0
    assert core.suspended.next_expiry == 0
    for client in router.clients:
        assert client.connection.held_bytes == 0
        assert not client.connection.held_back
        assert len(client.connection.outbox.output.waiting()) == 0
    for link in links or ():
        assert link.unsettled == 0
        assert link.owner is None
        assert link.current is None
        assert link.session.window.held_frames == 0
        assert link.session.incoming.count == link.session.outgoing.count == 0
    assert len(router.table) == 0
    assert len(core.link_names) == 0
    assert core.backlog.held_bytes == 0
    assert core.redelivery.kept_bytes == 0
    assert not router.turn.is_pressed
    reading = reading_of(router)
    assert reading.waiting == reading.held_bytes == reading.sessions == 0
    assert reading.named_addresses == reading.dynamic_addresses == reading.suspended == 0
    assert {reason for reason, octets in reading.memory.items() if octets} <= {"output"}
    for direction in (reading.incoming, reading.outgoing):
        assert direction.attached == direction.unsettled == direction.blocked == 0
    assert core.backlog.deadlines.next == 0
    assert core.queues.drains == {}
    assert [each for each in reachable(core) if isinstance(each, _OF_PEERS)] == []


def reachable(root: object, *but: type) -> list[object]:
    """Return all objects that `root` leads to, except for types `but` and some others.

    The others are classes, functions and the test's own peers.
    """
    found = {id(root): root}
    following = [root]
    while following:
        for each in gc.get_referents(following.pop()):
            if id(each) not in found and not isinstance(each, (*_NOT_INTO, *but)):
                found[id(each)] = each
                following.append(each)
    return list(found.values())
