"""Tables indexed by numbers that the peer chooses: channels and handles (2.5.1 and 2.6.2).

Every frame names its session and most name a link, so a look-up has to be as cheap as a list index.
But a peer may choose the highest possible number, so a list must not grow that long. Small numbers,
from peers that count from 0, are kept in a list. Numbers far above the count in use are kept in a
dict, which costs memory only for its entries.
"""

from __future__ import annotations

from typing import Any

# The list may always be this long, and otherwise twice as long as the count in use.
NEAR = 32


class Slots:
    """Table of sessions or links by number; None stands for a number that is not in use."""

    def __init__(self) -> None:
        self.near: list[Any] = []
        self.far: dict[int, Any] = {}
        self.count = 0

    def find(self, number: int) -> Any:
        """Return the entry with this number, or None."""
        if number < len(self.near):
            found = self.near[number]
            if found is not None:
                return found
        return self.far.get(number) if self.far else None

    def put(self, number: int, thing: object) -> None:
        """Store an entry under a number that is not in use."""
        self.count += 1
        if number >= NEAR and number > 2 * self.count:
            self.far[number] = thing
            return
        while len(self.near) <= number:
            self.near.append(None)
        self.near[number] = thing

    def remove(self, number: int) -> None:
        """Free a number that is in use."""
        self.count -= 1
        if self.far.pop(number, None) is None:
            self.near[number] = None

    def clear(self) -> None:
        """Free all numbers."""
        self.near.clear()
        self.far.clear()
        self.count = 0
