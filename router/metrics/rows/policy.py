"""Metrics of policies: the connections of each vhost, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from router.metrics.metric import Metric, Sample
from router.metrics.reading import Reading


def _denied(reading: Reading) -> Iterable[Sample]:
    for each in reading.policy:
        for kind, count in each.denied.items():
            yield (each.label, kind), count


POLICY: Final = (
    Metric(
        "trioute_policy_connections",
        "gauge",
        "Connections of the peers of a vhost.",
        ("vhost",),
        lambda r: (((each.label,), each.connections) for each in r.policy),
    ),
    Metric(
        "trioute_policy_denied_total",
        "counter",
        "What the policy refused, by kind: connection; session; sender or receiver (a link on "
        "which a peer wanted to send or to receive); state (beyond maxStateBytes); message (of an "
        "anonymous sender); size (a message that was too large).",
        ("vhost", "kind"),
        _denied,
    ),
)
