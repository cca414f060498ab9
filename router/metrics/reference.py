"""The reference of the metrics as Markdown, written from the catalogue.

`python -m router.metrics.reference > docs/reference/metrics.md` brings the page up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

from router.metrics.catalogue import METRICS, OF_THE_PROCESS
from router.metrics.labels import LONGEST_LABEL, OTHER

_HEAD: Final = f"""\
# Metrics

<!-- Written by `python -m router.metrics.reference`; change the catalogue, not this page. -->

A listener with `http = true` serves `/metrics` in the text format of Prometheus, or in OpenMetrics
where the request's Accept header prefers it. Beside it are `/healthz`, which answers 200 after a
round through the router's loop, and `/readyz`, which answers 200 while the router takes connections
and 503 with the reason otherwise, as during a shutdown.

Directions are the router's: what it receives is `in`, what it sends is `out`.

Metrics by address are kept for `addressLabelLimit` addresses; all others together are the address
`{OTHER}`, so that the sum over all addresses is the router's total. At each scrape the labels that
are left go to the busiest addresses without one, and an address keeps its label for as long as the
router runs, also while nobody uses it. Addresses that the router makes for one link are always
among `{OTHER}`. An address of more than {LONGEST_LABEL} characters is cut and ends in a hash; one
that is itself called `{OTHER}` is shown as `/{OTHER}`.
"""


def format_reference() -> str:
    """The whole page."""
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
    for name, kind, meaning in OF_THE_PROCESS:
        yield f"| `{name}` | {kind} | {meaning} |"
    yield ""


if __name__ == "__main__":
    sys.stdout.write(format_reference())
