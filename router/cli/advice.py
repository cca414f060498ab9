"""Read advice to change the costs of connections between routers, and limit these changes.

`trioute-spark advise` writes the advice file. The file is not trusted: no cost changes by more than
the limits allow.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import attrs
from cattrs import BaseValidationError, transform_error
from cattrs.gen import make_dict_structure_fn, override
from cattrs.preconf.json import make_converter

from router.config.kinds import HIGHEST_COST

VERSION: Final = 1


class BadAdvice(Exception):
    """Refusal of an advice file that cannot be used; the text gives the reason."""


@attrs.frozen
class CostChange:
    """Advised change of the cost of the connection between two routers, from `cost` to `advised`.

    `target` is the cost to reach in the end, after several changes if necessary. `now_ms` and
    `then_ms` are the mean times that a message spends between routers: at present, and as
    predicted.
    """

    routers: tuple[str, str]
    cost: int
    advised: int
    target: int
    samples: int
    reason: str
    now_ms: float
    then_ms: float
    moved_per_s: float


@attrs.frozen
class Advice:
    """Content of an advice file."""

    version: int
    made: datetime
    expires: datetime
    changes: tuple[CostChange, ...]


@attrs.frozen
class Bounds:
    """Limits for the changes that one `trioute apply --advice` may make.

    `step` is the largest factor by which a cost may change. `least_samples` is the minimum number
    of samples that a change must be based on.
    """

    step: float
    least_samples: int

    def objection(self, change: CostChange) -> str:
        """Return why a change must not be applied, or an empty string if it may be."""
        if not 1 <= change.advised <= HIGHEST_COST:
            return f"a cost is from 1 to {HIGHEST_COST}"
        if change.samples < self.least_samples:
            return (
                f"it has {change.samples} samples, fewer than {self.least_samples} "
                "(--least-samples)"
            )
        # a cost of 1 has to become 2, whatever the factor
        highest = max(change.cost + 1, int(change.cost * self.step))
        lowest = min(change.cost - 1, -int(-change.cost // self.step))
        if not lowest <= change.advised <= highest:
            return f"at most a factor of {self.step:g} is applied at once (--step)"
        return ""


def read_advice(text: str, now: datetime) -> Advice:
    """Parse the text of an advice file.

    Raises BadAdvice if the text is not valid advice, has an unknown version, or has expired.
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise BadAdvice(f"is not JSON: {error}") from None
    if not isinstance(data, Mapping) or "changes" not in data:
        raise BadAdvice(
            "is not a file with advice: `trioute-spark advise --advice FILE` writes one"
        )
    version = data.get("version")
    if version != VERSION:
        raise BadAdvice(f"has version {version}; this release reads version {VERSION}")
    try:
        advice = _CONVERTER.structure(data, Advice)
    except BaseValidationError as error:
        raise BadAdvice("; ".join(transform_error(error, path="advice"))) from None
    if advice.expires.tzinfo is None:
        raise BadAdvice("has a time without a time zone")
    if advice.expires <= now:
        raise BadAdvice(
            f"expired on {advice.expires.astimezone(UTC):%Y-%m-%d at %H:%M} UTC: run "
            "`trioute-spark advise` again"
        )
    return advice


def _names(data: object, _: object) -> tuple[str, str]:
    if not isinstance(data, list) or len(data) != 2 or not all(isinstance(x, str) for x in data):
        raise ValueError("routers must be a list of two router ids")
    return data[0], data[1]


def _whole(data: object, _: object) -> int:
    if isinstance(data, bool) or not isinstance(data, int):
        raise ValueError(f"{data!r} is not a whole number")
    return data


_CONVERTER: Final = make_converter(detailed_validation=True)
_CONVERTER.register_structure_hook(int, _whole)
_CONVERTER.register_structure_hook(
    CostChange,
    make_dict_structure_fn(
        CostChange,
        _CONVERTER,
        routers=override(struct_hook=_names),
        now_ms=override(rename="nowMilliseconds"),
        then_ms=override(rename="thenMilliseconds"),
        moved_per_s=override(rename="movedPerSecond"),
    ),
)
