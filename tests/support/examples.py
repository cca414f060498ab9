"""How many examples a test runs: its own number, times what the profile asks for.

`@settings(max_examples=300)` would hold in every profile, the long fuzzing one too.
"""

from __future__ import annotations

from hypothesis import settings

_USUAL = 100


def examples(count: int) -> settings:
    """Run `count` examples, or as many times more as the profile has more than the usual 100."""
    return settings(max_examples=max(1, count * settings().max_examples // _USUAL))


def seeds(count: int) -> range:
    """So many seeds, or as many times more."""
    return range(examples(count).max_examples)
