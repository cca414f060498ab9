"""Lines (connections between two routers) and traffic of a network, from its telemetry."""

from __future__ import annotations

import attrs

from router_spark.advising.routes import Pair


@attrs.frozen
class Direction:
    """Measurements of one direction of a line, from the messages that were sampled there.

    `per_s` is the estimated rate of all messages, sampled or not. One round trip in ten takes less
    than `least_ms`; `mean_ms` is the mean. If `is_now` is false, no message was sampled since costs
    last changed, and all values are from before that change.
    """

    samples: int
    per_s: float
    least_ms: float
    mean_ms: float
    is_now: bool = True


@attrs.frozen
class CostChange:
    """Cost that a line has had since `time_us`, which is in microseconds since 1970."""

    time_us: int
    cost: int


@attrs.frozen
class Line:
    """Connection between two routers. `costs` are its costs so far, with the present one last.

    `there` is the direction from the first router of `pair` to the second, `back` the opposite one.
    A direction is None if no message was sampled in it. `idle_ms` is the least round trip of
    control messages, or None if the routers have not measured it.
    """

    pair: Pair
    costs: tuple[CostChange, ...]
    there: Direction | None = None
    back: Direction | None = None
    idle_ms: float | None = None

    @property
    def cost(self) -> int:
        """Return the present cost of the line."""
        return self.costs[-1].cost

    @property
    def samples(self) -> int:
        """Return how many messages were sampled in both directions together."""
        return sum(each.samples for each in (self.there, self.back) if each is not None)


@attrs.frozen
class Measured:
    """Mean time that messages have spent on lines, with its standard error, in milliseconds."""

    samples: int
    mean_ms: float
    error_ms: float


@attrs.frozen
class Demand:
    """Demand for routes: messages that enter the network at `ingress` and leave it at `egress`.

    `now` is the mean time that these messages have spent on lines since the last change of costs.
    `before` is the mean time between the last two changes. Each is None if nothing was measured.
    """

    ingress: str
    egress: str
    per_s: float
    now: Measured | None = None
    before: Measured | None = None


@attrs.frozen
class Observed:
    """Observed lines and demands of a network. `changed` are the lines whose costs changed last."""

    lines: tuple[Line, ...]
    demands: tuple[Demand, ...]
    changed: tuple[Pair, ...] = ()
