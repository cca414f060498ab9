"""Metrics reference in Markdown, generated from the catalogue.

`python -m router.metrics.reference > docs/reference/metrics.md` updates the page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

from router.metrics.address_labels import LONGEST_LABEL, OTHER
from router.metrics.catalogue import METRICS, PROCESS_METRICS
from router.metrics.connection_labels import MIN_AGE_S
from router.metrics.dispatch import DISPATCH

_HEAD: Final = f"""\
# Metrics

<!-- Written by `python -m router.metrics.reference`; change the catalogue, not this page. -->

A listener with `http = true` serves `/metrics` in the text format of Prometheus, or in OpenMetrics
where the request's Accept header prefers it. [Watch a router](../how-to/monitor.md) says how to use
them; alert rules and a dashboard are there.

Directions are the router's: what it receives is `in`, what it sends is `out`.

Metrics by address are kept for `addressLabelLimit` addresses; all others together are the address
`{OTHER}`, so that the sum over all addresses is the router's total. At each scrape the labels that
are left go to the busiest addresses without one, and an address keeps its label for as long as the
router runs, also while nobody uses it. Addresses that the router makes for one link are always
among `{OTHER}`. An address of more than {LONGEST_LABEL} characters is cut and ends in a hash; one
that is itself called `{OTHER}` is shown as `/{OTHER}`.

Metrics by connection are kept for `connectionLabelLimit` connections at a time. A connection gets
its label once it has lasted for {MIN_AGE_S:g} seconds, those of connectors and the busiest first,
and its series end with it. The number is that of the log and of `$management`; `endpoint` is the
listener or connector, `container` and `user` are who the peer says it is. All that have no label
are `{OTHER}` together.
"""

_DISPATCH: Final = """\
## Under Dispatch's names

Unless `qdrNames` is false, the metrics of Qpid Dispatch are shown as well, so that existing
dashboards and rules keep working. Metrics of features that this router does not have are 0. The
memory pools of Dispatch (`qdr_allocator_...`) are left out, as there are no such pools; see
`trioute_memory_bytes`.

| Metric | Kind | Meaning | In its place |
|---|---|---|---|"""


def format_reference() -> str:
    """Return the whole page."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    yield _HEAD
    yield "| Metric | Kind | Labels | Meaning |"
    yield "|---|---|---|---|"
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        yield f"| `{metric.name}` | {metric.kind} | {labels} | {metric.meaning} |"
    yield ""
    yield "Of the process and of Python, where the system tells it:"
    yield ""
    yield "| Metric | Kind | Meaning |"
    yield "|---|---|---|"
    for name, kind, meaning in PROCESS_METRICS:
        yield f"| `{name}` | {kind} | {meaning} |"
    yield ""
    yield _DISPATCH
    for each in DISPATCH:
        ours = f"`{each.ours}`" if each.ours and " says " not in each.ours else each.ours
        yield f"| `{each.name}` | {each.kind} | {each.meaning} | {ours} |"
    yield ""


if __name__ == "__main__":
    sys.stdout.write(format_reference())
