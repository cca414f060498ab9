"""Write the telemetry of a synthetic network as its routers would, vectorised for many rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from router_telemetry.files import ROW_GROUP, storage
from router_telemetry.schema import DELIVERIES, EVENTS, FLOWS, VERSION, Dataset

from support.pipeline.fates import (
    ENDINGS,
    HOUR_US,
    SETTLED,
    START_US,
    STAYS,
    Fate,
    Flags,
    Longs,
    Sent,
    draw,
)
from support.pipeline.happenings import event_rows
from support.pipeline.links import Counted, counted
from support.pipeline.worlds import World

__all__ = ["START_US"]

EPOCH = 1_700_000_000_000_000
DAY_US = 24 * HOUR_US
# In nanoseconds: the least that a router and a receiver take, and what comes on top on average.
FORWARD_NS = (20_000, 50_000)
SERVICE_NS = (500_000, 2_000_000)
# How much longer than the least a line takes on average, and when a router gives up.
JITTER_US = 300
GIVE_UP_NS = 1_000_000_000

Numbers: TypeAlias = npt.NDArray[np.integer[Any] | np.bool_]
Value: TypeAlias = "Longs | str | int | float | bool | pa.Array | None"
Say = Callable[[str], None]


def silent(text: str) -> None:
    """Say nothing."""


def table(dataset: Dataset, count: int, values: Mapping[str, Value]) -> pa.Table:
    """Return a table of a dataset. Scalars are repeated in each row; missing columns are null."""
    return _encoded(dataset, count, values).cast(dataset.arrow_schema())


def _encoded(dataset: Dataset, count: int, values: Mapping[str, Value]) -> pa.Table:
    """Return such a table with its texts encoded as numbers, so that many rows find room."""
    arrays, fields = [], []
    for column in dataset.columns:
        value = values.get(column.name)
        kind = pa.dictionary(pa.int32(), pa.string()) if column.type == pa.string() else column.type
        if isinstance(value, np.ndarray | pa.Array):
            made = value if isinstance(value, pa.Array) else pa.array(value)
            arrays.append(made if made.type == kind else made.cast(kind))
        elif kind == column.type or value is None:
            arrays.append(pa.repeat(pa.scalar(value, column.type), count).cast(kind))
        else:
            arrays.append(_texts(np.zeros(count, np.int32), [str(value)]))
        fields.append(pa.field(column.name, kind))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _texts(numbers: Numbers, texts: list[str], is_null: Flags | None = None) -> pa.Array:
    """Return texts by their numbers in a list."""
    indices = pa.array(numbers.astype(np.int32), mask=is_null)
    return pa.DictionaryArray.from_arrays(indices, pa.array(texts, pa.string()))


def deliveries(world: World) -> Iterator[pa.Table]:
    """Yield the rows of each stream at each router that it passes, without sequence numbers."""
    for number in range(len(world.streams)):
        sent = draw(world, number).sampled()
        rng = np.random.default_rng([world.seed, number, 1])
        if len(sent.times_us):
            yield from _hops(world, sent, rng)


def _taken(rng: np.random.Generator, least: int, more: int, count: int) -> Longs:
    return least + rng.exponential(more, count).astype(np.int64)


def _lines_us(
    world: World, sent: Sent, index: int, rng: np.random.Generator
) -> tuple[Longs, Longs]:
    """Return how long each message is on a line, there, and its outcome on the way back."""
    here, there = sent.way[index], sent.way[index + 1]
    count, fault = len(sent.times_us), world.fault
    more = np.zeros(count, np.int64)
    if fault is not None and {here, there} == {fault.a, fault.b}:
        more[sent.times_us >= START_US + fault.from_hour * HOUR_US] = fault.more_us
    return (
        more + _taken(rng, world.delay_us(here, there), JITTER_US, count),
        more + _taken(rng, world.delay_us(there, here), JITTER_US, count),
    )


def _hops(world: World, sent: Sent, rng: np.random.Generator) -> Iterator[pa.Table]:
    count, last = len(sent.times_us), len(sent.way) - 1
    ids = pa.Array.from_buffers(pa.binary(16), count, [None, pa.py_buffer(rng.bytes(16 * count))])
    forward = [_taken(rng, *FORWARD_NS, count) for _ in sent.way]
    lines = [_lines_us(world, sent, index, rng) for index in range(last)]
    gives_up = sent.has(Fate.LOST, Fate.EXPIRED)
    service = np.where(gives_up, GIVE_UP_NS, _taken(rng, *SERVICE_NS, count))
    # an outcome comes back the way the message went
    settle = [service for _ in sent.way]
    for index in range(last, -1, -1):
        settle[index] = forward[index] + service
        if index < last:
            further = 1000 * (lines[index][0] + lines[index][1]) + settle[index + 1]
            settle[index] = np.where(sent.ends == index, settle[index], forward[index] + further)
    arrived = sent.times_us
    for index in range(last + 1):
        here = sent.ends >= index
        rows = _rows(world, sent, index, arrived, forward[index], settle[index])
        yield rows.set_column(rows.schema.get_field_index("trace_id"), "trace_id", ids).filter(
            pa.array(here)
        )
        if index < last:
            arrived = arrived + forward[index] // 1000 + lines[index][0]


def _rows(
    world: World, sent: Sent, index: int, arrived: Longs, forward_ns: Longs, settle_ns: Longs
) -> pa.Table:
    """Return the rows at one router, as if all messages came there."""
    stream, way, count = sent.stream, sent.way, len(sent.times_us)
    is_last = index == len(way) - 1
    before = stream.origin if index == 0 else way[index - 1]
    after = stream.destination if is_last else way[index + 1]
    is_end = sent.ends == index
    stays = is_end & sent.has(*STAYS)
    by_router = sent.has(Fate.LOST, Fate.EXPIRED)
    undecided = sent.has(Fate.ABORTED, *SETTLED)

    def unless(missing: Flags, value: Longs | str | int) -> pa.Array:
        if isinstance(value, str):
            return _texts(np.zeros(count, np.int32), [value], missing)
        return pa.array(np.broadcast_to(value, count), pa.int64(), mask=missing)

    reasons = [ENDINGS[fate].reason or "" for fate in Fate]
    return _encoded(
        DELIVERIES,
        count,
        {
            "schema_version": VERSION,
            "router": way[index],
            "router_epoch": EPOCH,
            "arrived": arrived + world.offsets_us.get(way[index], 0),
            "hop": index + 1,
            "share": world.share,
            "ingress_router": way[0],
            "origin_container": stream.origin,
            "address": stream.address,
            "in_link_number": 1,
            "in_link_name": link_name("in", before, stream.address if index == 0 else None),
            "in_container": before,
            "in_role": "normal" if index == 0 else "inter-router",
            "out_link_number": unless(stays, 2),
            "out_link_name": unless(
                stays, link_name("out", after, stream.address if is_last else None)
            ),
            "out_container": unless(stays, after),
            "out_role": unless(stays, "normal" if is_last else "inter-router"),
            "size": stream.size,
            "forward_ns": unless(stays, forward_ns),
            "settle_ns": unless(sent.has(*SETTLED), settle_ns),
            "outcome": _texts(sent.fates, [ENDINGS[fate].outcome for fate in Fate]),
            "decided_by": _texts(by_router & is_end, ["receiver", "router"], undecided),
            "reason": _texts(sent.fates, reasons, ~(by_router & is_end)),
        },
    )


def link_name(direction: str, peer: str, address: str | None) -> str:
    """Return the name of a client's link, which has an address, or of one between routers."""
    return f"{direction}-{peer}" if address is None else f"{direction}-{peer}-{address}"


def flows(world: World) -> Iterator[pa.Table]:
    """Yield what each link has carried, without numbers."""
    for link in counted(world).values():
        yield _flow(world, link)


def _flow(world: World, link: Counted) -> pa.Table:
    used = link.deliveries > 0
    counts = {name: values[used] for name, values in link.counts.items()}
    return _encoded(
        FLOWS,
        int(used.sum()),
        {
            "schema_version": VERSION,
            "router": link.router,
            "router_epoch": EPOCH,
            "interval_start": link.starts_us[used],
            "interval_us": world.interval_s * 1_000_000,
            "link_number": 1 if link.direction == "in" else 2,
            "link_name": link_name(link.direction, link.peer, link.address),
            "direction": link.direction,
            "container": link.peer,
            "role": "inter-router" if link.address is None else "normal",
            "address": link.address,
            **counts,
            "unsettled": 0,
            "is_final": False,
        },
    )


def events(world: World) -> Iterator[pa.Table]:
    """Yield the events of each burst, without numbers."""
    for burst in world.bursts:
        values = {"schema_version": VERSION, "router_epoch": EPOCH, **event_rows(burst)}
        yield _encoded(EVENTS, burst.count, values)


def numbered(tables: Iterator[pa.Table], dataset: Dataset) -> Iterator[pa.Table]:
    """Yield the rows of each router, sorted by time, with sequence numbers."""
    by_router: dict[str, list[pa.Table]] = {}
    for each in tables:
        if len(each):
            by_router.setdefault(each.column("router")[0].as_py(), []).append(each)
    for router in sorted(by_router):
        mine = pa.concat_tables(by_router.pop(router)).unify_dictionaries().combine_chunks()
        mine = mine.sort_by(dataset.time_column)
        index = mine.schema.get_field_index("seq")
        yield mine.set_column(index, mine.schema.field("seq"), pa.array(np.arange(len(mine)) + 1))


def write(directory: Path, dataset: Dataset, rows: pa.Table, number: int = 1) -> Path:
    """Write rows of one router and one day as its exporter would."""
    router = rows.column("router")[0].as_py()
    day = rows.column(dataset.time_column)[0].as_py()
    folder = directory / dataset.name / f"dt={day:%Y-%m-%d}" / f"router_id={router}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{dataset.name}-{router}-{EPOCH}-{number}.parquet"
    pq.write_table(rows, path, **storage(dataset))
    return path


def write_world(
    directory: Path, world: World, rows_per_file: int = ROW_GROUP, say: Say = silent
) -> dict[str, int]:
    """Write the whole telemetry of a network; return the number of rows of each dataset."""
    written = {}
    for dataset, tables in (
        (DELIVERIES, deliveries(world)),
        (FLOWS, flows(world)),
        (EVENTS, events(world)),
    ):
        rows = 0
        for mine in numbered(tables, dataset):
            for number, part in enumerate(_parts(mine, dataset, rows_per_file), 1):
                write(directory, dataset, part, number)
            rows += len(mine)
            say(f"{dataset.name}: {rows:,} rows")
        written[dataset.name] = rows
    return written


def _parts(rows: pa.Table, dataset: Dataset, most: int) -> Iterator[pa.Table]:
    """Cut rows in the order of time into files, each of one day."""
    days = rows.column(dataset.time_column).cast(pa.int64()).to_numpy() // DAY_US
    begins = [0, *(np.flatnonzero(np.diff(days)) + 1), len(rows)]
    for begin, end in pairwise(begins):
        for first in range(begin, end, most):
            yield rows.slice(first, min(most, end - first))
