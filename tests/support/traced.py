"""Memory that Python's own objects take, by its allocator."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable


def traced_bytes(action: Callable[[], object]) -> int:
    """Return how many octets more are held after an action; what it returns is held, too."""
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = action()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        del kept
        return after - before
    finally:
        tracemalloc.stop()
