"""Script of octets that decides everything that happens in a run, so that runs can be repeated.

Hypothesis, atheris and a plain random generator all make octets. A finding is kept as the octets
that led to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

# Where numbers wrap, change their sign or need another width on the wire.
EDGES = (
    0,
    1,
    2,
    3,
    127,
    128,
    255,
    256,
    65535,
    65536,
    2**31 - 1,
    2**31,
    2**31 + 1,
    2**32 - 2,
    2**32 - 1,
)


class Choices:
    """Decisions read from a script; after its end each decision is the first option."""

    def __init__(self, script: bytes) -> None:
        self._script = script
        self._at = 0
        # How often, of 256 times, something is done wrong: runs without manners end early, and
        # others get far.
        self.wildness = (0, 1, 4, 40)[self.octet() % 4]

    @property
    def over(self) -> bool:
        """Return whether the script has been used up."""
        return self._at >= len(self._script)

    def octet(self) -> int:
        """Return the next octet of the script, 0 after its end."""
        if self.over:
            return 0
        self._at += 1
        return self._script[self._at - 1]

    def below(self, count: int) -> int:
        """Return a number from 0 to `count` - 1; `count` is at most 2**16."""
        number = self.octet()
        if count > 256:
            number = number << 8 | self.octet()
        return number % count

    def one_in(self, count: int) -> bool:
        """Return whether an event happens that has a chance of one in `count`."""
        return self.below(count) == count - 1

    def of(self, several: Sequence[T]) -> T:
        """Return one of several things."""
        return several[self.below(len(several))]

    def wild(self) -> bool:
        """Return whether to do something wrong."""
        return self.wildness > 0 and self.octet() >= 256 - self.wildness

    def near(self, number: int) -> int:
        """As a rule the number itself; now and then one beside it or at an edge. Of 32 bits."""
        if not self.wild():
            return number & 0xFFFFFFFF
        roll = self.octet()
        if roll < 128:
            return (number + (roll % 30 - 15)) & 0xFFFFFFFF
        return EDGES[roll % len(EDGES)]

    def mostly(self, usual: T, others: Sequence[T]) -> T:
        """As a rule the usual thing; one time in eight one of the others."""
        roll = self.octet()
        return usual if roll < 224 else others[roll % len(others)]

    def octets(self, most: int) -> bytes:
        """Up to `most` octets straight from the script."""
        count = min(self.below(most + 1), len(self._script) - self._at)
        self._at += count
        return self._script[self._at - count : self._at]
