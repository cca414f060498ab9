"""Tree links that wait until this router sees the same tree as the router at the other end.

There may be very many such links. They are indexed by the key of their address, and checked in
batches. Nothing here runs per message.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from router.core.network.tree_links import PendingTreeLink
from router.engine.link import Link

# How many links are checked for loss at each periodic check.
CHECKED_AT_ONCE: Final = 256


class PendingTreeLinks:
    """Collection of a router's waiting tree links, in the order of their attaches."""

    def __init__(self) -> None:
        self._links: OrderedDict[Link, PendingTreeLink] = OrderedDict()
        self._at: dict[str, dict[Link, PendingTreeLink]] = {}
        # links that only wait to learn of receivers, in the order in which their wait ends
        self._patient: OrderedDict[Link, PendingTreeLink] = OrderedDict()

    def __len__(self) -> int:
        return len(self._links)

    def __iter__(self) -> Iterator[PendingTreeLink]:
        return iter(self._links.values())

    def __contains__(self, pending: PendingTreeLink) -> bool:
        return self._links.get(pending.link) is pending

    def at(self, key: str) -> Iterable[PendingTreeLink]:
        """Return the waiting links to the address with this key."""
        return self._at.get(key, {}).values()

    def add(self, pending: PendingTreeLink) -> None:
        """Add a link that has been attached."""
        self._links[pending.link] = pending
        self._at.setdefault(pending.key, {})[pending.link] = pending

    def remove(self, pending: PendingTreeLink) -> None:
        """Remove a link that has been accepted, or is lost."""
        link, key = pending.link, pending.key
        self._links.pop(link, None)
        self._patient.pop(link, None)
        found = self._at.get(key)
        if found is not None:
            found.pop(link, None)
            if not found:
                del self._at[key]

    def wait_for_receivers(self, pending: PendingTreeLink) -> None:
        """Note that a link waits only for receivers to be announced, until its `waits_until`."""
        self._patient.setdefault(pending.link, pending)

    def take_overdue(self, now: float) -> Iterator[PendingTreeLink]:
        """Yield the links that have waited long enough for receivers to be announced.

        Each of them stops waiting for receivers.
        """
        while self._patient:
            pending = next(iter(self._patient.values()))
            if pending.waits_until > now:
                return
            del self._patient[pending.link]
            yield pending

    def forget_lost(self) -> None:
        """Remove lost links among the next CHECKED_AT_ONCE; later calls check the other links."""
        for link, pending in list(islice(self._links.items(), CHECKED_AT_ONCE)):
            if link.is_lost():
                self.remove(pending)
            else:
                self._links.move_to_end(link)
