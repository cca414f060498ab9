"""Statistics of `trioute send` and `trioute receive`, and their summary."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from router.amqp.performatives import Rejected
from router.client.failures import describe_peer_error

# Latencies are counted in classes, each this much larger than the previous one. A day's messages
# take no more memory than a second's, and no percentile is off by more than half a class.
STEP = 1.02
PERCENTILES = (50, 90, 99)
# Maximum number of different reasons for rejections that are reported.
REASONS = 5


class Latencies:
    """Distribution of latencies, in nanoseconds."""

    def __init__(self) -> None:
        self.count = 0
        self.longest_ns = 0
        self._steps: Counter[int] = Counter()

    def add(self, taken_ns: int) -> None:
        """Count a latency; a negative one, after a clock went back, counts as 1 ns."""
        taken_ns = max(taken_ns, 1)
        self.count += 1
        self.longest_ns = max(self.longest_ns, taken_ns)
        self._steps[round(math.log(taken_ns) / _LOG_STEP)] += 1

    def percentile_ns(self, percent: float) -> int:
        """Return the latency that `percent` of the messages did not exceed; 0 without messages."""
        wanted = math.ceil(self.count * percent / 100)
        seen = 0
        for step in sorted(self._steps):
            seen += self._steps[step]
            if seen >= wanted:
                return min(round(STEP**step), self.longest_ns)
        return 0

    def in_ms(self) -> dict[str, float]:
        """Return percentiles and the maximum by name, in milliseconds; empty without messages."""
        if not self.count:
            return {}
        shown = {f"p{percent}": self.percentile_ns(percent) for percent in PERCENTILES}
        return {name: ns / 1e6 for name, ns in (shown | {"max": self.longest_ns}).items()}


_LOG_STEP = math.log(STEP)


class RunStatistics:
    """Statistics of one run: messages and octets, their outcomes, and their rate.

    `verb` says what happened to each message, "sent" or "received".
    """

    def __init__(self, done: str, started_s: float) -> None:
        self.verb = done
        self.started_s = started_s
        self.ended_s = started_s
        # state before the first message
        self.state = ""
        self.count = 0
        self.bytes = 0
        self.outcomes: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.latencies = Latencies()

    def add(self, size: int, now_s: float) -> None:
        """Count a message of `size` octets."""
        if self.count == 0:
            # the wait for the first credit or message does not count for the rate
            self.started_s = now_s
        self.count += 1
        self.bytes += size
        self.ended_s = now_s

    def add_outcome(self, outcome: object, now_s: float) -> None:
        """Count the outcome of a message; None is a settlement without an outcome."""
        self.outcomes["settled" if outcome is None else type(outcome).__name__.lower()] += 1
        self.ended_s = now_s
        if isinstance(outcome, Rejected) and outcome.error is not None:
            error = outcome.error
            reason = f"{error.condition}: {describe_peer_error(error) or 'no description'}"
            if reason in self.reasons or len(self.reasons) < REASONS:
                self.reasons[reason] += 1

    @property
    def seconds(self) -> float:
        """Return the time from the first message to the last message or outcome."""
        return self.ended_s - self.started_s

    @property
    def rate(self) -> float:
        """Return the messages per second, or 0 if no time has passed."""
        return self.count / self.seconds if self.seconds > 0 else 0.0

    def progress(self) -> str:
        """Return one short line about the progress, for a terminal."""
        if not self.count:
            return f"0 {self.verb}, {self.state}"
        outcomes = "".join(f", {count} {name}" for name, count in sorted(self.outcomes.items()))
        return f"{self.count} {self.verb}{outcomes}, {self.rate:,.0f}/s"

    def lines(self) -> Iterator[str]:
        """Yield the lines of the summary, for people."""
        for reason, count in self.reasons.most_common():
            yield f"rejected {count}: {reason}"
        yield (
            f"{self.verb} {self.count} messages, {self.bytes} bytes, in {self.seconds:.3f} s"
            f" ({self.rate:,.0f}/s)"
        )
        if self.outcomes:
            yield "outcomes: " + ", ".join(
                f"{n} {name}" for name, n in sorted(self.outcomes.items())
            )
        shown = self.latencies.in_ms()
        if shown:
            yield "latency: " + ", ".join(f"{name} {ms:.3f} ms" for name, ms in shown.items())

    def as_json(self) -> dict[str, object]:
        """Return the summary, for programs; `reasons` counts the rejections by reason."""
        return {
            "count": self.count,
            "seconds": round(self.seconds, 6),
            "rate": round(self.rate, 3),
            "bytes": self.bytes,
            "outcomes": dict(sorted(self.outcomes.items())),
            "reasons": dict(self.reasons),
            "latency_ms": {name: round(ms, 6) for name, ms in self.latencies.in_ms().items()},
        }
