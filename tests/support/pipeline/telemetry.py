"""Write a made-up network's telemetry, as its routers would: vectorised, for millions of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from router_telemetry.schema import DELIVERIES, FLOWS, VERSION, Dataset

from support.pipeline.worlds import START, Stream, World

EPOCH = 1_700_000_000_000_000
HOUR_US = 3_600_000_000
START_US = round(START.timestamp() * 1_000_000)

Longs: TypeAlias = npt.NDArray[np.int64]
Value: TypeAlias = "Longs | str | int | float | bool | pa.Array | None"


def table(dataset: Dataset, count: int, values: Mapping[str, Value]) -> pa.Table:
    """Return a table of a dataset. A value that is no array stands in each row; others are null."""
    arrays = []
    for column in dataset.columns:
        value = values.get(column.name)
        if isinstance(value, np.ndarray | pa.Array):
            made = value if isinstance(value, pa.Array) else pa.array(value)
            arrays.append(made.cast(column.type))
        else:
            arrays.append(pa.repeat(pa.scalar(value, column.type), count))
    return pa.Table.from_arrays(arrays, schema=dataset.arrow_schema())


@attrs.frozen
class _Sent:
    """The deliveries of one stream, by the true time at which each entered, and their trace ids."""

    stream: Stream
    times_us: Longs
    ids: pa.Array
    is_lost: npt.NDArray[np.bool_]
    is_rejected: npt.NDArray[np.bool_]


def _sent(world: World, number: int, rng: np.random.Generator) -> _Sent:
    stream = world.streams[number]
    count = stream.deliveries
    times = START_US + np.sort(rng.integers(0, round(world.hours * HOUR_US), count))
    raw = np.zeros((count, 2), np.int64)
    raw[:, 0], raw[:, 1] = number, np.arange(count)
    ids = pa.Array.from_buffers(pa.binary(16), count, [None, pa.py_buffer(raw.tobytes())])
    order = np.arange(count)
    is_rejected = order < stream.rejected
    is_lost = ~is_rejected & (order < stream.rejected + stream.lost)
    return _Sent(stream, times, ids, is_lost, is_rejected)


def deliveries(world: World) -> Iterator[pa.Table]:
    """Yield the rows of each stream at each router that it passes, without numbers."""
    rng = np.random.default_rng(world.seed)
    for number in range(len(world.streams)):
        sent = _sent(world, number, rng)
        kept = rng.random(len(sent.times_us)) < world.share
        yield from _hops(world, sent, kept, rng)


def _hops(
    world: World, sent: _Sent, kept: npt.NDArray[np.bool_], rng: np.random.Generator
) -> Iterator[pa.Table]:
    stream, way = sent.stream, world.way(sent.stream)
    times, ids = sent.times_us[kept], sent.ids.filter(pa.array(kept))
    is_lost, is_rejected = sent.is_lost[kept], sent.is_rejected[kept]
    arrived = times
    for index, router in enumerate(way):
        count = len(arrived)
        is_last = index == len(way) - 1
        peer = stream.destination if is_last else way[index + 1]
        forward_ns = 20_000 + rng.exponential(50_000, count).astype(np.int64)
        drops = is_lost & (router == stream.lost_at)
        outcome = np.where(is_rejected, "rejected", np.where(is_lost, "modified", "accepted"))
        settle_ns = forward_ns + 500_000 * (len(way) - index)
        yield table(
            DELIVERIES,
            count,
            {
                "schema_version": VERSION,
                "router": router,
                "router_epoch": EPOCH,
                "arrived": arrived + world.offsets_us.get(router, 0),
                "trace_id": ids,
                "hop": index + 1,
                "share": world.share,
                "ingress_router": way[0],
                "origin_container": stream.origin,
                "address": stream.address,
                "in_link_number": 1,
                "in_link_name": f"in-{stream.origin if index == 0 else way[index - 1]}",
                "in_container": stream.origin if index == 0 else way[index - 1],
                "in_role": "normal" if index == 0 else "inter-router",
                "out_link_number": 2,
                "out_link_name": f"out-{peer}",
                "out_container": peer,
                "out_role": "normal" if is_last else "inter-router",
                "size": stream.size,
                "forward_ns": forward_ns,
                "settle_ns": settle_ns,
                "outcome": pa.array(outcome),
                "decided_by": pa.array(np.where(drops, "router", "receiver")),
                "reason": pc.if_else(
                    pa.array(drops), "delivery-failed", pa.scalar(None, pa.string())
                ),
            },
        )
        if is_last:
            return
        line_us = world.delay_us(router, peer) + rng.exponential(300, count).astype(np.int64)
        arrived = (arrived + forward_ns // 1000 + line_us)[~drops]
        ids = ids.filter(pa.array(~drops))
        is_lost, is_rejected = is_lost[~drops], is_rejected[~drops]


def flows(world: World, interval_s: int = 600) -> Iterator[pa.Table]:
    """Yield what each stream adds to the links that it passes, without numbers."""
    rng = np.random.default_rng(world.seed)
    edges = np.arange(START_US, START_US + round(world.hours * HOUR_US) + 1, interval_s * 1_000_000)
    for number in range(len(world.streams)):
        sent = _sent(world, number, rng)
        rng.random(len(sent.times_us))
        alive = np.ones(len(sent.times_us), np.bool_)
        stream, way = sent.stream, world.way(sent.stream)
        for index, router in enumerate(way):
            before = stream.origin if index == 0 else way[index - 1]
            after = stream.destination if index == len(way) - 1 else way[index + 1]
            for direction, peer, is_client in (
                ("in", before, index == 0),
                ("out", after, index == len(way) - 1),
            ):
                yield _flow(world, sent, alive, edges, router, direction, peer, is_client)
            if router == stream.lost_at:
                alive &= ~sent.is_lost


def _flow(
    world: World,
    sent: _Sent,
    alive: npt.NDArray[np.bool_],
    edges: Longs,
    router: str,
    direction: str,
    peer: str,
    is_client: bool,
) -> pa.Table:
    def per_interval(kept: npt.NDArray[np.bool_]) -> Longs:
        return np.histogram(sent.times_us[kept], edges)[0].astype(np.int64)

    carried = per_interval(alive)
    rejected, modified = per_interval(alive & sent.is_rejected), per_interval(alive & sent.is_lost)
    used = carried > 0
    return table(
        FLOWS,
        int(used.sum()),
        {
            "schema_version": VERSION,
            "router": router,
            "router_epoch": EPOCH,
            "interval_start": edges[:-1][used],
            "interval_us": int(edges[1] - edges[0]),
            "link_number": 1 if direction == "in" else 2,
            "link_name": f"{direction}-{peer}",
            "direction": direction,
            "container": peer,
            "role": "normal" if is_client else "inter-router",
            "address": sent.stream.address if is_client else None,
            "deliveries": carried[used],
            "presettled": 0,
            "accepted": (carried - rejected - modified)[used],
            "rejected": rejected[used],
            "released": 0,
            "modified": modified[used],
            "unsettled": 0,
            "is_final": False,
        },
    )


def numbered(tables: Iterator[pa.Table], dataset: Dataset) -> Iterator[pa.Table]:
    """Yield the rows of each router in the order of time, with their sequence numbers."""
    whole = pa.concat_tables(list(tables))
    for router in sorted(pc.unique(whole.column("router")).to_pylist()):
        mine = whole.filter(pc.equal(whole.column("router"), router)).sort_by(dataset.time_column)
        index = mine.schema.get_field_index("seq")
        yield mine.set_column(index, mine.schema.field("seq"), pa.array(np.arange(len(mine)) + 1))


def write(directory: Path, dataset: Dataset, rows: pa.Table, number: int = 1) -> Path:
    """Write rows of one router and one day as its exporter would."""
    router = rows.column("router")[0].as_py()
    day = rows.column(dataset.time_column)[0].as_py()
    folder = directory / dataset.name / f"dt={day:%Y-%m-%d}" / f"router_id={router}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{dataset.name}-{router}-{EPOCH}-{number}.parquet"
    pq.write_table(rows, path, compression="zstd", row_group_size=131_072)
    return path


def write_world(directory: Path, world: World, rows_per_file: int = 131_072) -> None:
    """Write all deliveries and flows of a network."""
    for dataset, tables in ((DELIVERIES, deliveries(world)), (FLOWS, flows(world))):
        for mine in numbered(tables, dataset):
            for number, begin in enumerate(range(0, len(mine), rows_per_file)):
                write(directory, dataset, mine.slice(begin, rows_per_file), number + 1)
