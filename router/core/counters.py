"""What is counted, for each address and for the router as a whole."""

from __future__ import annotations

from router.amqp import codes


class Counters:
    """Deliveries and octets since the start; they only grow."""

    def __init__(self) -> None:
        # deliveries that came in, and that went out (a multicast goes out several times)
        self.ingress = 0
        self.egress = 0
        self.bytes_in = 0
        self.bytes_out = 0
        # came in settled; of these, dropped because no consumer could take them at once
        self.presettled = 0
        self.dropped_presettled = 0
        # offered to another receiver after one gave them back
        self.redelivered = 0
        # by what the receiver said
        self.accepted = 0
        self.rejected = 0
        self.released = 0
        self.modified = 0
        # ended in the router
        self.expired = 0
        self.aborted = 0
        self.no_destination = 0
        self.shed = 0
        self.malformed = 0

    def count_outcome(self, code: int) -> None:
        """Count a settled delivery by its outcome."""
        if code == codes.ACCEPTED:
            self.accepted += 1
        elif code == codes.REJECTED:
            self.rejected += 1
        elif code == codes.RELEASED:
            self.released += 1
        elif code == codes.MODIFIED:
            self.modified += 1

    def add(self, other: Counters) -> None:
        """Add what another has counted, such as an address that is about to be forgotten."""
        self.ingress += other.ingress
        self.egress += other.egress
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        self.presettled += other.presettled
        self.dropped_presettled += other.dropped_presettled
        self.redelivered += other.redelivered
        self.accepted += other.accepted
        self.rejected += other.rejected
        self.released += other.released
        self.modified += other.modified
        self.expired += other.expired
        self.aborted += other.aborted
        self.no_destination += other.no_destination
        self.shed += other.shed
        self.malformed += other.malformed
