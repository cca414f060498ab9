"""What is read of auto-links, for metrics."""

from __future__ import annotations

import attrs

from router.control.auto_links import AutoLinks
from router.control.keeping import Status


@attrs.frozen
class AutoLinkReading:
    """How auto-links fare. `by_status` are all that are configured, and those that leave."""

    configured: int = 0
    by_status: dict[str, int] = attrs.Factory(lambda: {str(each): 0 for each in Status})
    attempts: int = 0
    failures: int = 0


def read_auto_links(auto_links: AutoLinks | None) -> AutoLinkReading:
    """Read them at one go; of a router without, there are none."""
    if auto_links is None:
        return AutoLinkReading()
    counts = auto_links.count_statuses()
    return AutoLinkReading(
        len(auto_links.plans),
        {str(each): counts[str(each)] for each in Status},
        auto_links.attempts,
        auto_links.failures,
    )
