"""Attackers that were let in as a router: they never stop to change what they advertise."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from router.amqp.performatives import Open
from router.amqp.types import Symbol, ULong
from router.control.edge.messages import Beat, Routes, UplinkUse, Watch, encode_message
from router.control.network.codec import encode_control
from router.control.network.digests import table_digest
from router.control.network.messages import (
    REMOVED,
    Aged,
    Hello,
    LinkState,
    LinkStateUpdate,
    Message,
    MobileUpdate,
)
from router.core.model.address import BALANCED

from support.raw_edges import RawEdge
from support.raw_routers import ControlLink, RawRouter

NAME: Final = "hostile"
HELLO_INTERVAL_S: Final = 0.5
# Addresses, routes or routers in a message.
AT_ONCE: Final = 30


def change_addresses(_: str, instance: int) -> Iterator[Message]:
    """Advertise addresses of the hostile router, withdraw them, and so on."""
    keys = tuple(f"M0{NAME}/{number}" for number in range(AT_ONCE))
    digest = table_digest((key, BALANCED) for key in keys)
    for seq in itertools.count(1):
        terms, after = (BALANCED, digest) if seq % 2 else (REMOVED, 0)
        yield MobileUpdate(NAME, instance, seq - 1, seq, after, keys, bytes((terms,)) * AT_ONCE)


def change_costs(neighbour: str, instance: int) -> Iterator[Message]:
    """Advertise routers behind the hostile one, at other costs each time."""
    names = tuple(f"{NAME}-{number}" for number in range(AT_ONCE))
    for seq in itertools.count(2):
        costs = {name: 1 + (seq + place) % AT_ONCE for place, name in enumerate(names)}
        states = [LinkState(NAME, instance, seq, {neighbour: 1, **costs})]
        states += [LinkState(name, instance, seq, {NAME: cost}) for name, cost in costs.items()]
        yield LinkStateUpdate(tuple(Aged(state, 0) for state in states))


ROUTER_MESSAGES: Final[dict[str, Callable[[str, int], Iterator[Message]]]] = {
    "addresses of a router": change_addresses,
    "link states of a router": change_costs,
}


def send_as_router(host: str, port: int, kind: str) -> Iterator[int]:
    """Send messages of a kind as an interior router, without an end; yield how many."""
    instance = time.time_ns()
    with RawRouter(port, NAME, host=host, instance=ULong(instance)) as peer:
        opened = peer.hear_until(Open)
        neighbour = str(opened.container_id)
        heard = int(opened.properties[Symbol("trioute.instance")])
        hello = encode_control(Hello(NAME, instance, heard, 1))
        link = ControlLink(peer)
        link.send(hello)
        link.send(
            encode_control(
                LinkStateUpdate((Aged(LinkState(NAME, instance, 1, {neighbour: 1}), 0),))
            )
        )
        hello_due = time.monotonic() + HELLO_INTERVAL_S
        for message in ROUTER_MESSAGES[kind](neighbour, instance):
            if time.monotonic() >= hello_due:
                hello_due = time.monotonic() + HELLO_INTERVAL_S
                link.send(hello)
            link.send(encode_control(message))
            yield 1


def send_as_edge(host: str, port: int, kind: type[Watch | Routes], prefix: str) -> Iterator[int]:
    """Add keys and remove them as an edge, without an end; yield how many messages."""
    keys = tuple(f"{prefix}{NAME}/{number}" for number in range(AT_ONCE))
    with RawEdge(port, NAME, time.time_ns(), host=host) as peer:
        link = ControlLink(peer)
        link.send(encode_message(Beat(1, 2**32 - 1)))
        link.send(encode_message(UplinkUse(True)))
        while True:
            link.send(encode_message(kind(keys, ())))
            link.send(encode_message(kind((), keys)))
            yield 2


OPEN: Final[dict[str, Callable[[str, int], Iterator[int]]]] = {
    **{kind: partial(send_as_router, kind=kind) for kind in ROUTER_MESSAGES},
    "addresses of an edge": partial(send_as_edge, kind=Watch, prefix="M0"),
    "link routes of an edge": partial(send_as_edge, kind=Routes, prefix="C"),
}
"""Attacks by a router: called with a host and a port, and then advanced again and again."""
