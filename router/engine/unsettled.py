"""The unsettled deliveries of one direction of a session, found by delivery-id.

Delivery-ids are handed out in order, so the recent ones sit in a ring indexed by id: adding,
finding and removing cost an index each. A receiver that keeps one delivery for hours while it
settles millions of others would make the ring as long as that span, so what falls more than
`RING_LIMIT` behind the newest moves into a dictionary. Memory follows what is unsettled, not ids.
"""

from __future__ import annotations

from typing import Any

from router.engine import serial
from router.engine.delivery import Delivery
from router.engine.link import Link

RING_START = 64
RING_LIMIT = 65536
# A ring of this span or more with fewer deliveries than one in so many is emptied when walked.
THIN_SPAN = 64
THIN_SHARE = 8
# A ring that is longer than this is not walked for each of its links.
NOTED_SPAN = 1024


class Unsettled:
    """A map from delivery-id to delivery, made for ids that only grow (modulo 2**32)."""

    def __init__(self) -> None:
        self.ring: list[Delivery | None] = [None] * RING_START
        self.mask = RING_START - 1
        # ids in [base, base + span) may be in the ring
        self.base = 0
        self.span = 0
        self.count = 0
        self.stragglers: dict[int, Delivery] = {}
        # what was unsettled of each link when that was noted, how much that was, and the id up to
        # which it was noted; None as a rule
        self._by_link: dict[Any, list[Delivery]] | None = None
        self._noted = 0
        self._noted_to = 0

    def add(self, number: int, delivery: Delivery) -> None:
        """Remember `delivery` under an id ahead of all others."""
        if self.count == 0:
            self.base = number
            self.span = 0
            self._by_link = None
        # Ids may pass unused, and so many that the new one seems to lie behind: ahead it is.
        ahead = serial.ahead(self.base, number)
        if ahead > self.mask:
            self._make_room(number)
            ahead = serial.ahead(self.base, number)
        self.ring[number & self.mask] = delivery
        self.span = ahead + 1
        self.count += 1

    def find(self, number: int) -> Delivery | None:
        """The delivery with this id, or None."""
        ahead = serial.distance(self.base, number)
        if 0 <= ahead < self.span:
            return self.ring[number & self.mask]
        if self.stragglers:
            return self.stragglers.get(number)
        return None

    def replace(self, number: int, delivery: Delivery) -> None:
        """Have the newest id, that of another delivery until now, stand for this one."""
        self.ring[number & self.mask] = delivery
        self._by_link = None

    def remove(self, number: int) -> Delivery | None:
        """Take the delivery with this id out, or None."""
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
        """The ids from first to last that have left the ring, in no order."""
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
        """How many ids of the ring lie from first to last, settled or not, however wide that is.

        They begin at `start_from(first)`.
        """
        start = serial.distance(self.base, first)
        end = min(self.span - 1, start + serial.distance(first, last))
        start = max(0, start)
        return end - start + 1 if end >= start else 0

    def start_from(self, first: int) -> int:
        """The first id that may be in the ring, of those from `first` on."""
        return self.base if serial.distance(first, self.base) > 0 else first

    def cost_between(self, first: int, last: int) -> int:
        """How many ids are looked at where a disposition names those from first to last."""
        width = serial.distance(first, last) + 1
        return self.count_between(first, last) + min(width, len(self.stragglers))

    def thin(self) -> None:
        """Empty a ring that holds little: its few deliveries become stragglers.

        Walking over settled ids costs time: a peer that keeps one delivery and settles thousands
        after it must not have them walked for each of its dispositions.
        """
        if self.span < THIN_SPAN or self.count * THIN_SHARE > self.span:
            return
        self._by_link = None
        for ahead in range(self.span):
            number = serial.add(self.base, ahead)
            delivery = self.ring[number & self.mask]
            if delivery is not None:
                self.stragglers[number] = delivery
                self.ring[number & self.mask] = None
        self.base = serial.add(self.base, self.span)
        self.span = 0

    def of_link(self, link: Link) -> list[Delivery]:
        """Return the deliveries that came in or go out by one link, oldest first.

        None is removed. Thousands of links of a session may be lost one after the other, so that a
        long ring is not walked for each of them: what each link has is noted at the first walk.
        """
        if self.count == 0:
            self._by_link = None
            return []
        if self.span + len(self.stragglers) <= NOTED_SPAN:
            found = [
                d for d in self.stragglers.values() if d.incoming is link or d.outgoing is link
            ]
            found.extend(self._walked(link, self.base))
            return found
        newer = serial.distance(self._noted_to, serial.add(self.base, self.span))
        if self._by_link is None or newer > self._noted + NOTED_SPAN:
            self._note_links()
        by_link: dict[Link, list[Delivery]] = self._by_link or {}
        found = [each for each in by_link.get(link, ()) if self._has(each, link)]
        found.extend(self._walked(link, self._noted_to))
        return found

    def _walked(self, link: Link, start: int) -> list[Delivery]:
        """The deliveries of a link in the ring whose ids are not before `start`."""
        found = []
        ahead = max(0, serial.distance(self.base, start))
        while ahead < self.span:
            delivery = self.ring[serial.add(self.base, ahead) & self.mask]
            if delivery is not None and (delivery.incoming is link or delivery.outgoing is link):
                found.append(delivery)
            ahead += 1
        return found

    def _note_links(self) -> None:
        """Note which deliveries there are by now of each link."""
        by_link: dict[Any, list[Delivery]] = {}
        self._by_link = by_link
        self._noted = 0
        self._noted_to = serial.add(self.base, self.span)
        for delivery in self.stragglers.values():
            self._note(by_link, delivery)
        for ahead in range(self.span):
            found = self.ring[serial.add(self.base, ahead) & self.mask]
            if found is not None:
                self._note(by_link, found)

    def _note(self, by_link: dict[Any, list[Delivery]], delivery: Delivery) -> None:
        self._noted += 1
        # the map of one direction does not know which it is
        for link in (delivery.incoming, delivery.outgoing):
            if link is not None:
                by_link.setdefault(link, []).append(delivery)

    def _has(self, delivery: Delivery, link: Link) -> bool:
        """Whether a delivery that was noted as a link's still is, and is still unsettled."""
        if delivery.incoming is link:
            return self.find(delivery.incoming_id) is delivery
        return delivery.outgoing is link and self.find(delivery.outgoing_id) is delivery

    def _make_room(self, number: int) -> None:
        """Advance the base past settled ids; then grow the ring, or move the oldest out of it."""
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
                self._by_link = None
                self.stragglers[self.base] = oldest
                self.ring[self.base & self.mask] = None
            if self.span:
                self.base = serial.add(self.base, 1)
                self.span -= 1
            else:
                self.base = number
        ring: list[Delivery | None] = [None] * size
        for ahead in range(self.span):
            moved = serial.add(self.base, ahead)
            ring[moved & (size - 1)] = self.ring[moved & self.mask]
        self.ring = ring
        self.mask = size - 1
