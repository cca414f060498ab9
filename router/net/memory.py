"""Memory goes back to the system once many connections have gone.

What a connection was made of is freed as it ends, but that is not yet given back: Python keeps
freed tuples, lists, dicts and floats for the next of their kind, and a single one of them keeps the
whole mebibyte that it lies in; the C library keeps what lies below its last allocation. Neither
ends by itself. (docs/decisions/0023-memory-after-connections.md)
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable

# What fewer connections leave behind is not worth looking for; and while so many come and go
# between two looks, it is too early.
MANY = 100
# So many must have gone for each that is left, since a full collection walks over what is left:
# some 70 us for a connection with a session and a link, in which nothing is forwarded.
GONE_SHARE = 4
# How long to look whether many come and go. Trio keeps the deadlines of those who lingered
# (`pump.LINGER_S`) until they pass, so that less would be too early.
QUIET_S = 2.5
# A router that kept so much more than it does, and more than it still does, has something to give
# back, however few have gone.
MUCH_BYTES = 16 * 1024 * 1024
# With more than this left a full collection would take longer than a turn should.
LITTLE_BYTES = 4 * 1024 * 1024
# How often at most it is done. It is done twice for those that went: the second time for what
# others let go of only after a while (`router.floods`).
AT_MOST_EVERY_S = 10.0


def _malloc_trim() -> Callable[[int], object] | None:
    """The C library's function that gives free memory back; only glibc has one, and needs one."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None


def _cache_clearer() -> Callable[[], object]:
    """The interpreter's function that makes it forget where it found methods.

    That cache holds the names that were looked for, some of them made for one look and scattered.
    """
    # From Python 3.13 on the first is the one to use.
    clear: Callable[[], object] = getattr(sys, "_clear_internal_caches", sys._clear_type_cache)
    return clear


_trim = _malloc_trim()
_clear_caches = _cache_clearer()


def give_back() -> None:
    """Empty Python's free lists, as nothing but a full collection does, and let go what is free."""
    _clear_caches()
    gc.collect()
    trim()


def trim() -> None:
    """Let go what the C library has free, and walk over nothing."""
    if _trim is not None:
        _trim(0)


class Reclaimer:
    """Decides when memory is given back: twice, once many connections have gone and few come, or
    much of what they made the router keep.
    """

    def __init__(
        self, act: Callable[[], None] = give_back, trim: Callable[[], None] = trim
    ) -> None:
        self._act = act
        self._trim = trim
        # when it was last looked at who came and went, and how many had by then
        self._looked_at = 0.0
        self._came = 0
        self._gone = 0
        # when memory was last given back, how many had gone by then, and how many the time before
        self._acted_at = -AT_MOST_EVERY_S
        self._gone_then = 0
        self._gone_before = 0
        # the most that was kept since it was given back last, and in the time before
        self._most_kept = 0
        self._most_before = 0

    def look(self, now: float, came: int, present: int, kept_bytes: int = 0) -> None:
        """Give memory back if it is time; `came` counts all connections ever, `present` those that
        are there, and `kept_bytes` is what they make the router keep. `now` is in seconds; to be
        called some times a second.
        """
        self._most_kept = max(self._most_kept, kept_bytes)
        if now - self._looked_at < QUIET_S:
            return
        gone = came - present
        moved = came - self._came + gone - self._gone
        self._looked_at = now
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
