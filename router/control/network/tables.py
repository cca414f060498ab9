"""The table of one router's addresses, as every router keeps one of each other.

It is known by the router's instance and a number that grows by one with each change it tells of.
The newest changes are kept, so that somebody who has missed a few need not be told all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from router.control.network.codec import CHUNK_BYTES
from router.control.network.digests import MASK, entry_digest
from router.control.network.messages import (
    GONE,
    SHOWS_BIT,
    TREATMENT_BITS,
    MobileTable,
    MobileUpdate,
)
from router.core.network.reach import OF_EDGES, Interest

# How many keys the changes that are kept may name: this many, or this part of the whole table.
_LEAST_KEPT: Final = 512
_PART_KEPT: Final = 8
MOST_KEYS: Final = 8192
"""No message names more addresses."""
KEY_OCTETS: Final = 300
"""What an address takes of a router's memory, beside the octets of its key."""

_INTERESTS: Final = {
    treatment | shows: Interest(treatment, bool(shows))
    for treatment in range(5)
    for shows in (0, SHOWS_BIT)
}


def interest_of(terms: int) -> Interest | None:
    """What the octet of an address's terms says; None for one that is gone."""
    return None if terms == GONE else _INTERESTS[terms]


def terms_of(interest: Interest | None) -> int:
    """The octet that says it."""
    if interest is None:
        return GONE
    return (interest.treatment & TREATMENT_BITS) | (SHOWS_BIT if interest.shows else 0)


Terms = Mapping[str, int]
"""The octets of terms by key."""


class Table:
    """The addresses of one instance of a router."""

    def __init__(self, router: str, instance: int) -> None:
        self.router = router
        self.instance = instance
        self.seq = 0
        # of what is here, and what the origin says it is
        self.digest = 0
        self.declared = 0
        self.entries: dict[str, int] = {}
        # how many of them are edge routers, and no addresses
        self.edges = 0
        # about how much memory they take
        self.octets = 0
        self._log: deque[MobileUpdate] = deque()
        self._logged = 0
        self._parts: tuple[MobileTable, ...] = ()

    # Changes.

    def tell(self, changes: Iterable[tuple[str, int]]) -> list[MobileUpdate]:
        """Have the changes made at their origin, and give the messages that say so."""
        effective = [(key, terms) for key, terms in changes if self.entries.get(key, GONE) != terms]
        return [self._told(chunk) for chunk in chunks(effective)]

    def _told(self, chunk: list[tuple[str, int]]) -> MobileUpdate:
        for key, terms in chunk:
            self._set(key, terms)
        self.seq += 1
        self.declared = self.digest
        update = MobileUpdate(
            self.router,
            self.instance,
            self.seq - 1,
            self.seq,
            self.digest,
            tuple([key for key, _ in chunk]),
            bytes([terms for _, terms in chunk]),
        )
        self._note(update)
        return update

    def apply(self, update: MobileUpdate) -> Terms:
        """Make the changes that a message says, which must follow on what is there; give those
        that were changes.
        """
        changed = {}
        for key, terms in zip(update.keys, update.terms, strict=True):
            if self.entries.get(key, GONE) != terms:
                self._set(key, terms)
                changed[key] = terms
        self.seq = update.seq
        self.declared = update.digest
        self._note(update)
        return changed

    @property
    def is_right(self) -> bool:
        """Whether it is what its origin says that it is."""
        return self.digest == self.declared

    def replace(self, seq: int, entries: dict[str, int], digest: int) -> Terms:
        """Put another table in the place of this one; give what is different."""
        changed = {key: GONE for key in self.entries if key not in entries}
        changed |= {key: terms for key, terms in entries.items() if self.entries.get(key) != terms}
        self.entries, self.seq = entries, seq
        self.edges = sum(key.startswith(OF_EDGES) for key in entries)
        self.octets = sum(map(len, entries)) + KEY_OCTETS * len(entries)
        self.digest = self.declared = digest
        self._log.clear()
        self._logged = 0
        self._parts = ()
        return changed

    def _set(self, key: str, terms: int) -> None:
        before = self.entries.get(key, GONE)
        if before != GONE:
            self.digest = (self.digest - entry_digest(key, before)) & MASK
            self.octets -= KEY_OCTETS + len(key)
            self.edges -= key.startswith(OF_EDGES)
        if terms == GONE:
            self.entries.pop(key, None)
        else:
            self.octets += KEY_OCTETS + len(key)
            self.edges += key.startswith(OF_EDGES)
            self.entries[key] = terms
            self.digest = (self.digest + entry_digest(key, terms)) & MASK

    def skip_to(self, seq: int) -> None:
        """Go on from a number that somebody remembers, though it was never told by this process."""
        self.seq = max(self.seq, seq)
        self._log.clear()
        self._logged = 0
        self._parts = ()

    # What others are told.

    def _note(self, update: MobileUpdate) -> None:
        self._parts = ()
        if self._log and self._log[-1].seq != update.base:
            self._log.clear()
            self._logged = 0
        self._log.append(update)
        self._logged += len(update.keys)
        most = max(_LEAST_KEPT, len(self.entries) // _PART_KEPT)
        while self._logged > most:
            self._logged -= len(self._log.popleft().keys)

    def since(self, seq: int) -> tuple[MobileUpdate | MobileTable, ...]:
        """What somebody needs who has the table as of `seq`: the changes, or all of it."""
        if seq >= self.seq:
            return ()
        if 0 < seq < self.seq and self._log and self._log[0].base <= seq:
            return tuple(each for each in self._log if each.seq > seq)
        return self.whole()

    def whole(self) -> tuple[MobileTable, ...]:
        """All of it, in parts; the same objects for everybody who asks, until it changes."""
        if not self._parts:
            parts = list(chunks(self.entries.items())) or [[]]
            self._parts = tuple(
                MobileTable(
                    self.router,
                    self.instance,
                    self.seq,
                    self.digest,
                    number,
                    len(parts),
                    tuple([key for key, _ in part]),
                    bytes([terms for _, terms in part]),
                )
                for number, part in enumerate(parts)
            )
        return self._parts


class Assembly:
    """A whole table that comes in parts."""

    def __init__(self, first: MobileTable) -> None:
        self._first = first
        self._next = 0
        self.entries: dict[str, int] = {}
        self.octets = 0
        self.digest = 0

    def belongs(self, part: MobileTable) -> bool:
        """Whether this is the part that is to come next."""
        first = self._first
        same = (part.instance, part.seq, part.digest, part.parts) == (
            first.instance,
            first.seq,
            first.digest,
            first.parts,
        )
        return same and part.part == self._next

    def add(self, part: MobileTable) -> bool:
        """Take the next part; tells whether it was the last."""
        for key, terms in zip(part.keys, part.terms, strict=True):
            if key not in self.entries:
                self.entries[key] = terms
                self.octets += KEY_OCTETS + len(key)
                self.digest += entry_digest(key, terms)
        self._next += 1
        if self._next < part.parts:
            return False
        self.digest &= MASK
        return True

    @property
    def is_right(self) -> bool:
        """Whether it is what its sender said it would be."""
        return self.digest == self._first.digest


def chunks(changes: Iterable[tuple[str, int]]) -> Iterator[list[tuple[str, int]]]:
    """Changes in portions that each fit into a message."""
    chunk: list[tuple[str, int]] = []
    octets = 0
    for change in changes:
        chunk.append(change)
        # no character has more octets; what is larger by that is still far below what is allowed
        octets += 5 + len(change[0]) * (1 if change[0].isascii() else 4)
        if octets >= CHUNK_BYTES or len(chunk) == MOST_KEYS:
            yield chunk
            chunk, octets = [], 0
    if chunk:
        yield chunk
