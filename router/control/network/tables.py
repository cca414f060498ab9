"""Address table of one router; each router keeps a copy of every other router's table.

The version of a table is the router's instance and a number that grows by one with each update. The
last updates are kept, so that a router that has missed a few does not need the whole table.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from router.control.network.codec import CHUNK_BYTES
from router.control.network.digests import MASK, entry_digest
from router.control.network.messages import (
    ANNOTATIONS_BIT,
    REMOVED,
    TREATMENT_BITS,
    MobileTable,
    MobileUpdate,
)
from router.control.network.steps import Steps, do_all
from router.core.model.split_table import ListedTable
from router.core.routers.routing_state import OF_EDGES, Interest
from router.engine.account import text_bytes

# Most keys in the kept updates: the first number, or the whole table's keys divided by the second.
_LEAST_KEPT: Final = 512
_PART_KEPT: Final = 8
MOST_KEYS: Final = 8192
"""Most addresses in a message."""
AT_ONCE: Final = 8
"""Addresses handled in one step."""
SMALL: Final = 1024
"""Largest table that is always cut anew; of a larger one, old parts and later updates are sent."""
MOST: Final = 2**63
KEY_OCTETS: Final = 300
"""Memory of an address, in addition to the text of its key."""

_INTERESTS: Final = {
    treatment | shows: Interest(treatment, bool(shows))
    for treatment in range(5)
    for shows in (0, ANNOTATIONS_BIT)
}


def interest_of(terms: int) -> Interest | None:
    """Return the interest that the octet `terms` encodes; None if it is `REMOVED`."""
    return None if terms == REMOVED else _INTERESTS[terms]


def terms_of(interest: Interest | None) -> int:
    """Return the octet that encodes an interest; `REMOVED` if it is None."""
    if interest is None:
        return REMOVED
    return (interest.treatment & TREATMENT_BITS) | (ANNOTATIONS_BIT if interest.shows else 0)


class Table:
    """Address table of one instance of a router."""

    def __init__(self, router: str, instance: int) -> None:
        self.router = router
        self.instance = instance
        self.seq = 0
        # digest of the entries, and the one that the origin has announced
        self.digest = 0
        self.declared = 0
        self.entries: ListedTable[str, int] = ListedTable()
        # number of entries that are edge routers, not addresses
        self.edges = 0
        # estimated memory of the entries
        self.octets = 0
        # the neighbour that first advertised its router, and the number of addresses left out as
        # too many: the table is then partial, and always counts as right
        self.first_neighbour = ""
        self.left_out = 0
        # when `seq` last changed
        self.moved_at = 0.0
        self._log: deque[MobileUpdate] = deque()
        self._logged = 0
        # the parts that were cut last, and the number of the table at that time
        self._parts: tuple[MobileTable, ...] = ()
        self._cut_at = 0

    # Changes.

    def tell(self, changes: Iterable[tuple[str, int]]) -> list[MobileUpdate]:
        """Apply changes to this router's own table; return the updates to send."""
        effective = [
            (key, terms) for key, terms in changes if self.entries.get(key, REMOVED) != terms
        ]
        return [self._told(chunk) for chunk in chunks(effective)]

    def _told(self, chunk: list[tuple[str, int]]) -> MobileUpdate:
        for key, terms in chunk:
            self._set(key, self.entries.get(key, REMOVED), terms)
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

    def apply(self, update: MobileUpdate) -> list[str]:
        """Apply the update that comes next; return the changed keys."""
        changed = self.set_some(zip(update.keys, update.terms, strict=True))
        self.follow(update)
        return changed

    def set_some(
        self, changes: Iterable[tuple[str, int]], most: int = MOST, octets: int = MOST
    ) -> list[str]:
        """Apply some of an update's changes; return the changed keys. Call `follow` at the end.

        There is room for `most` more addresses and `octets` more memory; further addresses are
        ignored.
        """
        changed = []
        entries = self.entries
        before = self.octets
        for key, terms in changes:
            known = entries.get(key, REMOVED)
            if known == terms:
                continue
            if known == REMOVED and (most <= 0 or self.octets - before >= octets):
                self.left_out += 1
                continue
            most += (known != REMOVED and terms == REMOVED) - (known == REMOVED)
            self._set(key, known, terms)
            changed.append(key)
        return changed

    def follow(self, update: MobileUpdate) -> None:
        """Complete an update all of whose changes have been applied."""
        self.seq = update.seq
        self.declared = update.digest
        self._note(update)

    @property
    def is_right(self) -> bool:
        """Return whether the table's digest is the announced one; True for a partial table."""
        return self.left_out > 0 or self.digest == self.declared

    def replace(self, assembly: Assembly) -> Steps[list[str]]:
        """Replace the contents by those of a received table, in steps; return the changed keys."""
        before, entries = self.entries, assembly.entries
        changed: list[str] = []
        for several, others in ((before, entries), (entries, before)):
            for number, (key, terms) in enumerate(several.items(), 1):
                if others.get(key, REMOVED) != terms:
                    changed.append(key)
                if number % AT_ONCE == 0:
                    yield AT_ONCE // 8
        self.entries, self.seq = entries, assembly.seq
        self.edges, self.octets = assembly.edges, assembly.octets
        self.left_out = assembly.left_out
        self.digest = self.declared = assembly.declared
        self._log.clear()
        self._logged = 0
        self._parts = ()
        return changed

    def _set(self, key: str, before: int, terms: int) -> None:
        if before != REMOVED:
            self.digest = (self.digest - entry_digest(key, before)) & MASK
            self.octets -= KEY_OCTETS + text_bytes(key)
            self.edges -= key.startswith(OF_EDGES)
        if terms == REMOVED:
            self.entries.pop(key, None)
        else:
            self.octets += KEY_OCTETS + text_bytes(key)
            self.edges += key.startswith(OF_EDGES)
            self.entries[key] = terms
            self.digest = (self.digest + entry_digest(key, terms)) & MASK

    def skip_to(self, seq: int) -> None:
        """Raise the version number to at least `seq`; drop the kept updates and parts."""
        self.seq = max(self.seq, seq)
        self._log.clear()
        self._logged = 0
        self._parts = ()

    def rewind(self) -> None:
        """Reset the version to 0: this copy is ahead of its router's own, and must be replaced."""
        self.skip_to(0)
        self.seq = 0

    # Messages to others.

    def _note(self, update: MobileUpdate) -> None:
        if self._log and self._log[-1].seq != update.base:
            self._log.clear()
            self._logged = 0
        self._log.append(update)
        self._logged += len(update.keys)
        most = max(_LEAST_KEPT, len(self.entries) // _PART_KEPT)
        while self._logged > most:
            self._logged -= len(self._log.popleft().keys)
        if not self._follows(self._cut_at):
            self._parts = ()

    def _follows(self, seq: int) -> bool:
        """Return whether all updates since version `seq` are still kept."""
        return seq == self.seq or bool(self._log and self._log[0].base <= seq)

    def since(self, seq: int) -> tuple[MobileUpdate | MobileTable, ...]:
        """Return the messages that update a copy at version `seq`: updates, or the whole table."""
        if seq >= self.seq:
            return ()
        if seq > 0 and self._follows(seq):
            return self._after(seq)
        # a small table is cut anew, without updates to send after the parts
        if self._cut_at < self.seq and len(self.entries) <= SMALL:
            self._parts = ()
        parts = self.whole()
        return (*parts, *self._after(self._cut_at)) if self._cut_at < self.seq else parts

    def _after(self, seq: int) -> tuple[MobileUpdate, ...]:
        return tuple(each for each in self._log if each.seq > seq)

    def must_be_cut(self, seq: int) -> bool:
        """Return whether `cut` must make the parts of a large table before a call of `since`."""
        if len(self.entries) <= SMALL or (seq > 0 and self._follows(seq)):
            return False
        return not self._parts

    def whole(self) -> tuple[MobileTable, ...]:
        """Return the whole table in parts, perhaps at an earlier version.

        All updates since that version are still kept. All callers get the same objects.
        """
        if not self._parts:
            do_all(self.cut())
        return self._parts

    def cut(self) -> Steps[None]:
        """Make the parts for `whole` in steps; they are discarded if too much changes meanwhile."""
        seq, digest, parts = self.seq, self.digest, []
        # a snapshot, as the table may change before this ends
        for part in chunks(self.entries.snapshot()):
            parts.append(part)
            yield len(part) // 4
        several = []
        for number, part in enumerate(parts or [[]]):
            keys, terms = tuple([key for key, _ in part]), bytes([each for _, each in part])
            origin = self.router, self.instance
            count = len(parts) or 1
            several.append(MobileTable(*origin, seq, digest, number, count, keys, terms))
            yield len(part) // 8
        if self._follows(seq):
            self._parts, self._cut_at = tuple(several), seq


class Assembly:
    """Whole address table that is assembled from the parts in which it arrives."""

    def __init__(self, first: MobileTable) -> None:
        self._first = first
        self._next = 0
        self.seq = first.seq
        self.declared = first.digest
        self.entries: ListedTable[str, int] = ListedTable()
        self.edges = 0
        self.octets = 0
        self.left_out = 0
        self.digest = 0

    def belongs(self, part: MobileTable) -> bool:
        """Return whether `part` is the next part of this table."""
        first = self._first
        same = (part.instance, part.seq, part.digest, part.parts) == (
            first.instance,
            first.seq,
            first.digest,
            first.parts,
        )
        return same and part.part == self._next

    def add(self, part: MobileTable) -> bool:
        """Add the next part; return whether it was the last one."""
        self.add_some(zip(part.keys, part.terms, strict=True))
        return self.added(part)

    def add_some(
        self, entries: Iterable[tuple[str, int]], most: int = MOST, octets: int = MOST
    ) -> None:
        """Add some entries of a part, as far as there is room. Call `added` after all of them."""
        before = self.octets
        for key, terms in entries:
            if key in self.entries:
                continue
            self.digest += entry_digest(key, terms)
            if most <= 0 or self.octets - before >= octets:
                self.left_out += 1
                continue
            most -= 1
            self.entries[key] = terms
            self.edges += key.startswith(OF_EDGES)
            self.octets += KEY_OCTETS + text_bytes(key)

    def added(self, part: MobileTable) -> bool:
        """Complete a part whose entries were added; return whether it was the last one."""
        self._next += 1
        if self._next < part.parts:
            return False
        self.digest &= MASK
        return True

    @property
    def is_right(self) -> bool:
        """Return whether the digest of the entries is the one that the sender announced."""
        return self.digest == self.declared


def chunks(changes: Iterable[tuple[str, int]]) -> Iterator[list[tuple[str, int]]]:
    """Yield changes in batches that each fit into a message."""
    chunk: list[tuple[str, int]] = []
    octets = 0
    for change in changes:
        chunk.append(change)
        # an upper bound of the octets; even so a chunk is far below the limit
        octets += 5 + len(change[0]) * (1 if change[0].isascii() else 4)
        if octets >= CHUNK_BYTES or len(chunk) == MOST_KEYS:
            yield chunk
            chunk, octets = [], 0
    if chunk:
        yield chunk
