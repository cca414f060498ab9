"""The credit of senders whose messages may go to other addresses than the one that they send to.

It comes from those who receive there. None of this runs for addresses that have no ties.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from router.core import credit
from router.core.address import MESH, Address, Producer
from router.core.ties import held, places, producers, served_by, sources


def finish(forwarder: Any, addresses: Iterable[Address]) -> None:
    """At the end of a turn, see to some addresses that something has happened to."""
    addresses = list(addresses)
    for address in addresses:
        if address.waiting:
            # it may have come from elsewhere, where it was for nobody in particular
            for consumer in list(address.consumers):
                forwarder.serve(consumer)
    replenish(addresses)


def replenish(addresses: Iterable[Address]) -> None:
    """Share what receivers of some addresses can take, as `credit.replenish` does of one alone."""
    for source in {id(each): each for one in addresses for each in sources(one)}.values():
        _share(source)


def _share(address: Address) -> None:
    if not address.producers:
        # there may be very many places
        return
    found = places(address)
    if not found:
        for producer in address.producers:
            _take_back(producer)
        return
    backed = [(credit.backing(place), held(place), len(producers(place))) for place in found]
    room = min(backing for backing, _, _ in backed)
    left = min(backing - holding for backing, holding, _ in backed)
    share = max(1, min(backing // max(1, count) for backing, _, count in backed))
    for producer in address.producers:
        if producer.is_fallback and served_by(address) is not address:
            credit.take_back(producer)
        else:
            left -= credit.offer(producer, share, room, left)


def _take_back(producer: Producer) -> None:
    """Have a sender give its credit back; another router, which has nothing of its own, stops."""
    if producer.side == MESH:
        producer.low_mark = -1
        credit.stop(producer.link)
    else:
        credit.take_back(producer)
