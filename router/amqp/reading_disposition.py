"""Hand-written decoder of DISPOSITION, like that of TRANSFER in `reading` (section 2.7.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.amqp import codes
from router.amqp.outcomes import check_state
from router.amqp.reading import Cursor, malformed

if TYPE_CHECKING:
    from router.amqp.octets import Buffer


class DispositionFrame:
    """Fields of the last disposition read (section 2.7.6).

    `state_code` is one of the states in `codes`, and `octets[state_at:state_end]` is the encoded
    state. `plain` says that the state has no fields.
    """

    def __init__(self) -> None:
        self.octets: Buffer = memoryview(b"")
        self.from_receiver = False
        self.first = 0
        self.last = 0
        self.settled = False
        self.state_code = codes.NO_STATE
        self.state_at = 0
        self.state_end = 0
        self.plain = True
        self.batchable = False

    def read(self, cursor: Cursor) -> None:
        """Read the list of fields after the descriptor."""
        count = cursor.enter_list()
        cursor.end = cursor.value_end
        if count < 2:
            raise malformed("a disposition lacks the field role or first")
        if count > 6:
            raise malformed(f"disposition of {count} fields; 2 to 6 are allowed")
        if cursor.at >= cursor.end or cursor.octets[cursor.at] == 0x40:
            raise malformed("a disposition lacks the field role")
        self.from_receiver = cursor.take_boolean(False)
        if cursor.at >= cursor.end or cursor.octets[cursor.at] == 0x40:
            raise malformed("a disposition lacks the field first")
        self.first = cursor.take_uint(0)
        self.last = self.first
        self.settled = False
        self.state_code = codes.NO_STATE
        self.state_at = self.state_end = 0
        self.plain = True
        self.batchable = False
        if count > 2:
            self.last = cursor.take_uint(self.first)
        if count > 3:
            self.settled = cursor.take_boolean(False)
        if count > 4:
            self._read_state(cursor)
        if count > 5:
            self.batchable = cursor.take_boolean(False)
        if cursor.at != cursor.end:
            raise malformed("a disposition's list is longer than its fields")

    def copy(self) -> DispositionFrame:
        """Return a copy that later reads do not change, and whose `octets` are only the state."""
        copy = DispositionFrame()
        copy.octets = bytes(memoryview(self.octets)[self.state_at : self.state_end])
        copy.from_receiver = self.from_receiver
        copy.first = self.first
        copy.last = self.last
        copy.settled = self.settled
        copy.state_code = self.state_code
        copy.state_end = self.state_end - self.state_at
        copy.plain = self.plain
        copy.batchable = self.batchable
        return copy

    def _read_state(self, cursor: Cursor) -> None:
        start = cursor.at
        if cursor.take_null():
            return
        cursor.skip()
        self.state_at = start
        self.state_end = cursor.at
        cursor.at = start
        code = cursor.take_descriptor()
        is_outcome = codes.RECEIVED <= code <= codes.MODIFIED
        if is_outcome or code == codes.DECLARED or code == codes.TRANSACTIONAL:
            self.state_code = int(code)
            # list0, or an empty list8: the outcome is its descriptor alone
            left = self.state_end - cursor.at
            self.plain = left == 1 or (left == 3 and cursor.octets[cursor.at + 2] == 0)
        else:
            self.state_code = codes.UNREAD_STATE
            self.plain = False
        cursor.at = self.state_end
        if not self.plain:
            check_state(bytes(memoryview(cursor.octets)[start : cursor.at]))
