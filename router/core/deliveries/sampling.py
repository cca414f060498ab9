"""Sample deliveries: choose some that enter the network at this router, and record their course.

A sampled delivery has a `Sample`. When the delivery ends, a row is written: a fixed number of
64-bit words, so that sampling costs little even if every delivery is sampled. Names are stored once
for each batch of rows. The module `trace_context` passes samples on to the other routers on the
delivery's way. (docs/decisions/0105-sampled-deliveries.md)
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, Final

import attrs

from router.core.model.address import HERE
from router.core.routers.membership import ROLES
from router.engine.delivery import Delivery, set_defaults
from router.engine.link import Link
from router.engine.outbox import Turn

COLUMNS: Final = (
    "trace_high",
    "trace_low",
    "hop",
    "threshold",
    "arrived_ns",
    "forward_ns",
    "settle_ns",
    "in_link",
    "out_link",
    "size",
    "outcome",
    "decided_by",
    "reason",
    "address",
    "ingress",
    "origin",
)
"""The words of a row, in their order."""

WIDTH = 16
# An unknown number, such as the leaving time of a delivery that has not left.
ABSENT = 0xFFFFFFFFFFFFFFFF
ALL = 0xFFFFFFFFFFFFFFFF
# Codes for deliveries that end without an AMQP outcome; an outcome's code is its descriptor's.
ABORTED = 1
PRESETTLED = 2
# Who decided an outcome (`decided_by`).
NOBODY = 0
RECEIVER = 1
ROUTER = 2
# Constants of SplitMix64.
GOLDEN = 0x9E3779B97F4A7C15
FIRST_FACTOR = 0xBF58476D1CE4E5B9
SECOND_FACTOR = 0x94D049BB133111EB
NS = 1_000_000_000.0


class Sample:
    """Record of a sampled delivery: its trace-id in two words, and what is known of its way so far.

    `hop` is 1 at the router where the message entered the network, 2 at the next one, and so on.
    `ingress` is the id of that first router, and `origin` the container that sent the message; both
    are None at the first router itself. `threshold` is the share of deliveries that the first
    router samples, times 2**64.
    """

    high: int
    low: int
    hop: int
    threshold: int
    ingress: str | None
    origin: str | None
    # when the delivery left, on the turn's clock; 0 until then
    left: float
    is_leaving: bool
    # whether its outcome is known, or there will be none
    is_over: bool
    ended: float
    code: int
    decided_by: int
    reason: str | None

    def copied(self) -> Sample:
        """Return a sample for a copy of the delivery; from now on, only the copies are recorded."""
        self.is_over = True
        copy = Sample.__new__(Sample)
        copy.high = self.high
        copy.low = self.low
        copy.hop = self.hop
        copy.threshold = self.threshold
        copy.ingress = self.ingress
        copy.origin = self.origin
        return copy


DEFAULTS: dict[str, object] = {
    "high": 0,
    "low": 0,
    "hop": 0,
    "threshold": 0,
    "ingress": None,
    "origin": None,
    "left": 0.0,
    "is_leaving": False,
    "is_over": False,
    "ended": 0.0,
    "code": 0,
    "decided_by": 0,
    "reason": None,
}

set_defaults(Sample, DEFAULTS)


@attrs.frozen
class Rows:
    """Batch of `count` rows, one for each recorded delivery, stored by column (`COLUMNS`).

    The values of `in_link` and `out_link` are keys of `links`, or 0 for no link. The values of
    `reason`, `address`, `ingress` and `origin` are indices into `texts`, whose first entry is
    empty.
    """

    count: int
    columns: dict[str, array[int]] = attrs.field(repr=False)
    texts: tuple[str, ...] = attrs.field(repr=False)
    links: dict[int, Any] = attrs.field(repr=False)


class Sampler:
    """Sampler of a router's deliveries, which writes their rows.

    Of the deliveries that enter the network at this router, the fraction `share` (0 to 1) is
    sampled. At most `capacity` rows are kept until `take` is called; `lost` counts rows beyond
    that. `describe` returns a description of a link, and sets the link's `number`.
    """

    def __init__(
        self,
        turn: Turn,
        share: float,
        capacity: int,
        seed: tuple[int, int],
        describe: Callable[[Link], object],
    ) -> None:
        self.turn = turn
        self.threshold = min(ALL, int(share * 2.0**64))
        self.lost = 0
        self.count = 0
        self._high, self._seed = seed
        self._entered = 0
        self._capacity = capacity
        self._describe = describe
        # one column after the other, each with room for all rows
        self._words: memoryview = memoryview(array("Q", bytes(8 * WIDTH * capacity)))
        # deliveries that are being sent in this turn
        self._leaving: list[Delivery] = []
        # indices of texts and descriptions of links, for the rows that were not taken yet
        self._texts: dict[str, int] = {"": 0}
        self._links: dict[int, object] = {}
        self._batch = 1

    def begin(self, delivery: Delivery) -> None:
        """Decide whether to sample a received delivery, unless it is sampled already."""
        if delivery.sample is not None or self.threshold == 0:
            return
        self._entered += 1
        low = self._hash(self._entered)
        link = delivery.incoming
        if low > self.threshold or link.side != HERE:
            return
        producer = link.owner
        if producer.enters < 0:
            settings = link.session.connection.settings
            producer.enters = settings.role not in ROLES and not settings.is_own
        if not producer.enters:
            return
        sample = Sample.__new__(Sample)
        sample.high = self._high
        sample.low = low
        sample.hop = 1
        sample.threshold = self.threshold
        delivery.sample = sample

    def _hash(self, number: int) -> int:
        """Return the hash of a number by SplitMix64, which gives each number a different hash."""
        mixed = (self._seed + number * GOLDEN) & ALL
        mixed = ((mixed ^ (mixed >> 30)) * FIRST_FACTOR) & ALL
        mixed = ((mixed ^ (mixed >> 27)) * SECOND_FACTOR) & ALL
        return mixed ^ (mixed >> 31)

    def leaves(self, delivery: Delivery) -> None:
        """Note that a sampled delivery is sent to its receiver in this turn."""
        sample: Sample = delivery.sample
        if not sample.is_leaving and sample.left == 0.0:
            sample.is_leaving = True
            self._leaving.append(delivery)

    def sent(self, now: float) -> None:
        """Record when this turn's deliveries left; write the rows of deliveries that have ended."""
        if not self._leaving:
            return
        for delivery in self._leaving:
            sample: Sample = delivery.sample
            sample.is_leaving = False
            sample.left = now
            if sample.is_over:
                self._record(delivery, sample)
            elif delivery.settled and not delivery.outgoing_open:
                sample.is_over = True
                sample.code = PRESETTLED
                self._record(delivery, sample)
        self._leaving.clear()

    def ended(self, delivery: Delivery, code: int, decided_by: int, reason: str | None) -> None:
        """Note the outcome of a sampled delivery; only the first outcome counts."""
        sample: Sample = delivery.sample
        if sample.is_over:
            return
        sample.is_over = True
        sample.code = code
        sample.decided_by = decided_by
        sample.reason = reason
        sample.ended = self.turn.now
        if not sample.is_leaving:
            self._record(delivery, sample)

    def take(self) -> Rows:
        """Return the rows that were written, and begin a new batch."""
        columns = {}
        for place, name in enumerate(COLUMNS):
            start = place * self._capacity
            # as octets, so that no word becomes a Python integer
            column = memoryview(self._words[start : start + self.count]).cast("B")
            columns[name] = array("Q")
            columns[name].frombytes(column)
        rows = Rows(self.count, columns, tuple(self._texts), self._links)
        self.count = 0
        self._texts = {"": 0}
        self._links = {}
        self._batch += 1
        return rows

    def _record(self, delivery: Delivery, sample: Sample) -> None:
        """Write the row of a delivery that has ended."""
        if self.count == self._capacity:
            self.lost += 1
            return
        at = self.count
        self.count += 1
        arrived = delivery.arrived
        words = self._words
        step = self._capacity
        words[at] = sample.high
        at += step
        words[at] = sample.low
        at += step
        words[at] = sample.hop
        at += step
        words[at] = sample.threshold
        at += step
        words[at] = int(arrived * NS)
        at += step
        words[at] = ABSENT if sample.left == 0.0 else int((sample.left - arrived) * NS)
        at += step
        words[at] = ABSENT if sample.ended == 0.0 else int((sample.ended - arrived) * NS)
        at += step
        words[at] = self._number(delivery.incoming)
        at += step
        words[at] = 0 if delivery.outgoing is None else self._number(delivery.outgoing)
        at += step
        words[at] = delivery.size
        at += step
        words[at] = sample.code
        at += step
        words[at] = sample.decided_by
        at += step
        words[at] = self._text(sample.reason)
        at += step
        words[at] = 0 if delivery.address is None else self._text(delivery.address.name)
        at += step
        words[at] = self._text(sample.ingress)
        at += step
        words[at] = self._text(sample.origin)

    def _number(self, link: Link) -> int:
        """Return the number of a link, and add its description to the batch if it is missing."""
        if link.sampled_in != self._batch:
            described = self._describe(link)
            link.sampled_in = self._batch
            self._links[link.number] = described
        return link.number

    def _text(self, text: str | None) -> int:
        """Return the index of a text in this batch, adding the text if needed."""
        if text is None:
            return 0
        number = self._texts.get(text)
        if number is None:
            number = len(self._texts)
            self._texts[text] = number
        return number
