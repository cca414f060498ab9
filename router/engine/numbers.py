"""The numbers that a connection gives its sessions, and a session its links."""

from __future__ import annotations


class Numbers:
    """Numbers from 0 on, some of them in use; the lowest free one is found at once.

    They are bits of an integer: the 65,536 handles of a session take 8 KiB, and finding, using and
    freeing one takes microseconds, whichever are in use.
    """

    def __init__(self) -> None:
        self._used = 0

    def lowest_free(self, highest: int) -> int | None:
        """Return the lowest number that is not in use; None where all up to `highest` are."""
        number = (~self._used & (self._used + 1)).bit_length() - 1
        return number if number <= highest else None

    def use(self, number: int) -> None:
        """Note that a number is in use."""
        self._used |= 1 << number

    def free(self, number: int) -> None:
        """Note that a number is not in use any more."""
        self._used &= ~(1 << number)
