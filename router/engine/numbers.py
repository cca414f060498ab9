"""Sets of numbers in use: a connection's channels, or the handles of a session's links."""

from __future__ import annotations


class Numbers:
    """Set of numbers in use, from 0 on, which finds the lowest free number quickly.

    The numbers are bits of an integer: the 65,536 handles of a session take 8 KiB, and finding,
    using or freeing a number takes microseconds, whichever numbers are in use.
    """

    def __init__(self) -> None:
        self._used = 0

    def lowest_free(self, highest: int) -> int | None:
        """Return the lowest number that is not in use, or None if all up to `highest` are."""
        number = (~self._used & (self._used + 1)).bit_length() - 1
        return number if number <= highest else None

    def use(self, number: int) -> None:
        """Mark a number as in use."""
        self._used |= 1 << number

    def free(self, number: int) -> None:
        """Mark a number as free."""
        self._used &= ~(1 << number)
