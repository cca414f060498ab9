"""Hand-written decoder of FLOW, like that of TRANSFER in `reading` (section 2.7.4)."""

from __future__ import annotations

from router.amqp.reading import Cursor, malformed


class FlowFrame:
    """Fields of the last flow read (section 2.7.4)."""

    def __init__(self) -> None:
        self.has_next_incoming_id = False
        self.next_incoming_id = 0
        self.incoming_window = 0
        self.next_outgoing_id = 0
        self.outgoing_window = 0
        self.has_handle = False
        self.handle = 0
        self.has_delivery_count = False
        self.delivery_count = 0
        self.has_link_credit = False
        self.link_credit = 0
        self.available = 0
        self.drain = False
        self.echo = False
        # where its properties lie in the octets read; both 0 if it has none
        self.properties_at = 0
        self.properties_end = 0

    def read(self, cursor: Cursor) -> None:
        """Read the list of fields after the descriptor."""
        count = cursor.enter_list()
        cursor.end = cursor.value_end
        if count < 4 or count > 11:
            raise malformed(f"flow of {count} fields; 4 to 11 are allowed")
        self.has_next_incoming_id = not cursor.take_null()
        self.next_incoming_id = cursor.take_uint(0) if self.has_next_incoming_id else 0
        self.incoming_window = self._mandatory(cursor)
        self.next_outgoing_id = self._mandatory(cursor)
        self.outgoing_window = self._mandatory(cursor)
        self.has_handle = self.has_delivery_count = self.has_link_credit = False
        self.available = 0
        self.drain = self.echo = False
        self.properties_at = self.properties_end = 0
        if count > 4:
            self.has_handle = not cursor.take_null()
            self.handle = cursor.take_uint(0) if self.has_handle else 0
        if count > 5:
            self.has_delivery_count = not cursor.take_null()
            self.delivery_count = cursor.take_uint(0) if self.has_delivery_count else 0
        if count > 6:
            self.has_link_credit = not cursor.take_null()
            self.link_credit = cursor.take_uint(0) if self.has_link_credit else 0
        if count > 7:
            self.available = cursor.take_uint(0)
        if count > 8:
            self.drain = cursor.take_boolean(False)
        if count > 9:
            self.echo = cursor.take_boolean(False)
        if count > 10 and not cursor.take_null():
            self.properties_at = cursor.at
            cursor.skip()
            self.properties_end = cursor.at
        if cursor.at != cursor.end:
            raise malformed("a flow has more fields than the specification defines")

    def _mandatory(self, cursor: Cursor) -> int:
        if cursor.take_null():
            raise malformed("a flow has no incoming-window, next-outgoing-id or outgoing-window")
        return cursor.take_uint(0)
