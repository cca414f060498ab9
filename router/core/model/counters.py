"""Counters of each address, and of the router as a whole."""

from __future__ import annotations

from router.amqp import codes
from router.core.model.histogram import Histogram

# Deliveries that take longer than these times, in seconds, are counted (as in Dispatch).
DELAY_S = 1.0
LONG_S = 10.0


class Counters:
    """Set of counters of deliveries and octets, which only grow."""

    def __init__(self) -> None:
        # deliveries that were received, and that were sent (a multicast is sent several times)
        self.ingress = 0
        self.egress = 0
        self.bytes_in = 0
        self.bytes_out = 0
        # of these, deliveries from and to other routers, and from and to containers, on links that
        # have ended (`router_traffic`)
        self.from_routers = 0
        self.to_routers = 0
        self.from_containers = 0
        self.to_containers = 0
        # received settled; of these, those dropped because no consumer could take them immediately
        self.presettled = 0
        self.dropped_presettled = 0
        # taken by a fallback, because there was no receiver
        self.redirected = 0
        # offered to another receiver after one receiver released them
        self.redelivered = 0
        # by the receiver's outcome
        self.accepted = 0
        self.rejected = 0
        self.released = 0
        self.modified = 0
        # by the outcome that was sent to the sender, once for a multicast; and those for which it
        # took long until then, or until a settled delivery was sent
        self.told_accepted = 0
        self.told_rejected = 0
        self.told_released = 0
        self.told_modified = 0
        self.delayed_1s = 0
        self.delayed_10s = 0
        # from a delivery's arrival until it is sent, and until its outcome is sent to its sender;
        # None before the first delivery
        self.forward_latency: Histogram | None = None
        self.settle_latency: Histogram | None = None
        # ended in the router
        self.expired = 0
        self.aborted = 0
        self.no_destination = 0
        self.shed = 0
        self.malformed = 0
        # links of stuck receivers that were closed
        self.receivers_dropped = 0

    def count_outcome(self, code: int, count: int = 1) -> None:
        """Count settled deliveries by their outcome."""
        if code == codes.ACCEPTED:
            self.accepted += count
        elif code == codes.REJECTED:
            self.rejected += count
        elif code == codes.RELEASED:
            self.released += count
        elif code == codes.MODIFIED:
            self.modified += count

    def count_told(self, code: int, age_s: float, count: int) -> None:
        """Count deliveries by the outcome that was sent to their senders, with their age."""
        if code == codes.ACCEPTED:
            self.told_accepted += count
        elif code == codes.REJECTED:
            self.told_rejected += count
        elif code == codes.RELEASED:
            self.told_released += count
        elif code == codes.MODIFIED:
            self.told_modified += count
        if self.settle_latency is None:
            self.settle_latency = Histogram()
        self.settle_latency.observe(age_s, count)

    def count_forwarded(self, age_s: float, count: int) -> None:
        """Count deliveries that were sent on, with their age."""
        if self.forward_latency is None:
            self.forward_latency = Histogram()
        self.forward_latency.observe(age_s, count)

    def count_delay(self, age_s: float, count: int) -> None:
        """Count deliveries that took longer than one second, or longer than ten."""
        if age_s > LONG_S:
            self.delayed_10s += count
        elif age_s > DELAY_S:
            self.delayed_1s += count

    def add(self, other: Counters) -> None:
        """Add other counters, such as those of an address that is about to be removed."""
        self.ingress += other.ingress
        self.egress += other.egress
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        self.from_routers += other.from_routers
        self.to_routers += other.to_routers
        self.from_containers += other.from_containers
        self.to_containers += other.to_containers
        self.presettled += other.presettled
        self.dropped_presettled += other.dropped_presettled
        self.redirected += other.redirected
        self.redelivered += other.redelivered
        self.accepted += other.accepted
        self.rejected += other.rejected
        self.released += other.released
        self.modified += other.modified
        self.told_accepted += other.told_accepted
        self.told_rejected += other.told_rejected
        self.told_released += other.told_released
        self.told_modified += other.told_modified
        self.delayed_1s += other.delayed_1s
        self.delayed_10s += other.delayed_10s
        if other.forward_latency is not None:
            if self.forward_latency is None:
                self.forward_latency = Histogram()
            self.forward_latency.add(other.forward_latency)
        if other.settle_latency is not None:
            if self.settle_latency is None:
                self.settle_latency = Histogram()
            self.settle_latency.add(other.settle_latency)
        self.expired += other.expired
        self.aborted += other.aborted
        self.no_destination += other.no_destination
        self.shed += other.shed
        self.malformed += other.malformed
        self.receivers_dropped += other.receivers_dropped

    def subtract(self, other: Counters) -> None:
        """Subtract an earlier state of these counters."""
        for name in NAMES:
            setattr(self, name, getattr(self, name) - getattr(other, name))
        if self.forward_latency is not None and other.forward_latency is not None:
            self.forward_latency.subtract(other.forward_latency)
        if self.settle_latency is not None and other.settle_latency is not None:
            self.settle_latency.subtract(other.settle_latency)


_zero = Counters()
NAMES = tuple(name for name in dir(_zero) if isinstance(getattr(_zero, name), int))
