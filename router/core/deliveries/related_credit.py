"""Share credit among senders to addresses with an exchange or a fallback.

Their messages may go to other addresses, so their credit depends on the receivers there. If there
are very many such addresses, the last ones are examined in later turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from router.core.addresses.related import (
    each_receiving_address,
    feeding_addresses,
    held_credit,
    producers,
    remove_empty_ties,
    served_by,
    ties_of,
)
from router.core.deliveries import credit
from router.core.model.address import Address, Consumer

if TYPE_CHECKING:
    from router.core.ports import Core

# How many addresses and senders are examined in the turn of a change, and in each step of later
# turns.
AT_ONCE = 512
A_STEP = 32


def finish(forwarder: Core, addresses: Iterable[Address]) -> None:
    """Serve the receivers of addresses that have changed, and share credit among the senders.

    Call it at the end of a turn.
    """
    addresses = list(addresses)
    for address in addresses:
        if address.waiting:
            # the messages may have been moved here from another address
            _serve(forwarder, address)
    replenish(forwarder, addresses)


def _serve(forwarder: Core, address: Address) -> None:
    """Send waiting messages to an address's receivers; very many are served in later turns."""
    consumers = list(address.consumers)
    if len(consumers) <= AT_ONCE:
        for consumer in consumers:
            forwarder.queues.serve(consumer)
        return
    ties = ties_of(address)
    if ties.is_serving:
        return
    ties.is_serving = True

    def serve(consumer: Consumer) -> None:
        if address.waiting.count and consumer.link.owner is consumer:
            forwarder.queues.serve(consumer)

    def over() -> None:
        ties.is_serving = False

    forwarder.turn.deferred.process_each(consumers, serve, over, AT_ONCE)


def replenish(forwarder: Core, addresses: Iterable[Address]) -> bool:
    """Share the receivers' credit at some addresses among all senders whose messages go there.

    Return whether a part of this is left for later turns.
    """
    is_put_off = False
    for source in {id(each): each for one in addresses for each in feeding_addresses(one)}.values():
        if source.producers:
            is_put_off |= _share(forwarder, source)
    return is_put_off


def _share(forwarder: Core, address: Address) -> bool:
    """Share credit among the senders to one address; return whether a part of this is deferred."""
    ties = ties_of(address)
    if ties.sharing is not None:
        ties.sharing.is_outdated = True
        return True
    sharing = _Sharing(address)

    def put_off() -> None:
        ties.sharing = sharing

    forwarder.turn.deferred.start(sharing, AT_ONCE // A_STEP, put_off)
    return ties.sharing is not None


class _Sharing:
    """Task that shares credit among an address's senders, whose messages go to other addresses.

    A message that is sent between two steps uses up one credit of its sender and one of its
    receiver, so the sums computed in earlier steps stay valid.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        # whether one of the addresses has changed since the task began
        self.is_outdated = False
        self._steps = self._shared()

    def step(self) -> bool:
        """Examine a few addresses; return whether any work is left."""
        if sum(1 for _ in islice(self._steps, A_STEP)) == A_STEP:
            return True
        ties = ties_of(self._address)
        if self.is_outdated and self._address.producers:
            self.is_outdated = False
            self._steps = self._shared()
            return True
        ties.sharing = None
        remove_empty_ties(self._address)
        return False

    def _shared(self) -> Iterator[object]:
        address = self._address
        is_any = False
        room = left = share = 0
        for place in each_receiving_address(address):
            if place is not None:
                backing = credit.receiver_room(place)
                holding = held_credit(place)
                part = backing // max(1, len(producers(place)))
                if not is_any:
                    is_any = True
                    room, left, share = backing, backing - holding, part
                room, left, share = (
                    min(room, backing),
                    min(left, backing - holding),
                    min(share, part),
                )
            yield None
        share = max(1, share)
        for count, producer in enumerate(list(address.producers)):
            if count:
                yield None
            if producer.place < 0:
                # the producer has left
                continue
            if not is_any:
                credit.take_back(producer)
            elif producer.is_fallback and served_by(address) is not address:
                credit.drain_sender(producer)
            else:
                left -= credit.offer(producer, share, room, left)
