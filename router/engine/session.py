"""Data plane of a session: windows, delivery-ids, and the frames that come once per message.

Section 2.5.6 defines the windows, 2.6.7 link credit, 2.6.12 deliveries. Rare frames are handled in
`attaching`. Dispositions and flows are noted, merged where possible, and written by `write_due`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from router.amqp import codes
from router.amqp.reading import TransferFrame
from router.amqp.reading_disposition import DispositionFrame
from router.amqp.reading_flow import FlowFrame
from router.amqp.writing import write_disposition, write_transfer
from router.engine import blocking, dispositions, flows, rare_transfers, serial, tags, violations
from router.engine.delivery import STUCK_INCOMING, STUCK_OUTGOING, Delivery
from router.engine.handler import Handler
from router.engine.link import IncomingLink, Link, OutgoingLink
from router.engine.numbers import Numbers
from router.engine.outbox import Outbox
from router.engine.slots import Slots
from router.engine.states import LinkState
from router.engine.unsettled import Unsettled
from router.engine.window import IncomingWindow

if TYPE_CHECKING:
    from router.amqp.types import Octets
    from router.engine.connection import Connection

ATTACHED = int(LinkState.ATTACHED)
# added to the state's code in `due_code`: the deliveries are not settled
UNSETTLED = 0x100
INCOMING, OUTGOING = STUCK_INCOMING, STUCK_OUTGOING  # bits of a delivery's `stuck`


class Session:
    """Session endpoint (section 2.5)."""

    def __init__(
        self, connection: Connection, channel: int, window_limit: int, largest_frame_bytes: int
    ) -> None:
        self.connection = connection
        # for the core: the object that it was begun for; None if the peer began it
        self.owner: Any = None
        # for the core: the outcomes that the peer understands (`peer_outcomes`), None for all
        self.peer_outcomes: Any = None
        self.outbox: Outbox = connection.outbox
        self.handler: Handler = connection.handler
        self.channel = channel
        self.remote_channel, self.state = -1, 0
        # the octets charged to the peer for this session
        self.charged = 0
        self.next_outgoing_id = self.remote_incoming_window = self.next_incoming_id = 0
        # only tracked, not enforced: a peer that exceeds it only contradicts itself, and many
        # clients announce a window that they do not respect
        self.remote_outgoing_window = 0
        self.window = IncomingWindow(window_limit, largest_frame_bytes)
        self.max_frame_payload = 0
        self.incoming = Unsettled()
        self.outgoing = Unsettled()
        self.next_delivery_id, self.expected_delivery_id = 0, -1
        # on all links, including those that have ended
        self.received_deliveries = self.sent_deliveries = 0
        # links by the peer's handle (the one in its frames) and by ours
        self.links = Slots()
        # the link of the last transfer; the next transfer is usually for the same one
        self.recent_link: IncomingLink | None = None
        # the handle of the link whose credit last ran out
        self.no_credit_handle = 0
        self.local_links: dict[int, Link] = {}
        self.handles = Numbers()
        # links of ours whose attach the peer has not answered, by name and whether we receive
        self.unanswered: dict[tuple[str, bool], Link] = {}
        # links detached with an error, until the peer has detached them as well, by the same key
        self.errant: dict[tuple[str, bool], Link] = {}
        # the peer's handles that a late flow may name (`late_flows`); None if there never were any
        self.late_handles: dict[int, str] | None = None
        self.handle_max = self.remote_handle_max = 0
        # the disposition being merged, and what else is due at the end of the turn
        self.due_first = self.due_last = self.due_code = 0
        self.has_due = self.flow_due = self.window_due = self.in_due = False
        self.links_due: list[Link] = []
        # the links that wait for the peer's window to open; None if none ever did
        self.blocked_links: blocking.BlockedLinks | None = None

    # Incoming frames.

    def transfer_received(self, frame: TransferFrame) -> None:
        """Process one transfer frame and pass its delivery to the handler."""
        if self.window.size <= 0:
            raise violations.window_exceeded()
        size = frame.end - frame.payload_at
        if self.window.spend(size):
            self.schedule_opening()
        self.next_incoming_id = serial.add(self.next_incoming_id, 1)
        self.remote_outgoing_window -= 1
        link = self.recent_link
        if link is None or link.remote_handle != frame.handle or link.state != ATTACHED:
            link = self.recent_link = self.incoming_link(frame.handle)
        if link is None:
            rare_transfers.ignore(self, frame)
            return
        delivery = link.current
        if delivery is None:
            delivery = self._begin_incoming(link, frame)
            if delivery is None:
                return
        elif (
            frame.has_delivery_id
            or frame.has_delivery_tag
            or frame.message_format
            or frame.is_unusual
        ) and not rare_transfers.check_later_transfer(delivery, frame):
            return
        if frame.settled and not delivery.settled:
            # Settling on a later frame settles the whole delivery (section 2.7.5).
            delivery.settled = True
            self.close_incoming(delivery)
        delivery.size += size
        if frame.aborted:
            link.current = None
            delivery.complete = True
            self.close_incoming(delivery)
            self.handler.transfer_aborted(delivery)
            return
        if link.max_message_size and delivery.size > link.max_message_size:
            error = violations.message_too_large(delivery.size, link.max_message_size)
            self.connection.fail_link(link, error)
            return
        delivery.complete = not frame.more
        link.current = delivery if frame.more else None
        self.handler.transfer_received(delivery, frame)

    def incoming_link(self, handle: int) -> IncomingLink | None:
        """Return the link that a transfer names, or None if the link is or will be detached."""
        found = self.links.find(handle)
        if not isinstance(found, IncomingLink):
            raise violations.not_incoming(found, handle, self.handle_max)
        link = found
        return link if link.state == ATTACHED and link.close_error is None else None

    def _begin_incoming(self, link: IncomingLink, frame: TransferFrame) -> Delivery | None:
        """Begin a delivery with its first frame; return None if an error detached the link."""
        if not (frame.has_delivery_id and frame.has_delivery_tag):
            raise violations.incomplete(frame.has_delivery_id)
        number = frame.delivery_id
        if self.expected_delivery_id >= 0 and number != self.expected_delivery_id:
            raise violations.out_of_order(number, self.expected_delivery_id)
        self.expected_delivery_id = serial.add(number, 1)
        if link.credit == 0 and not link.overdraws():
            self.connection.fail_link(link, violations.no_credit())
            return None
        link.credit -= 1
        if link.credit == 0:
            link.no_credit_since = self.outbox.turn.now
            self.no_credit_handle = link.handle
        link.delivery_count = serial.add(link.delivery_count, 1)
        link.deliveries += 1
        self.received_deliveries += 1
        delivery = Delivery.__new__(Delivery)
        delivery.incoming = link
        delivery.incoming_id = number
        delivery.message_format = frame.message_format
        is_rare = link.settles_second or frame.is_unusual
        if is_rare and not rare_transfers.note_first_transfer(delivery, frame):
            return None
        tags.take(delivery, frame)
        if frame.settled:
            delivery.settled = True
        else:
            delivery.incoming_open = True
            link.unsettled += 1
            self.incoming.add(number, delivery)
        return delivery

    def disposition_received(self, frame: DispositionFrame) -> None:
        """Pass the state in a disposition to the core for each delivery in its range."""
        dispositions.process(self, frame)

    def flow_received(self, frame: FlowFrame) -> None:
        """Process a flow for the session, or for the session and one of its links."""
        flows.process(self, frame)

    # Outgoing frames.

    def can_send(self, link: OutgoingLink) -> bool:
        """Return whether a delivery can begin on this link now; if not, the link waits for room."""
        if link.credit == 0 or link.current is not None or link.state != ATTACHED:
            return False
        if self.remote_incoming_window > 0 and not self.outbox.congested:
            return True
        if link.blocked_in is None:
            blocking.block(self, link)
        return False

    def awaits_credit(self) -> bool:
        """Return whether the sender that most recently used up its credit still waits for more.

        It waits while its link has neither credit nor unsettled deliveries.
        """
        link = self.local_links.get(self.no_credit_handle)
        return link is not None and link.credit == 0 and link.unsettled == 0

    def begin_outgoing(self, link: OutgoingLink, delivery: Delivery) -> None:
        """Give a delivery an id and tag on a link, and use one credit; `send` writes the frames."""
        delivery.outgoing = link
        delivery.outgoing_id = self.next_delivery_id
        self.next_delivery_id = serial.add(self.next_delivery_id, 1)
        link.credit -= 1
        if link.credit == 0:
            link.no_credit_since = self.outbox.turn.now
        link.delivery_count = serial.add(link.delivery_count, 1)
        link.deliveries += 1
        self.sent_deliveries += 1
        is_settled = delivery.settled or link.presettles
        if link.terminus is not None:
            if delivery.tag is None:
                delivery.tag = link.terminus.new_tag()
        elif is_settled:
            tags.keep(delivery)
        else:
            tags.choose(link, delivery)
        if not is_settled:
            delivery.outgoing_open = True
            link.unsettled += 1
            self.outgoing.add(delivery.outgoing_id, delivery)
        else:
            link.presettled += 1

    def send(self, delivery: Delivery, view: Octets, start: int, end: int, more: bool) -> int:
        """Write `view[start:end]` as frames of the delivery, as far as the peer's window allows.

        The window must be open. Returns the offset reached: before `end` only if the window closed.
        """
        link = delivery.outgoing
        room = self.max_frame_payload
        if delivery.settled and delivery.outgoing_open:
            self.close_outgoing(delivery)
        settled = delivery.settled or link.presettles
        if delivery.state is not None and not delivery.started:
            return rare_transfers.send_stated(delivery, view, start, end, more)
        while self.remote_incoming_window > 0:
            count = end - start
            partial = count > room
            if partial:
                count = room
            write_transfer(
                self.outbox.output, self.channel, link.handle, not delivery.started,
                delivery.outgoing_id, delivery.tag, delivery.kept_tag_size, delivery.tag_word,
                delivery.message_format, settled,
                more or partial, False, view, start, count, delivery.batchable,
            )  # fmt: skip
            self.remote_incoming_window -= 1
            self.next_outgoing_id = serial.add(self.next_outgoing_id, 1)
            start += count
            delivery.started = True
            if not partial:
                self.outbox.touch()
                return start
        self.outbox.touch()
        blocking.block(self, link)
        return start

    def send_state_to_sender(
        self, delivery: Delivery, settled: bool, code: int, view: Octets, start: int, count: int
    ) -> None:
        """Send a delivery's state to its sender; forget the delivery if it is settled.

        A state without fields (`count` 0) is merged with those of adjacent deliveries.
        """
        if not delivery.incoming_open:
            if delivery.suspended is not None and settled:
                delivery.suspended.settled(delivery, code, memoryview(view)[start : start + count])
            return
        if settled:
            self.close_incoming(delivery)
        if count == 0:
            self._merge(delivery.incoming_id, code if settled else code | UNSETTLED)
            return
        if self.has_due:
            self._write_due_disposition()
        self._send_state(True, delivery.incoming_id, settled, code, view, start, count)

    def settle_with_code(self, delivery: Delivery, code: int) -> None:
        """Settle an incoming delivery with a state without fields; merge it with adjacent ones."""
        if delivery.incoming_open:
            self.close_incoming(delivery)
            self._merge(delivery.incoming_id, code)
        elif delivery.suspended is not None:
            delivery.suspended.settled(delivery, code, b"")

    def _merge(self, number: int, code: int) -> None:
        """Note that a state without fields is due; merge it with the last one if possible."""
        if self.has_due and code == self.due_code and number == serial.add(self.due_last, 1):
            self.due_last = number
        else:
            if self.has_due:
                self._write_due_disposition()
            self.has_due = True
            self.due_first = self.due_last = number
            self.due_code = code
            self._schedule()

    def send_state_to_receiver(
        self, delivery: Delivery, settled: bool, code: int, view: Octets, start: int, count: int
    ) -> None:
        """Send a delivery's state to its receiver, but during congestion only if `settled`."""
        if not delivery.outgoing_open or (self.outbox.congested and not settled):
            return
        if settled:
            self.close_outgoing(delivery)
        self._send_state(False, delivery.outgoing_id, settled, code, view, start, count)

    def _send_state(
        self,
        to_sender: bool,
        number: int,
        settled: bool,
        code: int,
        view: Octets,
        start: int,
        count: int,
    ) -> None:
        """Write a disposition for one delivery; omit fields of a state too large for a frame."""
        if count > self.max_frame_payload:
            count = 0
            code = codes.NO_STATE if code == codes.UNREAD_STATE else code
        if to_sender and self.peer_outcomes is not None:
            word = self.peer_outcomes.code_to_send(code, settled)
            if word != code:
                code, count = word, 0
        if code >= 0:
            write_disposition(
                self.outbox.output, self.channel, to_sender, number, number, settled, code,
                view, start, count,
            )  # fmt: skip
            self._schedule()

    def close_incoming(self, delivery: Delivery) -> None:
        """Forget an incoming delivery that is settled, or that can no longer be settled."""
        if delivery.incoming_open:
            delivery.incoming_open = False
            delivery.incoming.unsettled -= 1
            if delivery.stuck & INCOMING:
                delivery.stuck -= INCOMING
                delivery.incoming.stuck -= 1
            self.incoming.remove(delivery.incoming_id)

    def close_outgoing(self, delivery: Delivery) -> None:
        """Forget an outgoing delivery that is settled, or that can no longer be settled."""
        if delivery.outgoing_open:
            delivery.outgoing_open = False
            delivery.outgoing.unsettled -= 1
            if delivery.tag is not None:
                tags.release(delivery.outgoing, delivery)
            if delivery.stuck & OUTGOING:
                delivery.stuck -= OUTGOING
                delivery.outgoing.stuck -= 1
            self.outgoing.remove(delivery.outgoing_id)

    # Frames that are due at the end of the turn.

    def grant(self, link: IncomingLink, credit: int, drain: bool) -> None:
        """Set the credit of a link's sender to `credit` messages, and note that a flow is due."""
        link.credit = credit
        link.drain = drain
        if drain:
            link.drain_unanswered = True
        if link.overdraft < link.least_overdraft:
            link.overdraft = link.least_overdraft
        self.schedule_link_flow(link)

    def schedule_link_flow(self, link: Link) -> None:
        """Note that the link's flow state is to be sent at the end of the turn."""
        if not link.flow_due:
            link.flow_due = True
            self.links_due.append(link)
        self._schedule()

    def use_up_credit(self, link: OutgoingLink) -> None:
        """Answer a drain by using up the credit: add it to the delivery-count (section 2.6.7)."""
        link.delivery_count = serial.add(link.delivery_count, link.credit)
        link.credit = 0
        link.no_credit_since = self.outbox.turn.now
        link.drain_due = False
        self.schedule_link_flow(link)

    def held_frames_gone(self) -> None:
        """Note that frames held back were forwarded; open the window at once or with a delay."""
        self.window.is_moving = True
        # a used-up window is checked once per turn, because that check visits all links
        if self.window.size <= 0 or self.window_due or self.window.can_open(self.local_links):
            self.schedule_opening()
        elif self.window.delayed_since < 0:
            flows.delay_opening(self)

    def schedule_opening(self) -> None:
        """Open the window at the end of the turn, if it can be opened far enough."""
        self.window_due = True
        self._schedule()

    def schedule_flow(self) -> None:
        """Note that the session's windows are to be sent at the end of the turn."""
        self.flow_due = True
        self._schedule()

    def _schedule(self) -> None:
        self.outbox.touch()
        if not self.in_due:
            self.in_due = True
            self.connection.sessions_due.append(self)

    def write_due(self) -> None:
        """Write the dispositions and flows that are due at the end of the turn."""
        self.in_due = False
        if self.has_due:
            self._write_due_disposition()
        if self.window_due and flows.prepare_opening(self):
            self.flow_due = True
        self.window_due = False
        if not self.flow_due and not self.links_due:
            return
        share = self.connection.window_share(self.window.held_frames > 0)
        before = self.window.size
        self.window.widen(share, self.local_links)
        told = False
        for link in self.links_due:
            link.flow_due = False
            if link.is_attached():
                flows.write(self, link)
                told = True
        if not told and (self.flow_due or self.window.size != before):
            # all of these links may be detached by now; their flows would have included the windows
            flows.write(self, None)
        self.links_due.clear()
        self.flow_due = False

    def _write_due_disposition(self) -> None:
        self.has_due = False
        settled = self.due_code < UNSETTLED
        code = self.due_code & 0xFF
        if self.peer_outcomes is not None:
            code = self.peer_outcomes.code_to_send(code, settled)
        if code >= 0:
            write_disposition(
                self.outbox.output, self.channel, True, self.due_first, self.due_last,
                settled, code, b"", 0, 0,
            )  # fmt: skip
