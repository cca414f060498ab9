"""Lines (connections between two routers) and traffic of a network, from its telemetry."""

from __future__ import annotations

import attrs

from router_spark.advising.routes import Pair


@attrs.frozen
class Direction:
    """Sampled messages that passed a line in one direction.

    `per_s` is the rate of all messages, estimated from the samples and their shares. One round trip
    in ten takes less than `least_ms`; `mean_ms` is the mean. If `is_now` is false, no message has
    passed the line since costs last changed, and all values are from before that change.
    """

    samples: int
    per_s: float
    least_ms: float
    mean_ms: float
    is_now: bool = True


@attrs.frozen
class CostChange:
    """Cost of a line since `time_us`, in microseconds since 1970."""

    time_us: int
    cost: int


@attrs.frozen
class Line:
    """Connection between two routers. `costs` are its costs so far, the present one last.

    `there` is the direction from the first router of `pair` to the second, `back` the opposite one.
    Each is None if no message was sampled there. `idle_ms` is the least round trip of control
    messages, or None if the routers have not measured it.
    """

    pair: Pair
    costs: tuple[CostChange, ...]
    there: Direction | None = None
    back: Direction | None = None
    idle_ms: float | None = None

    @property
    def cost(self) -> int:
        """Return the present cost."""
        return self.costs[-1].cost

    @property
    def samples(self) -> int:
        """Return the number of samples in both directions."""
        return sum(each.samples for each in (self.there, self.back) if each is not None)


@attrs.frozen
class Measured:
    """Time that messages have spent on lines, in milliseconds: mean and standard error."""

    samples: int
    mean_ms: float
    error_ms: float


@attrs.frozen
class Demand:
    """Messages that enter the network at one router and leave it at another.

    `now` was measured after the last change of costs, `before` between that change and the
    previous one.
    """

    ingress: str
    egress: str
    per_s: float
    now: Measured | None = None
    before: Measured | None = None


@attrs.frozen
class Observed:
    """Lines and demands of a network. `changed` are the lines whose costs changed last."""

    lines: tuple[Line, ...]
    demands: tuple[Demand, ...]
    changed: tuple[Pair, ...] = ()
