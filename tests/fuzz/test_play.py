"""Badly behaved peers: whatever they say and in whatever order, the router stays sound."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from fuzz.play import play

COUNTED = (
    "egress",
    "accepted",
    "rejected",
    "released",
    "modified",
    "expired",
    "aborted",
    "no_destination",
    "dropped_presettled",
    "shed",
    "malformed",
)


@given(st.binary(min_size=100, max_size=2000))
@settings(max_examples=max(settings().max_examples, 100))
def test_any_peers(script: bytes) -> None:
    play(script)


def test_the_same_peers_each_time() -> None:
    random = Random(1)
    seen: Counter[str] = Counter()
    for _ in range(300):
        router = play(random.randbytes(random.choice((100, 500, 2000)))).router
        total = router.table.total()
        seen.update({name: getattr(total, name) for name in COUNTED})
        seen["resumed"] += router.forwarder.suspended.resumed
    # or the fuzzing has become shallow
    assert [name for name in (*COUNTED, "resumed") if not seen[name]] == []


@pytest.mark.parametrize("octet", [0, 1, 7, 127, 128, 255])
def test_monotonous_peers(octet: int) -> None:
    play(bytes((octet,)) * 2000)
