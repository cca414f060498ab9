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
from router.metrics.policy import MOST_LABELS

_HEAD: Final = f"""\
# Metrics

<!-- Written by `python -m router.metrics.reference`; change the catalogue, not this page. -->

A listener with `http = true` serves `/metrics` in the text format of Prometheus, or in OpenMetrics
if the request's Accept header prefers it. [Watch a router](../how-to/monitor.md) explains how to
use them; it also has alert rules and a dashboard.

Directions are as seen from the router: it receives `in` and sends `out`.

Up to `addressLabelLimit` addresses have their own labels; all others together are counted as the
address `{OTHER}`, so that the sum over all addresses is the router's total. At each scrape the free
labels go to the busiest addresses without one, and an address keeps its label as long as the router
runs, even while nobody uses the address. Addresses that the router makes for one link always count
as `{OTHER}`. An address of more than {LONGEST_LABEL} characters is cut and ends in a hash; an
address with the name `{OTHER}` is shown as `/{OTHER}`.

Up to `connectionLabelLimit` connections at a time have their own labels. A connection can get a
label once it has lasted for {MIN_AGE_S:g} seconds; connections of connectors come first, then the
busiest. Its series end with it. The connection's number is the same as in the log and in
`$management`; `endpoint` is the listener or connector, and `container` and `user` are the names
that the peer gave. All connections without a label together are counted as `{OTHER}`.

Up to {MOST_LABELS} vhosts have their own labels. All others, and the refusals of connections to
host names without a vhost, are counted as `{OTHER}`.
"""

_DISPATCH: Final = """\
## Under Dispatch's names

Unless `qdrNames` is false, the metrics of Qpid Dispatch are shown as well, so that existing
dashboards and rules keep working. Metrics of features that this router does not have are 0. The
metrics of Dispatch's memory pools (`qdr_allocator_...`) are omitted, because there are no such
pools here; see `trioute_memory_bytes`.

| Metric | Kind | Meaning | Replacement |
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
    yield "Metrics of the process and of Python, if the system provides them:"
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
