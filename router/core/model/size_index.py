"""Find the first delivery in a queue that is small enough, without examining all those before it.

A receiver with a max-message-size (section 2.7.3) passes over larger messages, perhaps for each
message that it takes. So the deliveries of a queue are grouped into blocks, these into larger
blocks, and so on, and the smallest size in each block is noted. Whatever the receivers' limits are,
a search enters only blocks that may contain a delivery that is small enough.

A noted size is never greater than the true one. It may be smaller, because messages grow with each
frame, and leave the queue. A search corrects a noted size when it comes to the block, so messages
can grow and leave at no cost. A delivery that has left and comes back may be found at its old place
(docs/decisions/0097-what-a-receiver-takes.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.engine.delivery import Delivery

if TYPE_CHECKING:
    from collections import deque

# The number of entries, or of blocks, in a block.
WIDTH = 32
# The noted size of an empty block; no message is as large.
NOTHING = 2**64 - 1
# The number of deliveries examined after which a search is interrupted.
MOST_EXAMINED = 2048
# How many entries can be made in the time that examining one delivery takes.
ENTRIES_AS_ONE = 8
# The number of stale entries that is always allowed.
FEW_STALE = 1024


class SizeIndex:
    """Set of size indices for those queues of a `WaitingQueue` that were searched by size.

    `examined` is how many deliveries the last search examined. `is_unfinished` is True if these
    were too many, and the search has to be repeated.
    """

    def __init__(self) -> None:
        self.examined = 0
        self.is_unfinished = False
        # by the id of the queue
        self._blocks: dict[int, Blocks] = {}

    def first(self, waiting: object, queue: deque[Delivery], limit: int) -> Delivery | None:
        """Return the first delivery of at most `limit` octets in a queue of `waiting`.

        Return None if there is no such delivery, or if the search is unfinished.
        """
        blocks = self._blocks.get(id(queue))
        begun = 0
        if blocks is None:
            blocks = self._blocks[id(queue)] = Blocks(queue)
            begun = len(queue) // ENTRIES_AS_ONE
        found = blocks.first(waiting, limit)
        self.examined = begun + blocks.examined
        self.is_unfinished = blocks.is_unfinished
        return found

    def append(self, count: int, queue: deque[Delivery], delivery: Delivery) -> None:
        """Add a delivery that was appended to a queue.

        `count` is how many deliveries wait in the whole `WaitingQueue` after that.
        """
        blocks = self._blocks.get(id(queue))
        if blocks is None:
            return
        if blocks.is_stale(count):
            self.forget(queue)
        else:
            blocks.append(delivery)

    def drop_departed(self, waiting: object, queue: deque[Delivery]) -> None:
        """Drop references to deliveries that have left the front of a queue of `waiting`."""
        blocks = self._blocks.get(id(queue))
        if blocks is None:
            return
        if queue:
            blocks.drop_departed(waiting)
        else:
            self.forget(queue)

    def forget(self, queue: deque[Delivery]) -> None:
        """Discard the index of a queue, so that the next search builds it anew."""
        del self._blocks[id(queue)]


class Blocks:
    """Index of one `queue`: its deliveries in order, and the smallest sizes of its blocks."""

    def __init__(self, queue: deque[Delivery]) -> None:
        # kept alive, so that its id is not used again
        self.queue = queue
        self.examined = 0
        self.is_unfinished = False
        # None for deliveries that no longer wait
        self._entries: list[Delivery | None] = list(queue)
        # no delivery waits before this entry
        self._begin = 0
        # the smallest sizes of blocks of entries, of blocks of these, and so on; nothing is known
        # yet, so any size is possible
        self._levels: list[list[int]] = []
        count = len(self._entries)
        while count > WIDTH or not self._levels:
            count = (count + WIDTH - 1) // WIDTH
            self._levels.append([0] * count)

    def append(self, delivery: Delivery) -> None:
        """Append a delivery."""
        at = len(self._entries)
        size = delivery.size
        self._entries.append(delivery)
        level: list[int] = []
        for each in self._levels:
            level = each
            at //= WIDTH
            if at == len(level):
                level.append(size)
            elif size < level[at]:
                level[at] = size
        if len(level) > WIDTH:
            self._levels.append([min(level[:WIDTH]), min(level[WIDTH:])])

    def is_stale(self, count: int) -> bool:
        """Return whether most entries are for deliveries that have left, if `count` still wait."""
        return len(self._entries) > 4 * count + FEW_STALE

    def drop_departed(self, waiting: object) -> None:
        """Drop references to deliveries that have left the front of the queue."""
        entries = self._entries
        while self._begin < len(entries):
            delivery = entries[self._begin]
            if delivery is not None:
                if delivery.waits_in is waiting:
                    break
                entries[self._begin] = None
            self._begin += 1

    def first(self, waiting: object, limit: int) -> Delivery | None:
        """Return the first delivery still in `waiting` that is small enough; see `SizeIndex`."""
        self.examined = 0
        self.is_unfinished = False
        while self.examined < MOST_EXAMINED:
            block = self._block(limit)
            if block == -1:
                return None
            if block >= 0:
                found = self._in_block(waiting, block, limit)
                if found is not None:
                    return found
        self.is_unfinished = True
        return None

    def _block(self, limit: int) -> int:
        """Return the index of the first block that may contain a small enough delivery.

        Return -1 if no block may contain one, and -2 if a noted size had to be corrected.
        """
        begin = 0
        at = len(self._levels) - 1
        end = len(self._levels[at])
        while True:
            level = self._levels[at]
            least = NOTHING
            number = begin
            while number < end:
                size = level[number]
                if size <= limit:
                    break
                least = min(least, size)
                number += 1
            self.examined += number - begin + 1
            if number == end:
                if at == len(self._levels) - 1:
                    return -1
                self._levels[at + 1][begin // WIDTH] = least
                return -2
            if at == 0:
                return number
            at -= 1
            begin = number * WIDTH
            end = min(begin + WIDTH, len(self._levels[at]))

    def _in_block(self, waiting: object, block: int, limit: int) -> Delivery | None:
        """Return the first delivery of a block that is small enough.

        If there is none, correct the noted size of the block and return None.
        """
        entries = self._entries
        begin = block * WIDTH
        end = min(begin + WIDTH, len(entries))
        least = NOTHING
        self.examined += WIDTH
        for at in range(begin, end):
            delivery = entries[at]
            if delivery is None:
                continue
            if delivery.waits_in is not waiting:
                entries[at] = None
                continue
            if delivery.size <= limit:
                return delivery
            least = min(least, delivery.size)
        self._levels[0][block] = least
        return None
