"""Labels of the addresses that have their own metrics.

Every label costs memory where the metrics are stored, and clients choose addresses freely, so
labels are limited. At each reading the free labels go to the busiest addresses without one. Labels
are never taken back. If no label is free, an address counts as `other` until the limit is raised.
As no count moves from `other` to a label or back, each series only grows, as a counter must
(docs/decisions/0021-labels-stay.md).
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator
from typing import Final

from router.core.addresses.table import AddressTable
from router.core.model.address import Address
from router.core.model.counters import Counters

OTHER: Final = "other"
"""The label of all addresses together that do not have their own labels."""

LONGEST_LABEL: Final = 128
"""Maximum length in characters; a longer address is cut, and a hash at its end keeps it unique."""

# Number of addresses examined in one step, which takes about two milliseconds.
ADDRESSES_PER_STEP: Final = 1000
_HASH_BYTES: Final = 8
# Prefix of nodes that the router made for one link, which nobody needs to distinguish.
_DYNAMIC_PREFIX: Final = "_topo/"


class AddressLabels:
    """Assignment of labels to the addresses of a table, for at most `limit` addresses.

    The counters of a labelled address stay in `table.kept`, even while the address is not in use.
    """

    def __init__(self, table: AddressTable, limit: int) -> None:
        self.table = table
        # counts of addresses from before they got a label, by key; they stay with `other`
        self.counted_as_other: dict[str, Counters] = {}
        self._limit = limit
        # whether addresses without a label have been read as `other` and may get one now
        self._is_raised = False
        self._has_been_read = False

    @property
    def limit(self) -> int:
        """Return the maximum number of labels."""
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        self._is_raised |= self._has_been_read and limit > self._limit
        self._limit = limit

    def assign(self) -> None:
        """Give the free labels to the busiest addresses without one."""
        for _ in self.assign_in_steps():
            pass

    def assign_in_steps(self) -> Iterator[None]:
        """Give out the free labels as `assign` does, in steps between which other tasks can run."""
        self._has_been_read = True
        kept = self.table.kept
        free = self.limit - len(kept)
        if free <= 0:
            return
        # a heap of the busiest addresses so far; among equally busy ones the first are chosen
        busiest: list[tuple[int, int, Address]] = []
        for count, address in enumerate(self.table.addresses(), 1):
            if count % ADDRESSES_PER_STEP == 0:
                yield
            if (
                address.key in kept
                or _is_passing(address)
                or is_own_node(self.table, address)
                or not self.table.is_in_use(address)
            ):
                continue
            ranked = _deliveries(address), -count, address
            if len(busiest) < free:
                heapq.heappush(busiest, ranked)
            else:
                heapq.heappushpop(busiest, ranked)
        for *_, address in sorted(busiest, key=_rank, reverse=True):
            # an address that is no longer in use counts as `other`
            if self.table.is_in_use(address):
                kept[address.key] = Counters()
                if self._is_raised:
                    before = self.counted_as_other[address.key] = Counters()
                    before.add(address.counters)
        self._is_raised = False


def _rank(busy: tuple[int, int, Address]) -> tuple[int, int]:
    return busy[:2]


def is_own_node(table: AddressTable, address: Address) -> bool:
    """Return whether an address is a node of the router itself; such nodes have phase 0."""
    return address.phase == 0 and table.is_own_node(address.name)


def _is_passing(address: Address) -> bool:
    return address.is_dynamic or address.name.startswith(_DYNAMIC_PREFIX)


def _deliveries(address: Address) -> int:
    return address.counters.ingress + address.counters.egress


def label_of(key: str) -> str:
    """Return the label of the address with this key; it is unique and never `other`.

    The label is the key, cut if it is too long. The keys `other` and "" get a leading slash, which
    does not change the address that they name.
    """
    if key in (OTHER, ""):
        return f"/{key}"
    return shortened(key)


def shortened(text: str) -> str:
    """Return a text that a client chose, cut if it is too long; a hash keeps a cut text unique."""
    if len(text) <= LONGEST_LABEL:
        return text
    digest = hashlib.blake2b(text.encode(), digest_size=_HASH_BYTES).hexdigest()
    return f"{text[: LONGEST_LABEL - len(digest) - 1]}~{digest}"
