"""Answer neighbours' requests for routers' address tables, once this router has the table.

A large table is divided into messages in small steps before it is sent as a whole.
"""

from __future__ import annotations

from collections.abc import Callable

from router.control.network.links import RouterLink, RouterLinks
from router.control.network.messages import MobileRequest
from router.control.network.steps import Steps, do_some
from router.control.network.tables import Table


class Answers:
    """Record of the address tables that neighbours have requested and that are not sent yet.

    `table_of` returns the address table of a router, and `is_good` returns whether a table may be
    sent to others.
    """

    def __init__(
        self,
        table_of: Callable[[str], Table | None],
        is_good: Callable[[Table], bool],
        links: RouterLinks,
    ) -> None:
        self._table_of = table_of
        self._is_good = is_good
        self._links = links
        # tables to be sent as a whole, and the one that is being divided into messages
        self._to_cut: dict[str, None] = {}
        self._cutting: Steps[None] | None = None

    def request_received(self, link: RouterLink, request: MobileRequest) -> None:
        """Record the address tables that a neighbour requests, and send the available ones."""
        # a table that is requested several times in one message is sent once
        for wish in {each.router: each for each in request.wishes}.values():
            table = self._table_of(wish.router)
            if table is not None and table.instance == wish.instance:
                link.requested_tables[wish.router] = wish.seq
                self._serve_one(link, table)

    def serve(self, table: Table) -> None:
        """Send an address table that has changed to the neighbours that wait for it."""
        for link in self._links.carriers.values():
            if table.router in link.requested_tables:
                self._serve_one(link, table)

    def serve_all(self, link: RouterLink) -> None:
        """Send a neighbour the address tables that it waits for, as its queue has room again."""
        for router in list(link.requested_tables):
            table = self._table_of(router)
            if table is not None:
                self._serve_one(link, table)

    def _serve_one(self, link: RouterLink, table: Table) -> None:
        seq = link.requested_tables[table.router]
        if not self._is_good(table) or seq >= table.seq or self._links.is_full(link):
            return
        if table.must_be_cut(seq):
            self._to_cut[table.router] = None
            return
        del link.requested_tables[table.router]
        for message in table.since(seq):
            self._links.send(link, message)

    @property
    def is_behind(self) -> bool:
        """Return whether `work` has anything left to do."""
        return bool(self._to_cut) or self._cutting is not None

    def work(self, most: int) -> None:
        """Divide large requested tables into messages, and stop after about `most` units of work.

        The module `steps` defines the unit.
        """
        while most > 0 and self.is_behind:
            if self._cutting is None:
                router = next(iter(self._to_cut))
                del self._to_cut[router]
                table = self._table_of(router)
                if table is None:
                    continue
                self._cutting = self._cut(table)
            most = do_some(self._cutting, most)
            if most:
                self._cutting = None

    def _cut(self, table: Table) -> Steps[None]:
        yield from table.cut()
        self.serve(table)
