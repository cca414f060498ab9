"""Find out whether a change to exchanges or bindings closes a loop of exchanges.

An exchange can send messages to another exchange. A new loop passes through the changed entity. Two
searches start from that entity and take turns: one follows messages forwards, the other one
backwards. If either of them ends without meeting the other, there is no new loop
(docs/decisions/0102-one-change-beside-very-many.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, TypeVar

from router.config.edits import Edit, Edits
from router.config.exchanges import BindingSettings, ExchangeSettings

K = TypeVar("K")
V = TypeVar("V")

# An address and its phase.
Place = tuple[str, int]

# Maximum number of steps for each edit; beyond it, the whole configuration is checked instead.
MAX_STEPS_PER_EDIT: Final = 1000


def address_name(address: str) -> str:
    """Return an address without slashes at its start and separators (/ or .) at its end."""
    return address.lstrip("/").rstrip("/.")


class ExchangeGraph:
    """Graph of one configuration: which exchanges send messages to which other exchanges.

    No two exchanges have the same name or address.
    """

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        self._exchanges: dict[Place, str] = {}
        # the number of hops from each exchange to each place, and to each place from each exchange
        self._after: dict[str, Counter[Place]] = {}
        self._before: dict[Place, Counter[str]] = {}

    def enter(self, edit: Edit) -> None:
        """Apply one change to an exchange or a binding."""
        old, new = edit.old, edit.new
        if isinstance(old, ExchangeSettings):
            self._count(old.name, _alternate(old), -1)
            self._leave(old.name)
        if isinstance(new, ExchangeSettings):
            self._count(new.name, _alternate(new), 1)
            self._settle(new)
        for one, by in ((old, -1), (new, 1)):
            if isinstance(one, BindingSettings):
                self._count(one.exchange_name, _hop(one), by)

    def may_close_loop(self, edits: Edits) -> bool:
        """Return whether one of the edits, which are already in the graph, may have closed a loop.

        If the search takes too long, return True.
        """
        left = MAX_STEPS_PER_EDIT * len(edits)
        for edit in edits:
            new = edit.new
            if isinstance(new, ExchangeSettings):
                start, end = new.name, new.name
            elif isinstance(new, BindingSettings):
                start, end = self._exchanges.get(_hop(new) or ("", -1)), new.exchange_name
            else:
                continue
            if start is None or end is None:
                continue
            left = self._walked(start, end, left)
            if left < 0:
                return True
        return False

    def pieces(self) -> Iterator[object]:
        """Remove the entries one by one, so that a large graph can be freed in steps."""
        for one in (self._places, self._exchanges, self._after, self._before):
            while one:
                yield one.popitem()

    def _walked(self, start: str, end: str, left: int) -> int:
        """Search for a path from `start` to `end`, from both sides, in at most `left` steps.

        Return how many steps are left, or -1 if there is a path or the steps are used up.
        """
        # an exchange that leads to itself has to be found again from either side
        found: tuple[set[str], set[str]] = ({start}, {end}) if start != end else (set(), set())
        walks = (
            self._following([start], found[0], ahead=True),
            self._following([end], found[1], ahead=False),
        )
        while left > 0:
            for side in (0, 1):
                left -= 1
                step = next(walks[side], None)
                if step is None:
                    # this side has been walked to its end without meeting the other
                    return left
                if step in found[1 - side] or step == (end, start)[side]:
                    return -1
        return -1

    def _following(self, pending: list[str], found: set[str], *, ahead: bool) -> Iterator[str]:
        """Yield the exchanges to which those in `pending` send messages, directly or indirectly.

        If `ahead` is false, yield those from which they receive messages instead. Exchanges in
        `found` are skipped, and new ones are added to `found`. An empty name stands for a step that
        leads to no new exchange.
        """
        while pending:
            name = pending.pop()
            for other in self._ahead(name) if ahead else self._behind(name):
                if other is None or other in found:
                    yield ""
                else:
                    found.add(other)
                    pending.append(other)
                    yield other

    def _ahead(self, name: str) -> Iterator[str | None]:
        return (self._exchanges.get(place) for place in self._after.get(name, ()))

    def _behind(self, name: str) -> Iterator[str | None]:
        place = self._places.get(name)
        return iter(()) if place is None else iter(self._before.get(place, ()))

    def _settle(self, exchange: ExchangeSettings) -> None:
        if exchange.name is not None and exchange.address is not None:
            place = address_name(exchange.address), exchange.phase
            self._places[exchange.name] = place
            self._exchanges[place] = exchange.name

    def _leave(self, name: str | None) -> None:
        place = self._places.pop(name or "", None)
        if place is not None and self._exchanges.get(place) == name:
            del self._exchanges[place]

    def _count(self, name: str | None, place: Place | None, by: int) -> None:
        if name is None or place is None:
            return
        _count(self._after, name, place, by)
        _count(self._before, place, name, by)


def _count(counters: dict[K, Counter[V]], key: K, value: V, by: int) -> None:
    counter = counters.setdefault(key, Counter())
    counter[value] += by
    if not counter[value]:
        del counter[value]
    if not counter:
        del counters[key]


def _alternate(exchange: ExchangeSettings) -> Place | None:
    address = exchange.alternate_address
    return None if address is None else (address_name(address), exchange.alternate_phase)


def _hop(binding: BindingSettings) -> Place | None:
    address = binding.next_hop_address
    return None if address is None else (address_name(address), binding.next_hop_phase)
