"""What a peer numbers as it likes: sessions by channel, links by handle (sections 2.5.1, 2.6.2).

Every frame names its session and most name a link, so that finding one has to be as cheap as an
index into a list; and a peer may choose the highest number there is, so that a list must not reach
as far as the number says. Peers that count from 0 get the list. Numbers far beyond what is in use
are kept in a dict, which costs memory only for what is there.
"""

from __future__ import annotations

from typing import Any

# The list may always be so long, and twice as long as there are things in use.
NEAR = 32


class Slots:
    """Things by number; None stands for a number that is not in use."""

    def __init__(self) -> None:
        self.near: list[Any] = []
        self.far: dict[int, Any] = {}
        self.count = 0

    def find(self, number: int) -> Any:
        """The thing of this number, or None."""
        if number < len(self.near):
            found = self.near[number]
            if found is not None:
                return found
        return self.far.get(number) if self.far else None

    def put(self, number: int, thing: Any) -> None:
        """Give a number that is not in use to a thing."""
        self.count += 1
        if number >= NEAR and number > 2 * self.count:
            self.far[number] = thing
            return
        while len(self.near) <= number:
            self.near.append(None)
        self.near[number] = thing

    def remove(self, number: int) -> None:
        """Take a number back that is in use."""
        self.count -= 1
        if self.far.pop(number, None) is None:
            self.near[number] = None

    def clear(self) -> None:
        """Take all numbers back."""
        self.near.clear()
        self.far.clear()
        self.count = 0
