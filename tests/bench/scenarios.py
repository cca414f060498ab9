"""Scenarios of the benchmark, each a row of the result tables, and the goals set for them."""

from __future__ import annotations

import attrs


@attrs.frozen
class Scenario:
    """A load, and how well a router should carry it.

    `pilot_count` messages are sent once to learn how fast a system is; measured runs send as many
    as take it seconds. Goals are upper limits on a router's processor time for each message, as a
    multiple of the relay's, of another router's, and of its own in the scenario `beside`; None
    where none is set.

    Where `container` is not empty, that end of the load, `send` or `receive`, is a container that
    waits until the router attaches a link to it, for an address that begins with `way`, which is
    also the container's id.
    """

    name: str
    body_bytes: int
    credit: int
    pilot_count: int
    pairs: int = 1
    fan_out: int = 1
    inflight: int = 0
    presettled: bool = False
    floor_goal: float | None = None
    other_goal: float | None = None
    way: str = ""
    container: str = ""
    beside: str = ""
    beside_goal: float | None = None

    @property
    def is_ping_pong(self) -> bool:
        """One message at a time, so its latency is the whole of its time."""
        return self.inflight == 1

    def arguments(self, count: int) -> list[str]:
        """Options for the load generator, but for where the router is."""
        options: dict[str, object] = {
            "--address": self.way or ("multicast/bench" if self.fan_out > 1 else "bench"),
            "--body": self.body_bytes,
            "--credit": self.credit,
            "--count": count,
            "--pairs": self.pairs,
            "--fan-out": self.fan_out,
            "--inflight": self.inflight,
        }
        if self.container:
            options |= {"--container": self.container, "--container-id": self.way}
        words = [str(word) for option in options.items() for word in option]
        # What was sent settled may be lost by right (part 2 section 2.6.12): count it.
        return [*words, "--presettled", "--lossy"] if self.presettled else words


def _with_container(beside: str, body_bytes: int, pilot_count: int) -> list[Scenario]:
    """Return the load of another scenario with a container at one end, in each variant."""
    ways = (
        ("link route to a container", "link-route", "receive"),
        ("link route from a container", "link-route", "send"),
        ("auto-link to a container", "auto-link-out", "receive"),
        ("auto-link from a container", "auto-link-in", "send"),
    )
    return [
        Scenario(
            f"{beside}, {what}",
            body_bytes,
            1000,
            pilot_count,
            way=way,
            container=end,
            beside=beside,
            beside_goal=1.3,
        )
        for what, way, end in ways
    ]


SCENARIOS = (
    Scenario("100 B, credit 1000", 100, 1000, 100_000, floor_goal=2.0, other_goal=1 / 8),
    Scenario("100 B, credit 100", 100, 100, 100_000),
    Scenario("100 B, ping-pong", 100, 1, 3_000, inflight=1, floor_goal=1.5, other_goal=1 / 2),
    Scenario("10 kB, credit 1000", 10_000, 1000, 20_000, floor_goal=1.5, other_goal=1 / 3),
    Scenario("10 kB, credit 100", 10_000, 100, 20_000),
    Scenario("10 kB, ping-pong", 10_000, 1, 3_000, inflight=1),
    Scenario("100 kB, credit 100", 100_000, 100, 2_000),
    Scenario("1 MB, credit 10", 1_000_000, 10, 200),
    Scenario("100 B, credit 1000, presettled", 100, 1000, 100_000, presettled=True),
    Scenario("100 B, credit 100, 20 pairs", 100, 100, 100_000, pairs=20),
    Scenario("100 B, credit 1000, multicast to 10", 100, 1000, 10_000, fan_out=10),
    *_with_container("100 B, credit 1000", 100, 100_000),
    *_with_container("10 kB, credit 1000", 10_000, 20_000),
)
