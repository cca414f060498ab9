"""What is looked at of a message as it comes in, before anybody gets it.

Sections out of order, doubled or of a wrong type make a message that nobody can be asked to read:
its sender is told so, and what has been sent on of it is aborted. Delivery annotations were for the
router and go no further (section 3.2.2). Messages of a format other than AMQP's own (0) are opaque.
"""

from __future__ import annotations

from router.amqp.reading import TransferFrame
from router.amqp.section_scan import SectionScan, is_plain
from router.engine.delivery import Delivery


class Intake:
    """The reader of all messages' sections; `problem` says what was wrong with the last one."""

    def __init__(self) -> None:
        # for messages of one frame, and taken by the next one that has more
        self.spare = SectionScan()
        self.problem = ""

    def begin(self, delivery: Delivery, frame: TransferFrame) -> TransferFrame | None:
        """Look at a delivery's first frame: the frame to send on, or None (`problem` says why)."""
        if delivery.message_format or (not frame.more and is_plain(frame)):
            return frame
        scan = self.spare
        scan.start()
        if not scan.feed(frame):
            self.problem = scan.problem
            return None
        if frame.more:
            delivery.scan = scan
            self.spare = SectionScan()
        elif not scan.finish():
            self.problem = scan.problem
            return None
        return scan.frame

    def follow(self, delivery: Delivery, frame: TransferFrame) -> TransferFrame | None:
        """Look at a later frame, as `begin` does at the first."""
        scan: SectionScan = delivery.scan
        if not scan.feed(frame) or (not frame.more and not scan.finish()):
            self.problem = scan.problem
            return None
        return scan.frame
