"""Read the counts of a policy for metrics.

Up to `MOST_LABELS` vhosts have labels; the rest, with what was refused because there is no vhost,
counts as `other`. A vhost keeps its label as long as it has counts, and a count never moves from
`other` to a label.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Final

import attrs

from router.control.policy.counts import PolicyCounts
from router.control.policy.gate import Gate
from router.metrics.address_labels import OTHER, shortened

MOST_LABELS: Final = 100
KINDS: Final = {
    "connection": "denied",
    "session": "sessions_denied",
    "sender": "senders_denied",
    "receiver": "receivers_denied",
    "message": "messages_denied",
    "size": "large_messages_denied",
}
"""Values of the label `kind`, with the count of each."""


@attrs.define
class VhostReading:
    """Counts of one vhost, or of several together; `denied` is by kind."""

    label: str
    connections: int = 0
    denied: dict[str, int] = attrs.Factory(lambda: dict.fromkeys(KINDS, 0))


class PolicyReader:
    """Reader of the counts of a gate, which takes as long for very many vhosts as for a few."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        # the labelled vhosts; what each had counted before it got its label stays with `other`
        self._before: dict[str, dict[str, int]] = {}
        # whether vhosts without a label have been read as `other`
        self._has_others = False

    def read(self) -> list[VhostReading]:
        """Return the counts of each labelled vhost, and of all others."""
        counts, totals = self._gate.counts, self._gate.totals
        for name in [name for name in self._before if name not in counts]:
            del self._before[name]
        self._label(counts)
        found = [
            _reading(label_of(name), counts[name], before) for name, before in self._before.items()
        ]
        other = _reading(OTHER, totals, {})
        for each in found:
            other.connections -= each.connections
            for kind, count in each.denied.items():
                other.denied[kind] -= count
        return [*found, other]

    def _label(self, counts: Mapping[str, PolicyCounts]) -> None:
        free = MOST_LABELS - len(self._before)
        if free > 0 and len(self._before) < len(counts):
            # there are at most so many labels, so that few are looked at in vain
            new = islice((name for name in counts if name not in self._before), free)
            for name in list(new):
                told = {kind: getattr(counts[name], of) for kind, of in KINDS.items()}
                self._before[name] = told if self._has_others else {}
        self._has_others = len(self._before) < len(counts)


def label_of(name: str) -> str:
    """Return the label of a vhost."""
    return f"/{OTHER}" if name == OTHER else shortened(name)


def _reading(label: str, counts: PolicyCounts, before: Mapping[str, int]) -> VhostReading:
    denied = {kind: getattr(counts, of) - before.get(kind, 0) for kind, of in KINDS.items()}
    return VhostReading(label, counts.current, denied)
