"""Counts of a policy, read for metrics.

Up to `MOST_LABELS` vhosts have labels. The others, and the refusals of peers without a vhost, count
as `other`. A vhost keeps its label as long as it has counts, and what once counted as `other`
never moves to a label, so that no counter decreases.
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
    "state": "state_denied",
    "sender": "senders_denied",
    "receiver": "receivers_denied",
    "message": "messages_denied",
    "size": "large_messages_denied",
}
"""Values of the label `kind`, each with its attribute of PolicyCounts."""


@attrs.define
class VhostReading:
    """Counts of one vhost, or of several together; `denied` has the refusals of each kind."""

    label: str
    connections: int = 0
    denied: dict[str, int] = attrs.Factory(lambda: dict.fromkeys(KINDS, 0))


class PolicyReader:
    """Reader of the counts of a gate; very many vhosts take it no longer than a few."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        # vhosts with a label, each with its counts from before it had one, which stay in `other`
        self._before: dict[str, dict[str, int]] = {}
        # whether vhosts without a label have been read as `other`
        self._has_others = False

    def read(self) -> list[VhostReading]:
        """Return the counts of each vhost with a label, and then those of all others together."""
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
            # however many vhosts there are, at most MOST_LABELS names are skipped
            new = islice((name for name in counts if name not in self._before), free)
            for name in list(new):
                told = {kind: getattr(counts[name], of) for kind, of in KINDS.items()}
                self._before[name] = told if self._has_others else {}
        self._has_others = len(self._before) < len(counts)


def label_of(name: str) -> str:
    """Return the label of a vhost, which differs from `other` even if that is its name."""
    return f"/{OTHER}" if name == OTHER else shortened(name)


def _reading(label: str, counts: PolicyCounts, before: Mapping[str, int]) -> VhostReading:
    denied = {kind: getattr(counts, of) - before.get(kind, 0) for kind, of in KINDS.items()}
    return VhostReading(label, counts.current, denied)
