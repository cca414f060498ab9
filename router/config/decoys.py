"""Decoys: what the password of an unknown user is checked against, so that it looks like any other.

A login must not show whether there is a user of that name. So an unknown name is given a cost that
users of the file have, and for SCRAM a salt, which are the same each time. They depend on a secret
of this process: they change at a restart, but not when a file is read again.
"""

from __future__ import annotations

import hmac
import os
from collections import Counter
from collections.abc import Iterable
from typing import Final, Self

import attrs

Cost = tuple[str | int, ...]
"""Everything that decides what it costs to check a password, such as the number of iterations."""

_SECRET: Final = os.urandom(32)
# Octets of a digest that choose among costs.
_CHOICE_BYTES: Final = 8


def decoy_bytes(purpose: str, name: str, count: int) -> bytes:
    """Return up to 64 octets for a name, which are the same each time, and which nobody can guess.

    The same name has others for another purpose.
    """
    text = f"{purpose}\0{name}".encode("utf-8", "surrogatepass")
    return hmac.digest(_SECRET, text, "sha512")[:count]


@attrs.frozen
class Costs:
    """Different costs that the users of a file have, each with the number of these users.

    If most users have the same cost, so do most unknown names, and the cost of no name shows
    whether there is such a user.
    """

    _counts: tuple[tuple[Cost, int], ...]
    _total: int

    @classmethod
    def of(cls, costs: Iterable[Cost], otherwise: Cost) -> Self:
        """Return the costs in `costs`, one for each user, or `otherwise` if there are none."""
        # in the order of the costs, so that for another user most names keep theirs
        counts = tuple(sorted((Counter(costs) or {otherwise: 1}).items()))
        return cls(counts, sum(count for _, count in counts))

    def pick(self, purpose: str, name: str) -> Cost:
        """Return the cost for an unknown name."""
        number = int.from_bytes(decoy_bytes(purpose, name, _CHOICE_BYTES), "big")
        left = number * self._total >> 8 * _CHOICE_BYTES
        for cost, count in self._counts:
            if left < count:
                return cost
            left -= count
        raise AssertionError("the counts make up the total")
