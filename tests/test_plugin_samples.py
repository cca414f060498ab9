"""The plugin contract describes the columns of sampled deliveries that the router records."""

from __future__ import annotations

import re

from router.core.deliveries.sampling import COLUMNS
from router.plugin_samples import ABSENT, SampleBatch


def test_each_column_is_described() -> None:
    described = re.findall(r"`(\w+)`", SampleBatch.__doc__ or "")
    assert set(COLUMNS) <= set(described)
    assert len(set(COLUMNS)) == 16


def test_what_is_absent_is_no_duration() -> None:
    assert ABSENT == 2**64 - 1
