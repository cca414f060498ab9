"""The address rules of a router: what is configured for the names that patterns match.

Of the rules that match a name the most specific one speaks for it. Where few change they change in
place, at no cost for the others. Where many do, `Rules` are made anew beside those that speak, in
a thread, and take their place between two turns
(docs/decisions/0038-changes-under-traffic.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from router.core.address import BALANCED, CLOSEST, MULTICAST, UNAVAILABLE
from router.core.patterns import PatternTree, pattern_of
from router.engine.deferred import emptied

TREATMENTS: Final = {
    "closest": CLOSEST,
    "balanced": BALANCED,
    "multicast": MULTICAST,
    "unavailable": UNAVAILABLE,
}
TREATMENT_NAMES: Final = {number: name for name, number in TREATMENTS.items()}

# When more rules than these become others, all are made anew, and it is not found out which names
# those are of.
MANY_RULES: Final = 100


class AddressRule(NamedTuple):
    """What is configured for the names that a pattern, or prefix, matches.

    `treatment` is one of `TREATMENTS`; `redelivers`: whether what one receiver gives back is
    offered to another; `dead_letter`: the name of the address that what has expired goes to;
    `ingress_phase` and `egress_phase`: where those enter who send, and who receive; `fallback`:
    whether who takes what nobody else does gets something; `hold`: seconds, messages and octets;
    `priority`: of its messages, or -1; `drop_after_s`: until a stuck receiver is dropped, or 0.
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
    """The pattern that says the same as the prefix of a rule, if it has one."""
    return pattern_of(rule.pattern) if rule.is_prefix else rule.pattern


def _same(rule: AddressRule) -> str:
    """What is equal for rules that match the same."""
    return whole_pattern(rule).strip("/.").replace(".", "/")


class Rules:
    """The rules that speak for names, and how those are treated that none speaks for."""

    def __init__(self, rules: Iterable[AddressRule], default_treatment: str) -> None:
        self.default = TREATMENTS[default_treatment]
        self._by_pattern: dict[str, AddressRule] = {}
        self._tree: PatternTree[AddressRule] = PatternTree()
        # how many rules name an address for dead letters; None is for those that name none
        self._dead_letters: Counter[str | None] = Counter()
        # whether any does
        self.has_dead_letters = False
        # how many rules have senders enter at another phase than 0
        self.ingress_phased = 0
        self.change((), rules, default_treatment)

    def __iter__(self) -> Iterator[AddressRule]:
        return iter(self._by_pattern.values())

    def match(self, name: str) -> AddressRule | None:
        """The most specific rule that matches a name, if one does."""
        return self._tree.match(name)

    def is_dead_letter(self, name: str) -> bool:
        """Whether what has expired goes to this address."""
        return name in self._dead_letters

    def change(
        self,
        removed: Iterable[AddressRule],
        added: Iterable[AddressRule],
        default_treatment: str,
    ) -> None:
        """From now on some rules do not speak for names any more, and others do; what stays costs
        nothing.
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
                # of several that match the same, the last one counts
                self._count(self._by_pattern[same], -1)
            self._by_pattern[same] = rule
            self._tree.add(whole_pattern(rule), rule)
            self._count(rule, 1)
        self.has_dead_letters = len(self._dead_letters) > (None in self._dead_letters)
        self.default = TREATMENTS[default_treatment]

    def _count(self, rule: AddressRule, by: int) -> None:
        """A rule came, or went: what is asked for each message is known without a search."""
        self._dead_letters[rule.dead_letter] += by
        if not self._dead_letters[rule.dead_letter]:
            del self._dead_letters[rule.dead_letter]
        self.ingress_phased += by * (rule.ingress_phase != 0)

    def pieces(self) -> Iterator[object]:
        """What it was made of, taken apart piece by piece, now that nobody asks it any more."""
        yield from emptied(self._by_pattern)
        yield from emptied(self._dead_letters)
        yield from self._tree.pieces()
