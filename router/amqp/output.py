"""The output buffer of one connection: frames are written at its end and sent from its begin.

One buffer per connection, so that whatever a pass has to say leaves with one send. It grows to
what is waiting, compacts instead of growing while the octets already sent leave room, and keeps
its memory between passes: giving 256 KiB back to the kernel after each send costs more than the
send. A connection that has been quiet for a while calls `trim`, so an idle one holds nothing.
"""

from __future__ import annotations

from typing import Any

from router.amqp import octets

# The first allocation; most passes of a lightly used connection fit into it.
FIRST_BYTES = 4096
# A buffer that a stalled receiver made larger than this is given back as soon as it is empty.
KEEP_BYTES = 1048576


class Output:
    """Octets to be sent: `octets[begin:end]`."""

    def __init__(self) -> None:
        self.octets: Any = memoryview(bytearray(0))
        self.begin = 0
        self.end = 0

    def reserve(self, count: int) -> None:
        """Make sure that `count` octets can be written at `end`."""
        if len(self.octets) - self.end < count:
            self._grow(count)

    def _grow(self, count: int) -> None:
        held = self.end - self.begin
        size = max(len(self.octets), FIRST_BYTES)
        # Growing by half as much again keeps appending linear; compacting alone would let a
        # nearly full buffer shift itself for every frame.
        while size < held + held // 2 + count:
            size *= 2
        target = memoryview(bytearray(size))
        octets.copy(target, 0, self.octets, self.begin, held)
        self.octets = target
        self.begin = 0
        self.end = held

    def size(self) -> int:
        """Octets written and not yet sent."""
        return self.end - self.begin

    def waiting(self) -> memoryview:
        """A view of the octets to send; do not keep it across a write."""
        return memoryview(self.octets)[self.begin : self.end]

    def sent(self, count: int) -> None:
        """Forget the first `count` octets, which the socket has taken."""
        self.begin += count
        if self.begin == self.end:
            self.begin = self.end = 0
            if len(self.octets) > KEEP_BYTES:
                self.octets = memoryview(bytearray(0))

    def trim(self) -> None:
        """Give the memory back if nothing waits in it."""
        if self.begin == self.end:
            self.clear()

    def clear(self) -> None:
        """Drop everything, the memory too."""
        self.begin = self.end = 0
        self.octets = memoryview(bytearray(0))

    def append(self, data: bytes) -> None:
        """Write a whole frame that another codec made."""
        count = len(data)
        self.reserve(count)
        octets.copy(self.octets, self.end, data, 0, count)
        self.end += count
