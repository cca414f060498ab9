"""Unsettled deliveries of one direction of a session, by delivery-id.

Delivery-ids are assigned in order, so the recent ones are in a ring indexed by id: adding, finding
or removing a delivery takes one index operation. A receiver that keeps one delivery for hours while
it settles millions of others would make the ring as long as that span. So a delivery more than
`RING_LIMIT` ids behind the newest moves into a dictionary, as a straggler. Memory depends on the
number of unsettled deliveries, not on the span of ids.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from router.engine import serial
from router.engine.delivery import Delivery
from router.engine.link import Link

RING_START = 64
RING_LIMIT = 65536
# A ring of at least this span is emptied after a walk if at most one id in this many is unsettled.
THIN_SPAN = 64
THIN_SHARE = 8
# A ring that is longer than this is not walked for each of its links.
NOTED_SPAN = 1024
# How many deliveries of other links a search examines for each None that it yields. With 65,536
# links, each takes a third of a microsecond, and one round may take 2,048 Nones (`STEPS_A_ROUND`).
NOTED_AT_ONCE = 8


class Unsettled:
    """Map from delivery-id to unsettled delivery, for ids that only grow (modulo 2**32).

    Recent deliveries are in a ring that is indexed by id, older ones in the dictionary
    `stragglers`.
    """

    def __init__(self) -> None:
        self.ring: list[Delivery | None] = [None] * RING_START
        self.mask = RING_START - 1
        # ids in [base, base + span) may be in the ring
        self.base = 0
        self.span = 0
        self.count = 0
        self.stragglers: dict[int, Delivery] = {}
        # the notes: the ids of each link's deliveries, usually None (`of_link`). All ids before
        # `_noted_to` are noted except those in `_unnoted`, which have left the ring. The keys are
        # `id(link)`, to keep no link alive. If a new link has an old key, it finds ids of another
        # link, which the reader ignores.
        self._by_link: dict[int, list[int]] | None = None
        self._noted = 0
        self._noted_to = 0
        self._unnoted: deque[int] = deque()
        # how many ids have ever been removed from `_unnoted`
        self._taken = 0

    def add(self, number: int, delivery: Delivery) -> None:
        """Add a delivery; its id must be ahead of all ids in the map."""
        if self.count == 0:
            self.base = number
            self.span = 0
            self._by_link = None
        # If very many ids are skipped, the new one seems to lie behind the others, but it is ahead.
        ahead = serial.ahead(self.base, number)
        if ahead > self.mask:
            self._make_room(number)
            ahead = serial.ahead(self.base, number)
        self.ring[number & self.mask] = delivery
        self.span = ahead + 1
        self.count += 1

    def find(self, number: int) -> Delivery | None:
        """Return the delivery with this id, or None."""
        ahead = serial.distance(self.base, number)
        if 0 <= ahead < self.span:
            return self.ring[number & self.mask]
        if self.stragglers:
            return self.stragglers.get(number)
        return None

    def replace(self, number: int, delivery: Delivery) -> None:
        """Replace the newest delivery, which has the id `number`, with another one."""
        self.ring[number & self.mask] = delivery
        if self._by_link is not None and serial.distance(number, self._noted_to) > 0:
            # the id also stays in the notes of the old delivery's link, which does no harm
            self._noted_to = number

    def remove(self, number: int) -> Delivery | None:
        """Remove and return the delivery with this id; return None if there is none."""
        ahead = serial.distance(self.base, number)
        if 0 <= ahead < self.span:
            delivery = self.ring[number & self.mask]
            if delivery is not None:
                self.ring[number & self.mask] = None
                self.count -= 1
                if ahead == 0:
                    # The common case settles the oldest; the base follows it.
                    self.base = serial.add(self.base, 1)
                    self.span -= 1
            return delivery
        if self.stragglers:
            delivery = self.stragglers.pop(number, None)
            if delivery is not None:
                self.count -= 1
            return delivery
        return None

    def stragglers_between(self, first: int, last: int) -> list[int]:
        """Return the ids from `first` to `last` that are in `stragglers`, in any order."""
        width = serial.distance(first, last) + 1
        if width <= len(self.stragglers):
            ids = [serial.add(first, step) for step in range(width)]
            return [number for number in ids if number in self.stragglers]
        return [
            number
            for number in self.stragglers
            if serial.distance(first, number) >= 0 and serial.distance(number, last) >= 0
        ]

    def count_between(self, first: int, last: int) -> int:
        """Return how many ids from `first` to `last` the ring spans, including settled ones.

        The counted ids are consecutive and begin at `start_from(first)`.
        """
        start = serial.distance(self.base, first)
        end = min(self.span - 1, start + serial.distance(first, last))
        start = max(0, start)
        return end - start + 1 if end >= start else 0

    def start_from(self, first: int) -> int:
        """Return `first`, or the lowest id of the ring if that is ahead of `first`."""
        return self.base if serial.distance(first, self.base) > 0 else first

    def cost_between(self, first: int, last: int) -> int:
        """Return how many ids have to be examined for a disposition from `first` to `last`."""
        width = serial.distance(first, last) + 1
        return self.count_between(first, last) + min(width, len(self.stragglers))

    def thin(self) -> None:
        """Move all deliveries from the ring to `stragglers` if most ids in a wide ring are settled.

        Otherwise each disposition for a wide range would go through thousands of settled ids.
        """
        if self.span < THIN_SPAN or self.count * THIN_SHARE > self.span:
            return
        for ahead in range(self.span):
            number = serial.add(self.base, ahead)
            delivery = self.ring[number & self.mask]
            if delivery is not None:
                self._to_stragglers(number, delivery)
        self.base = serial.add(self.base, self.span)
        self.span = 0

    def of_link(self, link: Link) -> list[Delivery]:
        """Return the unsettled deliveries that were received or sent on one link, oldest first.

        The deliveries are not removed. If many ids are in use, the first call lists the deliveries
        of every link. So later calls need no search, even if thousands of links are lost together.
        """
        if self.count == 0:
            self._by_link = None
            return []
        if self.span + len(self.stragglers) <= NOTED_SPAN:
            found = [
                d for d in self.stragglers.values() if d.incoming is link or d.outgoing is link
            ]
            found.extend(self._walked(link))
            return found
        self._begin_to_note()
        end, last = serial.add(self.base, self.span), self._taken + len(self._unnoted)
        while self._note_some(end, last):
            pass
        by_link: dict[int, list[int]] = self._by_link or {}
        found = []
        for number in by_link.get(id(link), ()):
            delivery = self.find(number)
            if delivery is not None and (delivery.incoming is link or delivery.outgoing is link):
                found.append(delivery)
        return found

    def search(self, link: Link) -> Iterator[Delivery | None]:
        """Yield the unsettled deliveries of a link, oldest first.

        Also yields None now and then while it searches among other links' deliveries, so that the
        search can continue in later turns. Deliveries that are added during the search, or settled
        before they are reached, are not yielded.
        """
        if self.span + len(self.stragglers) <= NOTED_SPAN:
            yield from self.of_link(link)
            return
        notes: dict[int, list[int]] | None = None
        end = last = 0
        while True:
            if notes is None or self._by_link is not notes:
                self._begin_to_note()
                notes = self._by_link
                # up to the newest one now, so that the search ends even if others are added
                # meanwhile
                end, last = serial.add(self.base, self.span), self._taken + len(self._unnoted)
            if not self._note_some(end, last):
                break
            yield None
        numbers = (self._by_link or {}).get(id(link), [])
        left = []
        for number in numbers:
            delivery = self.find(number)
            if delivery is None or (
                delivery.incoming is not link and delivery.outgoing is not link
            ):
                yield None
                continue
            yield delivery
            if self.find(number) is delivery:
                left.append(number)
        numbers[:] = left

    def links_changed(self) -> None:
        """Discard the lists of each link's deliveries, because deliveries have changed links."""
        self._by_link = None

    def _walked(self, link: Link) -> list[Delivery]:
        """Search the ring, and return the deliveries of a link that are in it."""
        found = []
        for ahead in range(self.span):
            delivery = self.ring[serial.add(self.base, ahead) & self.mask]
            if delivery is not None and (delivery.incoming is link or delivery.outgoing is link):
                found.append(delivery)
        return found

    def _begin_to_note(self) -> None:
        """Start new lists of each link's deliveries if there are none, or if they are outdated."""
        newer = serial.distance(self._noted_to, serial.add(self.base, self.span))
        if (
            self._by_link is None
            or newer < 0
            or newer > self.span + NOTED_SPAN
            or self._noted > 2 * self.count + NOTED_SPAN
        ):
            self._by_link = {}
            self._noted = 0
            self._noted_to = self.base
            self._unnoted = deque(self.stragglers)

    def _note_some(self, end: int, last: int) -> bool:
        """Add the next few deliveries to the lists of their links; return whether more are left.

        Until `_taken` reaches `last`, the entries of the queue `_unnoted` are added whatever their
        ids. After that, only deliveries with ids before `end` are added.
        """
        by_link: dict[int, list[int]] = self._by_link or {}
        self._by_link = by_link
        left = NOTED_AT_ONCE
        while self._unnoted:
            number = self._unnoted[0]
            if self._taken >= last and serial.distance(number, end) <= 0:
                break
            if left == 0:
                return True
            left -= 1
            self._taken += 1
            self._unnoted.popleft()
            straggler = self.stragglers.get(number)
            if straggler is not None:
                self._note(by_link, number, straggler)
        ahead = max(0, serial.distance(self.base, self._noted_to))
        span = min(self.span, serial.distance(self.base, end))
        while ahead < span and left:
            number = serial.add(self.base, ahead)
            delivery = self.ring[number & self.mask]
            if delivery is not None:
                self._note(by_link, number, delivery)
            left -= 1
            ahead += 1
            self._noted_to = serial.add(number, 1)
        return ahead < span

    def _note(self, by_link: dict[int, list[int]], number: int, delivery: Delivery) -> None:
        self._noted += 1
        # one of the two is this session's link, but which depends on the direction of this map
        for link in (delivery.incoming, delivery.outgoing):
            if link is not None:
                by_link.setdefault(id(link), []).append(number)

    def _to_stragglers(self, number: int, delivery: Delivery) -> None:
        """Move the oldest delivery in the ring, which has the id `number`, to `stragglers`."""
        self.stragglers[number] = delivery
        self.ring[number & self.mask] = None
        if self._by_link is not None and serial.distance(self._noted_to, number) >= 0:
            self._noted_to = serial.add(number, 1)
            self._unnoted.append(number)
            if len(self._unnoted) > 2 * self.count + NOTED_SPAN:
                # the notes are not used any more; most of these are settled
                self._by_link = None

    def _make_room(self, number: int) -> None:
        """Make room in the ring for an id: skip settled ids, grow, or move old deliveries out."""
        while self.span and self.ring[self.base & self.mask] is None:
            self.base = serial.add(self.base, 1)
            self.span -= 1
        if self.span == 0:
            self.base = number
        if serial.ahead(self.base, number) <= self.mask:
            return
        size = self.mask + 1
        while size <= serial.ahead(self.base, number) and size < RING_LIMIT:
            size *= 2
        while serial.ahead(self.base, number) >= size:
            oldest = self.ring[self.base & self.mask] if self.span else None
            if oldest is not None:
                self._to_stragglers(self.base, oldest)
            if self.span:
                self.base = serial.add(self.base, 1)
                self.span -= 1
            else:
                self.base = number
        if size == self.mask + 1:
            # moving deliveries out has made room
            return
        ring: list[Delivery | None] = [None] * size
        for ahead in range(self.span):
            moved = serial.add(self.base, ahead)
            ring[moved & (size - 1)] = self.ring[moved & self.mask]
        self.ring = ring
        self.mask = size - 1
