"""Return memory to the system after load, and keep garbage collections short.

When a connection ends, its objects are freed, but their memory does not return to the system by
itself. Python keeps freed tuples, lists, dicts and floats for reuse, and a single one of these
objects keeps a whole mebibyte in use. The C library keeps free memory below its last allocation. So
memory is returned once many connections have closed, or much memory has been released
(docs/decisions/0023-memory-after-connections.md, 0079-accounts.md).
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable

# Fewer closed connections are not worth a collection. If this many are opened and closed between
# two checks, it is too early for one.
MANY = 100
# How many must have closed for each open one: a full collection scans the remaining objects. It
# takes some 70 us per connection with a session and a link, and no message is forwarded meanwhile.
GONE_SHARE = 4
# How long connections must have been quiet (few opened or closed) before memory is returned. Trio
# keeps the deadlines of lingering connections (`pump.LINGER_S`) until they pass, so less would be
# too early.
QUIET_S = 2.5
# If the kept octets have fallen by this much, and by at least half, memory is returned even if few
# connections have closed.
MUCH_BYTES = 16 * 1024 * 1024
# With this much or more left, a full collection would take longer than a turn should.
LITTLE_BYTES = 4 * 1024 * 1024
# Minimum time between two returns of memory. Memory is returned twice for each group of closed
# connections: the second time because other parts release theirs only after a while
# (`router.log_limits`).
AT_MOST_EVERY_S = 10.0

# Units of rare work after which new objects are collected, and units in a slice of deferred work.
CHURN = 64
CHURN_A_SLICE = 16


def _malloc_trim() -> Callable[[int], object] | None:
    """Return the C library's function that returns free memory to the system; only glibc has it."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None


def _cache_clearer() -> Callable[[], object]:
    """Return the interpreter's function that empties its cache of method lookups.

    The cache keeps alive the names that were looked up. Some of these names were made for a single
    lookup and lie scattered in memory.
    """
    # From Python 3.13 on, the first of these must be used.
    clear: Callable[[], object] = getattr(sys, "_clear_internal_caches", sys._clear_type_cache)
    return clear


_trim = _malloc_trim()
_clear_caches = _cache_clearer()


def give_back() -> None:
    """Empty Python's free lists by a full collection, and return free memory to the system."""
    _clear_caches()
    gc.collect()
    trim()


def trim() -> None:
    """Return the C library's free memory to the system, without a garbage collection."""
    if _trim is not None:
        _trim(0)


class Churn:
    """Counter of rare work that triggers garbage collections of new objects.

    Python itself runs a collection when many more objects have been made than freed. If as many
    links detach as attach, collections are rare, and each of them takes long because there are so
    many new objects (docs/decisions/0008-collector.md).
    """

    def __init__(self, collect: Callable[[int], object] = gc.collect) -> None:
        self._collect = collect
        self._left = CHURN

    def count(self, work: int = 1) -> None:
        """Count rare work; one unit of `work` is the attaching of one link."""
        self._left -= work
        if self._left <= 0:
            self._left = CHURN
            # the young generations, without long-lived objects
            self._collect(1)


class Reclaimer:
    """Trigger that returns memory to the system after many connections have closed.

    It also returns memory after much of it was released. In both cases it waits until few
    connections come and go, and then acts twice, at least `AT_MOST_EVERY_S` apart.
    """

    def __init__(
        self, act: Callable[[], None] = give_back, trim: Callable[[], None] = trim
    ) -> None:
        self._act = act
        self._trim = trim
        # when connections were last counted, and how many had been opened and closed by then
        self._checked_at = 0.0
        self._came = 0
        self._gone = 0
        # when memory was last returned; how many had closed by then, and by the previous return
        self._acted_at = -AT_MOST_EVERY_S
        self._gone_then = 0
        self._gone_before = 0
        # the most that was kept since the last return, and between that and the previous one
        self._most_kept = 0
        self._most_before = 0

    def check(
        self, now: float, came: int, present: int, kept_bytes: int = 0, *, is_busy: bool = False
    ) -> None:
        """Return memory to the system if it is time. Call this several times per second.

        `now` is in seconds. `came` is the count of all connections so far, `present` that of open
        ones, and `kept_bytes` is the memory that the router keeps for all peers. Nothing is
        returned while the router `is_busy` with deferred work: much memory may still be in use, and
        the collector would have to scan it.
        """
        self._most_kept = max(self._most_kept, kept_bytes)
        if is_busy or now - self._checked_at < QUIET_S:
            return
        gone = came - present
        moved = came - self._came + gone - self._gone
        self._checked_at = now
        self._came = came
        self._gone = gone
        are_many = gone - self._gone_before >= max(MANY, GONE_SHARE * present)
        dropped = max(self._most_kept, self._most_before) - kept_bytes
        is_much = dropped >= max(MUCH_BYTES, kept_bytes)
        if moved < MANY and (are_many or is_much) and now - self._acted_at >= AT_MOST_EVERY_S:
            self._most_before, self._most_kept = self._most_kept, kept_bytes
            self._acted_at = now
            self._gone_before = self._gone_then
            self._gone_then = gone
            if are_many or kept_bytes < LITTLE_BYTES:
                self._act()
            else:
                self._trim()
