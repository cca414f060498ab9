"""Finds the first delivery of a queue that is small enough, without a look at all before it.

A receiver with a max-message-size (section 2.7.3) passes over what is too large for it, and may do
so for each message that it takes. So what waits is divided into blocks, these into larger ones, and
so on, and the least size in each block is noted. Whatever the limits of the receivers are, a search
looks only into blocks that may have something small enough in them.

What is noted is never more than what is true: messages grow as more of them comes in, and leave
their queue without a word, which is seen when a search comes to their block. So nothing has to be
done for them before. One that has left and comes back may be found where it was
(docs/decisions/0097-what-a-receiver-takes.md).
"""

from __future__ import annotations

from typing import Any

from router.engine.delivery import Delivery

# So many entries, or blocks, make a block.
WIDTH = 32
# Of a block in which nothing is left; no message is as large.
NOTHING = 2**64 - 1
# After so many looks a search is put off.
MOST_LOOKS = 2048
# How many entries are made in the time of a look.
ENTRIES_A_LOOK = 8
# So many entries that nothing waits in any more stay in any case.
FEW_STALE = 1024


class BySize:
    """The queues of a `WaitingQueue` in which somebody has searched for what is small enough.

    After a search `looked_at` says how many looks it took, and `is_unfinished` that it has to be
    repeated, because it took too many.
    """

    def __init__(self) -> None:
        self.looked_at = 0
        self.is_unfinished = False
        # by the id of the queue
        self._blocks: dict[int, Blocks] = {}

    def first(self, waiting: Any, queue: Any, limit: int) -> Delivery | None:
        """Return the first delivery of a queue of `waiting` that has no more octets than `limit`.

        None where there is none, or where the search is unfinished.
        """
        blocks = self._blocks.get(id(queue))
        begun = 0
        if blocks is None:
            blocks = self._blocks[id(queue)] = Blocks(queue)
            begun = len(queue) // ENTRIES_A_LOOK
        found = blocks.first(waiting, limit)
        self.looked_at = begun + blocks.looked_at
        self.is_unfinished = blocks.is_unfinished
        return found

    def append(self, count: int, queue: Any, delivery: Delivery) -> None:
        """A delivery has come to wait behind the others of a queue, as one of `count` in all."""
        blocks = self._blocks.get(id(queue))
        if blocks is None:
            return
        if blocks.is_stale(count):
            self.forget(queue)
        else:
            blocks.append(delivery)

    def let_go(self, waiting: Any, queue: Any) -> None:
        """Something has left a queue of `waiting`: keep nothing alive that has left its front."""
        blocks = self._blocks.get(id(queue))
        if blocks is None:
            return
        if queue:
            blocks.let_go(waiting)
        else:
            self.forget(queue)

    def forget(self, queue: Any) -> None:
        """Have the next search in a queue begin anew."""
        del self._blocks[id(queue)]


class Blocks:
    """What waits in one `queue`, in its order, with the least sizes of its blocks."""

    def __init__(self, queue: Any) -> None:
        # kept alive, so that its id stays its own
        self.queue = queue
        self.looked_at = 0
        self.is_unfinished = False
        # None where nothing waits any more
        self._entries: list[Delivery | None] = list(queue)
        # what waits, if anything does, is not in front of this entry
        self._begin = 0
        # the least sizes of blocks of entries, of blocks of these, and so on; nothing is known yet,
        # so any size is possible
        self._levels: list[list[int]] = []
        count = len(self._entries)
        while count > WIDTH or not self._levels:
            count = (count + WIDTH - 1) // WIDTH
            self._levels.append([0] * count)

    def append(self, delivery: Delivery) -> None:
        """Put a delivery behind the others."""
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
        """Return whether most entries are of what waits no more, where so many deliveries wait."""
        return len(self._entries) > 4 * count + FEW_STALE

    def let_go(self, waiting: Any) -> None:
        """Keep nothing alive that has left the front of the queue."""
        entries = self._entries
        while self._begin < len(entries):
            delivery = entries[self._begin]
            if delivery is not None:
                if delivery.waits_in is waiting:
                    break
                entries[self._begin] = None
            self._begin += 1

    def first(self, waiting: Any, limit: int) -> Delivery | None:
        """Return the first delivery that is still in `waiting` and small enough; see `BySize`."""
        self.looked_at = 0
        self.is_unfinished = False
        while self.looked_at < MOST_LOOKS:
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
        """The first block of entries that may have something small enough; -1 where none has, and
        -2 where what is noted had to be mended.
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
            self.looked_at += number - begin + 1
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

    def _in_block(self, waiting: Any, block: int, limit: int) -> Delivery | None:
        """The first delivery of a block of entries that is small enough; without one, what is
        noted of the block is mended.
        """
        entries = self._entries
        begin = block * WIDTH
        end = min(begin + WIDTH, len(entries))
        least = NOTHING
        self.looked_at += WIDTH
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
