"""Memory goes back once many connections have gone: when, and that it does."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from router import build
from router.net.memory import (
    AT_MOST_EVERY_S,
    CHURN,
    CHURN_A_SLICE,
    GONE_SHARE,
    MANY,
    MUCH_BYTES,
    QUIET_S,
    Churn,
    Reclaimer,
    give_back,
)

from support.raw_peers import RawPeer
from support.routers import PLAIN, RouterProcess, StartRouter

# What a router should be asked to hold at once, and how much of it may remain. Seven to fourteen
# MiB do, however many connections there were (docs/decisions/0023-memory-after-connections.md), and
# without giving back nearly all of it. So there are many, which take some 27 MiB.
CONNECTIONS = 1500
REMAINS = 0.7
PATIENCE_LOOKS = 600
CHECK_S = 0.1

QUIET_LOG = PLAIN + '\n[log]\nlevel = "warning"\n'


class Acts:
    """A reclaimer with a clock of its own, which counts what it does."""

    def __init__(self) -> None:
        self.count = 0
        self.now = 1000.0
        self._reclaimer = Reclaimer(self._act)

    def _act(self) -> None:
        self.count += 1

    def after(self, seconds: float, came: int, present: int) -> int:
        """Let time pass with looks four times a second.

        Return how often memory was given back meanwhile.
        """
        before = self.count
        for _ in range(round(seconds * 4)):
            self.now += 0.25
            self._reclaimer.check(self.now, came, present)
        return self.count - before


def test_memory_is_given_back_twice_after_many_have_gone() -> None:
    acts = Acts()
    assert acts.after(60, 1000, 1000) == 0
    # the first look sees them go, and the next one that it is quiet
    assert acts.after(2 * QUIET_S, 1000, 0) == 1
    assert acts.after(AT_MOST_EVERY_S - 2 * QUIET_S, 1000, 0) == 0
    assert acts.after(2 * QUIET_S, 1000, 0) == 1
    assert acts.after(1000, 1000, 0) == 0


def test_a_few_are_not_worth_it() -> None:
    acts = Acts()
    assert acts.after(100, MANY - 1, 0) == 0
    # but they add up
    assert acts.after(100, MANY, 0) == 2


def test_while_many_come_and_go_it_is_too_early() -> None:
    acts = Acts()
    for round_number in range(1, 20):
        assert acts.after(QUIET_S, round_number * MANY, 0) == 0
    # a few do not matter
    for one in range(19 * MANY, 19 * MANY + 5):
        acts.after(QUIET_S, one, 0)
    assert acts.count == 2


def test_it_is_not_done_while_many_stay() -> None:
    acts = Acts()
    stay = 2 * MANY
    assert acts.after(100, GONE_SHARE * stay + stay - 1, stay) == 0
    assert acts.after(100, GONE_SHARE * stay + stay, stay) == 2


def test_who_went_between_the_two_times_counts_for_the_next_two() -> None:
    acts = Acts()
    assert acts.after(2 * QUIET_S, MANY, 0) == 1
    assert acts.after(100, 2 * MANY, 0) == 2
    assert acts.after(100, 2 * MANY, 0) == 0


def test_giving_back_can_be_done_at_any_time() -> None:
    give_back()
    give_back()


# In a process.


def resident_bytes(router: RouterProcess) -> int:
    """Return the resident memory of a process, as the kernel states it."""
    for line in Path(f"/proc/{router.pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def resident_below(router: RouterProcess, limit: float) -> int:
    """Look until a process has become so small, or for as long as can be expected."""
    for _ in range(PATIENCE_LOOKS):
        if resident_bytes(router) <= limit:
            break
        with pytest.raises(subprocess.TimeoutExpired):
            router.process.wait(CHECK_S)
    return resident_bytes(router)


def open_many(router: RouterProcess, held: ExitStack) -> None:
    """Open connections with a session and a link each."""
    for number in range(CONNECTIONS):
        peer = held.enter_context(RawPeer(router.port))
        peer.open()
        peer.attach_receiver(f"memory/{number}", 10)


@pytest.mark.skipif(
    bool((build.record(Path(build.__file__).parent) or {}).get("sanitized")),
    reason="sanitizers keep what is freed",
)
def test_what_connections_took_is_given_back(start_router: StartRouter) -> None:
    router = start_router(QUIET_LOG)
    with RawPeer(router.port) as first:
        first.open()
    fresh = resident_bytes(router)
    for _ in range(2):
        with ExitStack() as held:
            open_many(router, held)
            most = resident_bytes(router)
        limit = fresh + REMAINS * (most - fresh)
        assert resident_below(router, limit) <= limit


class Kept:
    """A reclaimer that is told how much is kept, and notes what it does."""

    def __init__(self) -> None:
        self.acts: list[str] = []
        self.now = 1000.0
        self._reclaimer = Reclaimer(
            lambda: self.acts.append("collect"), lambda: self.acts.append("trim")
        )

    def after(self, seconds: float, kept_bytes: int, *, is_busy: bool = False) -> list[str]:
        """Let time pass with as much kept, and return what was done meanwhile."""
        before = len(self.acts)
        for _ in range(round(seconds * 4)):
            self.now += 0.25
            self._reclaimer.check(self.now, 2, 1, kept_bytes, is_busy=is_busy)
        return self.acts[before:]


def test_memory_is_given_back_twice_once_much_of_what_few_had_is_gone() -> None:
    kept = Kept()
    assert kept.after(60, 2 * MUCH_BYTES) == []
    assert kept.after(2 * QUIET_S, 1000) == ["collect"]
    assert kept.after(60, 1000) == ["collect"]
    assert kept.after(60, MUCH_BYTES // 2) == []
    assert kept.after(60, 1000) == []


def test_nothing_is_walked_over_where_much_is_left() -> None:
    kept = Kept()
    assert kept.after(60, 4 * MUCH_BYTES) == []
    assert kept.after(60, 2 * MUCH_BYTES) == ["trim", "trim"]
    assert kept.after(60, 2 * MUCH_BYTES - MUCH_BYTES // 2) == []


def test_what_is_being_taken_apart_is_not_walked_over() -> None:
    kept = Kept()
    # much is kept at one look only, which comes while there is more to do
    assert kept.after(0.25, 2 * MUCH_BYTES, is_busy=True) == []
    assert kept.after(60, 1000, is_busy=True) == []
    assert kept.after(0.25, 1000) == ["collect"]


def test_new_objects_are_walked_over_after_so_much_rare_work() -> None:
    walks: list[int] = []
    churn = Churn(walks.append)
    for _ in range(CHURN - 1):
        churn.count()
    assert walks == []
    churn.count()
    for _ in range(CHURN // CHURN_A_SLICE):
        churn.count(CHURN_A_SLICE)
    # what lives long is left alone
    assert walks == [1, 1]
