"""Check the sections of each message as it arrives, before any receiver gets it.

A message whose sections are out of order, doubled or of a wrong type cannot be read by any
receiver. It is rejected, and aborted towards receivers that got a part of it. Delivery annotations
are meant for the router and not forwarded (section 3.2.2), and message annotations under the
router's own names are removed (`router_annotations`). The contents of messages in a format other
than AMQP's own (0) are not checked.

A message is forwarded once its whole head (header and annotations) has been received.
"""

from __future__ import annotations

from router.amqp.annotations import have_no_own_keys
from router.amqp.constants import Condition
from router.amqp.reading import TransferFrame
from router.amqp.section_scan import SectionScan, is_plain
from router.core.deliveries import router_annotations, trace_context
from router.core.routers.membership import ROLES
from router.engine.delivery import Delivery
from router.errors import AmqpError

# Size limit, in octets, of a head that continues in another frame.
MAX_HEAD_BYTES = 32768
# Incomplete heads may take the router's memory limit divided by this.
PART_HELD = 8


class Intake:
    """Checker of the sections of all messages that a router receives.

    `problem` and `condition` say what is wrong with the message that was checked last; `problem` is
    empty if nothing is wrong.
    """

    def __init__(self, limit_bytes: int) -> None:
        # scan that is reused for messages of one frame; a message of several frames keeps it
        self.spare = SectionScan()
        self.problem = ""
        self.condition = ""
        # octets of incomplete heads
        self.held_bytes = 0
        self.limit_bytes = limit_bytes // PART_HELD

    def begin(self, delivery: Delivery, frame: TransferFrame) -> TransferFrame | None:
        """Check one of a delivery's first frames, which carry the header and the annotations.

        Once these sections are complete, return the frame to forward, which contains all of them.
        Return None while they are incomplete, or if the message is malformed; in the latter case
        `problem` is not empty.
        """
        if delivery.scan is None and (
            delivery.message_format or (not frame.more and is_plain(frame))
        ):
            return frame
        return self._scan(delivery, frame)

    def _scan(self, delivery: Delivery, frame: TransferFrame) -> TransferFrame | None:
        scan = delivery.scan
        if scan is None:
            scan = self.spare
            scan.start()
            if frame.more:
                delivery.scan = scan
                self.spare = SectionScan()
        else:
            self.held_bytes -= len(scan.pending)
        self.problem = ""
        if not scan.feed(frame) or (not frame.more and not scan.finish()):
            self._refuse(delivery, Condition.DECODE_ERROR, scan.problem)
            return None
        if not scan.is_headed:
            self._hold(delivery, scan)
            return None
        sound: TransferFrame = scan.frame
        if scan.left_out and delivery.incoming.session.connection.settings.role in ROLES:
            delivery.sample = trace_context.read(scan.left_out)
        if not scan.annotations_end or have_no_own_keys(
            sound, scan.annotations_at, scan.annotations_end
        ):
            return sound
        try:
            return router_annotations.remove_annotations(delivery, sound)
        except AmqpError as error:
            self._refuse(delivery, Condition.DECODE_ERROR, error.description)
            return None

    def follow(self, delivery: Delivery, frame: TransferFrame) -> TransferFrame | None:
        """Check a later frame; return the frame to forward, or None if the message is malformed."""
        scan: SectionScan = delivery.scan
        if not scan.feed(frame) or (not frame.more and not scan.finish()):
            self._refuse(delivery, Condition.DECODE_ERROR, scan.problem)
            return None
        return scan.frame

    def forget(self, delivery: Delivery) -> None:
        """Release the incomplete header and annotations of a delivery that does not continue."""
        scan = delivery.scan
        if scan is not None and not scan.is_headed:
            self.held_bytes -= len(scan.pending)
            delivery.scan = None

    def _hold(self, delivery: Delivery, scan: SectionScan) -> None:
        """Keep the incomplete header and annotations; refuse the message if they are too large."""
        count = len(scan.pending)
        if count > MAX_HEAD_BYTES:
            problem = (
                f"the message's header and annotations do not end within the first {count} octets; "
                f"if they span several frames, at most {MAX_HEAD_BYTES} octets are allowed"
            )
            self._refuse(delivery, Condition.RESOURCE_LIMIT_EXCEEDED, problem)
        elif self.held_bytes + count > self.limit_bytes:
            problem = "the router holds too many octets of incomplete headers and annotations"
            self._refuse(delivery, Condition.RESOURCE_LIMIT_EXCEEDED, problem)
        else:
            self.held_bytes += count

    def _refuse(self, delivery: Delivery, condition: str, problem: str) -> None:
        delivery.scan = None
        self.condition = condition
        self.problem = problem
