"""Sampled deliveries, in the format of `SampleBatch`, that wait in memory to be written."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from router.plugin import SampleBatch
from router_telemetry.rows import DAY_US
from router_telemetry.schema import DELIVERIES, TIMESTAMP, VERSION, Dataset

NS_A_US: Final = 1000
# By code of the plugin contract; any other code is an outcome that AMQP does not define.
OUTCOMES: Final = {
    0x24: "accepted",
    0x25: "rejected",
    0x26: "released",
    0x27: "modified",
    1: "aborted",
    2: "presettled",
}
UNKNOWN: Final = "unknown"
DECIDED_BY: Final = ("", "receiver", "router")
NAMES: Final = [column.name for column in DELIVERIES.columns]


@attrs.frozen
class _Part:
    """Samples of one day, from one call of `DeliveryRows.add`; sequence numbers begin at `seq`."""

    router: str
    epoch: int
    seq: int
    samples: SampleBatch = attrs.field(repr=False)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.samples.count

    def table(self) -> pa.Table:
        """Return the rows as an Arrow table, in which texts are encoded as dictionaries."""
        samples, count = self.samples, len(self)
        texts = pa.array(samples.texts, pa.string())
        is_first = pc.equal(self._numbers("hop"), 1)
        arrived_ns = pc.add(self._numbers("arrived_ns"), samples.wall_offset_ns)
        here = _encoded(pa.repeat(pa.scalar(0, pa.int32()), count), pa.array([self.router]))
        links = self._link_columns("in") | self._link_columns("out")
        columns = {
            "schema_version": pa.repeat(pa.scalar(VERSION, pa.int16()), count),
            "router": here,
            "router_epoch": pa.repeat(pa.scalar(self.epoch, pa.int64()), count),
            "seq": pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count), self.seq - 1),
            "arrived": pc.cast(pc.divide(arrived_ns, NS_A_US), TIMESTAMP),
            "trace_id": self._trace_ids(),
            "hop": pc.cast(self._numbers("hop"), pa.int16()),
            "share": pc.divide(pc.cast(self._unsigned("threshold"), pa.float64(), False), 2.0**64),
            "ingress_router": pc.if_else(is_first, here, _encoded(self._index("ingress"), texts)),
            "origin_container": pc.if_else(
                is_first, links["in_container"], _encoded(self._index("origin"), texts)
            ),
            "address": _encoded(self._index("address"), texts),
            **links,
            "size": self._numbers("size"),
            "forward_ns": self._duration("forward_ns"),
            "settle_ns": self._duration("settle_ns"),
            "outcome": self._outcomes(),
            "decided_by": _encoded(_none_if_0(self._index("decided_by")), pa.array(DECIDED_BY)),
            "reason": _encoded(_none_if_0(self._index("reason")), texts),
        }
        return pa.table([columns[column.name] for column in DELIVERIES.columns], NAMES)

    def _unsigned(self, name: str) -> pa.Array:
        """Return a column of unsigned numbers, without copying it."""
        buffer = pa.py_buffer(self.samples.columns[name])
        return pa.Array.from_buffers(pa.uint64(), len(self), [None, buffer])

    def _numbers(self, name: str) -> pa.Array:
        return _numbers(self.samples.columns[name])

    def _duration(self, name: str) -> pa.Array:
        """Return a column of durations; ABSENT, the only value above 2**63, becomes null."""
        column = self._numbers(name)
        return pc.if_else(pc.less(column, 0), None, column)

    def _index(self, name: str) -> pa.Array:
        return pc.cast(self._numbers(name), pa.int32())

    def _trace_ids(self) -> pa.Array:
        words = array("Q", bytes(16 * len(self)))
        words[0::2] = self.samples.columns["trace_high"]
        words[1::2] = self.samples.columns["trace_low"]
        # big-endian, as routers send them to each other
        words.byteswap()
        return pa.Array.from_buffers(pa.binary(16), len(self), [None, pa.py_buffer(words)])

    def _outcomes(self) -> pa.Array:
        codes = pa.array(OUTCOMES, pa.int64())
        names = pa.array([*OUTCOMES.values(), UNKNOWN], pa.string())
        found = pc.index_in(self._numbers("outcome"), value_set=codes)
        return _encoded(pc.fill_null(found, len(OUTCOMES)), names)

    def _link_columns(self, direction: str) -> dict[str, pa.Array]:
        """Return the columns that describe each row's incoming (`in`) or outgoing (`out`) link.

        They are null in rows without such a link.
        """
        links = list(self.samples.links.values())
        numbers = pa.array([link.number for link in links], pa.int64())
        place = pc.index_in(self._numbers(f"{direction}_link"), value_set=numbers)
        described = {
            "link_name": [link.name for link in links],
            "container": [link.connection.container for link in links],
            "role": [link.connection.role for link in links],
        }
        return {f"{direction}_link_number": pc.take(numbers, place)} | {
            f"{direction}_{name}": _encoded(place, pa.array(texts, pa.string()))
            for name, texts in described.items()
        }


@attrs.frozen
class DeliveryBatch:
    """Batch of sampled deliveries of one day, to be written. `day` is in days since 1970."""

    day: int
    parts: list[_Part] = attrs.field(repr=False)

    @property
    def dataset(self) -> Dataset:
        """Return the dataset of sampled deliveries."""
        return DELIVERIES

    def __len__(self) -> int:
        """Return the number of rows."""
        return sum(len(part) for part in self.parts)

    def table(self) -> pa.Table:
        """Return the rows as an Arrow table, in which texts are encoded as dictionaries."""
        return pa.concat_tables([part.table() for part in self.parts]).unify_dictionaries()


class DeliveryRows:
    """Buffer of sampled deliveries that have not been taken for writing yet.

    Every sample gets a sequence number, including samples that are lost.
    """

    def __init__(self, router: str, epoch: int, most: int) -> None:
        self.dataset = DELIVERIES
        self.lost = 0
        self._router = router
        self._epoch = epoch
        self._most = most
        self._seq = 0
        self._lost_before = 0
        self._by_day: dict[int, list[_Part]] = {}
        self._count = 0
        # rows that were taken but are not written yet
        self.taken = 0
        # called with each table of rows that are added
        self.on_table: Callable[[pa.Table], None] | None = None

    def __len__(self) -> int:
        """Return the number of waiting rows."""
        return self._count

    def add(self, samples: SampleBatch, lost: int) -> None:
        """Add samples, or count them as lost if too many rows are in memory.

        `lost` is the total of samples that the router has lost because they were not taken in time.
        """
        self.lost += lost - self._lost_before
        self._seq += lost - self._lost_before
        self._lost_before = lost
        if not samples.count:
            return
        first = self._seq + 1
        self._seq += samples.count
        if len(self) + self.taken + samples.count > self._most:
            self.lost += samples.count
            return
        for day, part in _by_day(samples):
            added = _Part(self._router, self._epoch, first, part)
            self._by_day.setdefault(day, []).append(added)
            if self.on_table is not None:
                self.on_table(added.table())
            first += part.count
        self._count += samples.count

    def take(self) -> list[DeliveryBatch]:
        """Remove all waiting rows, and return them as one batch for each day."""
        batches = [DeliveryBatch(day, parts) for day, parts in self._by_day.items()]
        self._by_day = {}
        self.taken += self._count
        self._count = 0
        return batches


def _by_day(samples: SampleBatch) -> list[tuple[int, SampleBatch]]:
    """Divide samples by the day of their arrival; usually there is only one day."""
    arrived = samples.columns["arrived_ns"]
    day_ns = DAY_US * NS_A_US
    first, last = pc.min_max(_numbers(arrived)).values()
    earliest = (first.as_py() + samples.wall_offset_ns) // day_ns
    latest = (last.as_py() + samples.wall_offset_ns) // day_ns
    if earliest == latest:
        return [(earliest, samples)]
    days = [(each + samples.wall_offset_ns) // day_ns for each in arrived]
    parts = []
    for day in sorted(set(days)):
        columns = {
            name: array("Q", (each for each, its in zip(column, days, strict=True) if its == day))
            for name, column in samples.columns.items()
        }
        part = attrs.evolve(samples, count=days.count(day), columns=columns)
        parts.append((day, part))
    return parts


def _numbers(column: array[int]) -> pa.Array:
    """Return a column of numbers below 2**63, without copying it."""
    return pa.Array.from_buffers(pa.int64(), len(column), [None, pa.py_buffer(column)])


def _encoded(indices: pa.Array, texts: pa.Array) -> pa.Array:
    """Return a dictionary-encoded array of texts, null where the index or the text is null."""
    return pa.DictionaryArray.from_arrays(indices, texts)


def _none_if_0(indices: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(indices, 0), None, indices)
