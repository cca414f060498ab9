"""Number of examples of a test: its own number, scaled by the profile.

`@settings(max_examples=300)` would hold in every profile, the long fuzzing one too.
"""

from __future__ import annotations

from hypothesis import settings

_USUAL = 100


def examples(count: int) -> settings:
    """Run `count` examples, scaled as the profile scales the usual 100."""
    return settings(max_examples=max(1, count * settings().max_examples // _USUAL))


def seeds(count: int) -> range:
    """Return a range of `count` seeds, scaled by the profile as `examples` are."""
    return range(examples(count).max_examples)
