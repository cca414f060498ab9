"""Address rules of a router: the configuration of the names that match a pattern or prefix.

Of several rules that match a name, the most specific one applies. If few rules change, they are
changed in place, at no cost for the others. If many change, a new `Rules` object is built in a
thread and replaces the old one between two turns (docs/decisions/0038-changes-under-traffic.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from router.core.model.address import BALANCED, CLOSEST, MULTICAST, UNAVAILABLE
from router.core.model.patterns import PatternTree, pattern_of
from router.core.model.split_table import ListedTable
from router.engine.deferred import pop_items

TREATMENTS: Final = {
    "closest": CLOSEST,
    "balanced": BALANCED,
    "multicast": MULTICAST,
    "unavailable": UNAVAILABLE,
}
TREATMENT_NAMES: Final = {number: name for name, number in TREATMENTS.items()}

# If more rules than this change, all rules are built anew, without finding out which names the
# changed ones match.
MANY_RULES: Final = 100


class AddressRule(NamedTuple):
    """Address rule: the configuration of the names that match a pattern or prefix.

    `treatment` is one of `TREATMENTS`. `redelivers` says whether a message that one receiver
    releases or modifies is offered to another. `dead_letter` is the address for expired messages.
    Senders attach at the `ingress_phase`, receivers at the `egress_phase`. `fallback` says whether
    messages without a receiver go to a fallback destination. `hold` limits what an edge router
    keeps while it has no uplink: for how many seconds, how many messages and how many octets.
    `priority` is used for all messages, unless it is -1. `drop_after_s` is the time in seconds
    after which a stuck receiver is dropped; 0 means never.
    """

    is_prefix: bool
    pattern: str
    treatment: str
    redelivers: bool = True
    dead_letter: str | None = None
    ingress_phase: int = 0
    egress_phase: int = 0
    fallback: bool = False
    hold: tuple[float, int, int] | None = None
    priority: int = -1
    drop_after_s: float = 0.0


def whole_pattern(rule: AddressRule) -> str:
    """Return a rule's pattern; for a prefix, the pattern that matches the same names."""
    return pattern_of(rule.pattern) if rule.is_prefix else rule.pattern


def _same(rule: AddressRule) -> str:
    """Return a key that is equal for rules that match the same names."""
    return whole_pattern(rule).strip("/.").replace(".", "/")


class Rules:
    """Set of a router's address rules, with the treatment of names that no rule matches."""

    def __init__(self, rules: Iterable[AddressRule], default_treatment: str) -> None:
        self.default = TREATMENTS[default_treatment]
        self._by_pattern: ListedTable[str, AddressRule] = ListedTable()
        self._tree: PatternTree[AddressRule] = PatternTree()
        # how many rules name each dead-letter address; None counts the rules without one
        self._dead_letters: Counter[str | None] = Counter()
        # whether any rule names a dead-letter address
        self.has_dead_letters = False
        # how many rules have an ingress phase other than 0
        self.ingress_phased = 0
        self.change((), rules, default_treatment)

    def __iter__(self) -> Iterator[AddressRule]:
        return iter(self._by_pattern.values())

    def match(self, name: str) -> AddressRule | None:
        """Return the most specific rule that matches a name, or None."""
        return self._tree.match(name)

    def is_dead_letter(self, name: str) -> bool:
        """Return whether any rule names this address as the address for expired messages."""
        return name in self._dead_letters

    def change(
        self,
        removed: Iterable[AddressRule],
        added: Iterable[AddressRule],
        default_treatment: str,
    ) -> None:
        """Remove some rules, add others and set the default treatment.

        The time that this takes does not depend on the number of other rules.
        """
        for rule in removed:
            same = _same(rule)
            if self._by_pattern.get(same) == rule:
                del self._by_pattern[same]
                self._tree.remove(whole_pattern(rule))
                self._count(rule, -1)
        for rule in added:
            same = _same(rule)
            if same in self._by_pattern:
                # of several rules that match the same names, the last one counts
                self._count(self._by_pattern[same], -1)
            self._by_pattern[same] = rule
            self._tree.add(whole_pattern(rule), rule)
            self._count(rule, 1)
        self.has_dead_letters = len(self._dead_letters) > (None in self._dead_letters)
        self.default = TREATMENTS[default_treatment]

    def _count(self, rule: AddressRule, by: int) -> None:
        """Count an added rule (`by` is 1), or stop counting a removed one (`by` is -1).

        The counts are those of dead-letter addresses and of ingress phases.
        """
        self._dead_letters[rule.dead_letter] += by
        if not self._dead_letters[rule.dead_letter]:
            del self._dead_letters[rule.dead_letter]
        self.ingress_phased += by * (rule.ingress_phase != 0)

    def pieces(self) -> Iterator[object]:
        """Free discarded rules in small steps, for `Deferred.forget`; yield after each step."""
        yield from pop_items(self._by_pattern)
        yield from pop_items(self._dead_letters)
        yield from self._tree.pieces()
