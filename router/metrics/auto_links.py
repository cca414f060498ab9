"""Read auto-links for metrics."""

from __future__ import annotations

import attrs

from router.control.auto_links import AutoLinks
from router.control.link_supervisor import Status


@attrs.frozen
class AutoLinkReading:
    """Counts of auto-links; `by_status` includes auto-links that are being removed."""

    configured: int = 0
    by_status: dict[str, int] = attrs.Factory(lambda: {str(each): 0 for each in Status})
    attempts: int = 0
    failures: int = 0


def read_auto_links(auto_links: AutoLinks | None) -> AutoLinkReading:
    """Read the counts of all auto-links in one step; `auto_links` is None if there are none."""
    if auto_links is None:
        return AutoLinkReading()
    counts = auto_links.count_statuses()
    return AutoLinkReading(
        len(auto_links.rules),
        {str(each): counts[str(each)] for each in Status},
        auto_links.attempts,
        auto_links.failures,
    )
