"""Timer wheel that finds expired deliveries without examining all others (section 3.2.1).

Deadlines are put into slots of a sixteenth of a second, and those farther ahead into longer slots,
whose contents move to shorter ones when their time comes. So entering and leaving take the same
time however many deliveries wait, and there are never more than about twelve thousand slots
(docs/decisions/0096-taking-from-the-middle.md).
"""

from __future__ import annotations

import heapq

from router.engine.delivery import Delivery

TICKS_A_SECOND = 16
# The length of a slot in seconds, and so how late an expiry may be noticed.
TICK_S = 1 / 16
# Deadlines less than NEAR_AHEAD ticks ahead get slots of one tick, those less than MIDDLE_AHEAD get
# slots of MIDDLE_TICKS, and later ones FAR_TICKS. No slot is farther ahead than FAR_AHEAD.
NEAR_AHEAD = 1024
MIDDLE_TICKS = 64
MIDDLE_AHEAD = 65536
FAR_TICKS = 4096
FAR_AHEAD = 1 << 25
# How many slots are examined in one turn; very many of them may be empty.
MOST_AT_ONCE = 256
# A slot's number is the tick where it begins, times this, plus its level.
SLOT_LEVELS = 4


class Deadlines:
    """Timer wheel of deliveries, by their deadlines.

    `next` is when `take_due` has to be called next; 0 if there are no deliveries.
    """

    def __init__(self) -> None:
        self.next = 0.0
        self.count = 0
        # the contents of each slot, by its number; slots stay until their time, empty or not
        self._slots: dict[int, dict[Delivery, None]] = {}
        # when to examine a slot, and its number; the earliest entry of a slot counts
        self._order: list[tuple[float, int]] = []
        # when each slot is examined
        self._checks: dict[int, float] = {}

    def enter(self, delivery: Delivery, now: float, after: float = 0.0) -> None:
        """Add a delivery, to be found at its deadline, or at `after` if that is later."""
        ticks = int(delivery.deadline * TICKS_A_SECOND)
        ahead = ticks - int(now * TICKS_A_SECOND)
        if ahead < NEAR_AHEAD:
            number = ticks * SLOT_LEVELS
            check_at = max(delivery.deadline, after)
        else:
            level = 1 if ahead < MIDDLE_AHEAD else 2
            width = MIDDLE_TICKS if level == 1 else FAR_TICKS
            begin = (ticks - max(0, ahead - FAR_AHEAD)) // width * width
            number = begin * SLOT_LEVELS + level
            check_at = begin / TICKS_A_SECOND
        slot = self._slots.get(number)
        if slot is None:
            slot = self._slots[number] = {}
        if number not in self._checks or check_at < self._checks[number]:
            self._checks[number] = check_at
            heapq.heappush(self._order, (check_at, number))
        slot[delivery] = None
        # 0 means that a delivery is in no slot
        delivery.slot = number + 1
        self.count += 1
        if self.next == 0 or check_at < self.next:
            self.next = check_at

    def leave(self, delivery: Delivery) -> None:
        """Remove a delivery from its slot, if it is in one."""
        if delivery.slot == 0:
            return
        slot = self._slots.get(delivery.slot - 1)
        if slot is not None:
            slot.pop(delivery, None)
        delivery.slot = 0
        self._left()

    def take_due(self, now: float) -> list[tuple[int, dict[Delivery, None]]]:
        """Remove the slots whose time has come; return their numbers and contents.

        The caller passes each delivery of a slot to `is_due`, now or in a later turn.
        """
        due: list[tuple[int, dict[Delivery, None]]] = []
        for _ in range(MOST_AT_ONCE):
            if not self._order or self._order[0][0] > now:
                break
            check_at, number = heapq.heappop(self._order)
            if self._checks.get(number) == check_at:
                del self._checks[number]
                slot = self._slots.pop(number)
                if slot:
                    due.append((number, slot))
        self.next = self._order[0][0] if self._order and self.count else 0.0
        return due

    def is_due(self, delivery: Delivery, number: int, now: float) -> bool:
        """Return whether a delivery of the slot with this number has expired.

        If its deadline has not come yet, the delivery is entered into another slot.
        """
        if delivery.slot != number + 1:
            # the delivery has left meanwhile
            return False
        delivery.slot = 0
        self._left()
        if delivery.deadline <= now:
            return True
        # deliveries of a short slot are examined twice at most, wherever in it they expire
        self.enter(delivery, now, (int(now * TICKS_A_SECOND) + 1) / TICKS_A_SECOND)
        return False

    def _left(self) -> None:
        self.count -= 1
        if self.count == 0:
            self.next = 0.0
