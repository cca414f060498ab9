"""Tree links that wait until this router sees their trees as their senders do.

There may be very many of them. They are indexed by the key of their address, and checked in
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
LOOKED_AT: Final = 256


class PendingTreeLinks:
    """Waiting tree links of one router, in the order of their attaches."""

    def __init__(self) -> None:
        self._links: OrderedDict[Link, PendingTreeLink] = OrderedDict()
        self._at: dict[str, dict[Link, PendingTreeLink]] = {}
        # links that only wait to learn of receivers, in the order in which their wait ends
        self._patient: OrderedDict[Link, PendingTreeLink] = OrderedDict()

    def __len__(self) -> int:
        return len(self._links)

    def __iter__(self) -> Iterator[PendingTreeLink]:
        return iter(self._links.values())

    def __contains__(self, asked: PendingTreeLink) -> bool:
        return self._links.get(asked.link) is asked

    def at(self, key: str) -> Iterable[PendingTreeLink]:
        """Return the waiting links to the address with this key."""
        return self._at.get(key, {}).values()

    def add(self, asked: PendingTreeLink) -> None:
        """Add a link that has been attached."""
        self._links[asked.link] = asked
        self._at.setdefault(asked.key, {})[asked.link] = asked

    def remove(self, asked: PendingTreeLink) -> None:
        """Remove a link that has been accepted, or is lost."""
        link, key = asked.link, asked.key
        self._links.pop(link, None)
        self._patient.pop(link, None)
        found = self._at.get(key)
        if found is not None:
            found.pop(link, None)
            if not found:
                del self._at[key]

    def wait_for_receivers(self, asked: PendingTreeLink) -> None:
        """Note that a link only waits to learn of receivers, until `asked.waits_until`."""
        self._patient.setdefault(asked.link, asked)

    def take_overdue(self, now: float) -> Iterator[PendingTreeLink]:
        """Remove and yield the links that have waited long enough to learn of receivers."""
        while self._patient:
            asked = next(iter(self._patient.values()))
            if asked.waits_until > now:
                return
            del self._patient[asked.link]
            yield asked

    def forget_lost(self) -> None:
        """Remove lost links among the next LOOKED_AT; later calls check the others."""
        for link, asked in list(islice(self._links.items(), LOOKED_AT)):
            if link.is_lost():
                self.remove(asked)
            else:
                self._links.move_to_end(link)
