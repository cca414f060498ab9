"""Tell which hosts' connections, and which peers' requests, mostly fail.

They are attackers, or misconfigured. They are served with even lower priority than others
that are not open yet (docs/decisions/0126-slow-service-for-those-that-fail.md).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import attrs
import structlog

log = structlog.get_logger("router.listener")

# Who has had more failures than this recently, and whose failures are a larger share of all tries
# than SHARE, fails most of the time. A try counts half after HALF_LIFE_S, so about five failures a
# second for a while are enough.
MANY: Final = 32
SHARE: Final = 0.8
HALF_LIFE_S: Final = 5.0
# Hosts that are remembered, which are those that connected last.
MOST_HOSTS: Final = 4096
# A failed login counts as this many unopened connections, besides its own connection: the router
# delays each by seconds, so there are few.
WEIGHT_OF_LOGIN: Final = 3
# Minimum time between two warnings.
WARN_EVERY_S: Final = 10.0


@attrs.define
class RecentTries:
    """Recent tries and failures, each of which counts less as time passes."""

    _counted_at: float = 0.0
    _tries: float = 0.0
    _failures: float = 0.0

    def tried(self, now: float, count: int = 1) -> None:
        """Count tries at the time `now` in seconds."""
        self._fade(now)
        self._tries += count

    def failed(self, now: float, count: int = 1) -> None:
        """Count failures; each is a try that is counted as such, too."""
        self._fade(now)
        self._failures += count

    def mostly_fail(self, now: float) -> bool:
        """Return whether there were many failures, and few tries that did not fail."""
        if self._failures <= MANY:
            return False
        self._fade(now)
        return self._failures > MANY and self._failures > SHARE * self._tries

    def _fade(self, now: float) -> None:
        if now == self._counted_at:
            return
        faded: float = 0.5 ** ((now - self._counted_at) / HALF_LIFE_S)
        self._tries *= faded
        self._failures *= faded
        self._counted_at = now


class FailingHosts:
    """Recent connections of each host, where a failure is one that ends before it is open.

    `clock` returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # the host that connected last comes last
        self._hosts: OrderedDict[str, RecentTries] = OrderedDict()
        self._warned_at = float("-inf")

    def count_opened(self, host: str) -> None:
        """Count a connection that has been opened."""
        self._tries_of(host).tried(self._clock())

    def count_failed_login(self, host: str) -> None:
        """Count a failed login; the end of its connection is counted besides."""
        self.count_unopened(host, WEIGHT_OF_LOGIN)

    def count_unopened(self, host: str, count: int = 1) -> None:
        """Count connections that have ended before they were open."""
        now, tries = self._clock(), self._tries_of(host)
        tries.tried(now, count)
        tries.failed(now, count)
        if now - self._warned_at >= WARN_EVERY_S and tries.mostly_fail(now):
            self._warned_at = now
            log.warning(
                "most connections end before they are open; others are served first", host=host
            )

    def is_failing(self, host: str) -> bool:
        """Return whether most of a host's recent connections ended unopened, and they were many."""
        tries = self._hosts.get(host)
        return tries is not None and tries.mostly_fail(self._clock())

    def _tries_of(self, host: str) -> RecentTries:
        tries = self._hosts.get(host)
        if tries is None:
            tries = self._hosts[host] = RecentTries()
            if len(self._hosts) > MOST_HOSTS:
                self._hosts.popitem(last=False)
        else:
            self._hosts.move_to_end(host)
        return tries
