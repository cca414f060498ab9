"""Plugin that reads a router's counters, samples and events, and writes them in a thread."""

from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

import attrs
import pyarrow as pa
import trio

from router import plugin
from router_telemetry.deliveries import DeliveryRows
from router_telemetry.events import EVENTS_LOST, TYPES, row_of
from router_telemetry.files import Files, Writable
from router_telemetry.flows import FlowMeter
from router_telemetry.record_stream import ALL, KINDS, RecordStream
from router_telemetry.rows import US, Row, Rows
from router_telemetry.schema import DELIVERIES, EVENTS, FLOWS

# Pauses after failing to write a file: the first, and the longest.
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
# Time limit for writing what is in memory when the plugin stops.
LAST_WRITE_S: Final = 1.5
# Interval at which samples are taken from the router, which keeps up to 65,536.
SAMPLES_S: Final = 0.2


@attrs.frozen(kw_only=True, field_transformer=plugin.checked)
class Settings:
    """Settings of the exporter."""

    directory: Path = attrs.field(
        default=Path("telemetry"),
        metadata=plugin.setting(
            plugin.file_path(), "The folder to write to. It is created if it does not exist."
        ),
    )
    interval_seconds: float = attrs.field(
        default=10.0,
        metadata=plugin.setting(
            plugin.number(0.1, 3600, "seconds"), "The interval of a flow record."
        ),
    )
    rotate_seconds: float = attrs.field(
        default=60.0,
        metadata=plugin.setting(
            plugin.number(0.1, 86400, "seconds"), "How often files are written."
        ),
    )
    rows_in_memory: int = attrs.field(
        default=250_000,
        metadata=plugin.setting(
            plugin.whole_number(1000, 10_000_000, "rows"),
            "How many rows of each dataset may wait to be written. Further ones are lost, and "
            "counted.",
        ),
    )
    sample_share: float = attrs.field(
        default=0.01,
        metadata=plugin.setting(
            plugin.number(0, 1),
            "The share of deliveries that is sampled where messages enter the network, such as "
            "0.01. Deliveries that other routers have sampled are always recorded.",
        ),
    )

    record_address: str | None = attrs.field(
        default=None,
        metadata=plugin.setting(
            plugin.address(),
            "An address that records are sent to as well, each as a message with a JSON object.",
            default="none",
        ),
    )
    record_datasets: str = attrs.field(
        default=ALL,
        metadata=plugin.setting(plugin.choice(KINDS), "Which datasets are sent to recordAddress."),
    )


class Telemetry(plugin.Plugin):
    """Plugin that writes flow records, sampled deliveries and events as Parquet files."""

    api_version = (1, 0)
    settings_class: ClassVar[type[attrs.AttrsInstance]] = Settings

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def run(self, router: plugin.Router) -> None:
        """Export until cancelled."""
        await _Export(self._settings, router).run()


def _put_row(stream: RecordStream, dataset: str, row: Row) -> None:
    stream.put(dataset, [row])


def _put_table(stream: RecordStream, rows: pa.Table) -> None:
    stream.put(DELIVERIES.name, rows.to_pylist())


class _Write:
    """Attempt, in a thread, to write one file."""

    def __init__(self, files: Files, batch: Writable) -> None:
        self._files = files
        self._batch = batch
        self.error: OSError | None = None
        self.is_over = threading.Event()

    def run(self) -> None:
        """Write the file; if that fails, keep the error."""
        try:
            self._files.write(self._batch)
        except OSError as error:
            self.error = error
        finally:
            self.is_over.set()


class _Export:
    """Run of the exporter, from its start until it stops."""

    def __init__(self, settings: Settings, router: plugin.Router) -> None:
        epoch = round(time.time() * US)
        most = settings.rows_in_memory
        self._settings = settings
        self._router = router
        self._flows = Rows(FLOWS, router.id, epoch, most)
        self._events = Rows(EVENTS, router.id, epoch, most)
        self._deliveries = DeliveryRows(router.id, epoch, most)
        self._samples = router.sample_deliveries(settings.sample_share)
        self._files = Files(settings.directory, router.id, epoch)
        self._meter = FlowMeter(self._flows, time.time(), time.monotonic())
        self._queued = router.subscribe(*TYPES)
        self._lost_events = 0
        # batches that are not written yet, the oldest first
        self._batches: list[Writable] = []
        # the write that a thread has begun, until its result is known
        self._current: _Write | None = None
        self._written = router.counter("rows", "Rows that were written.", ("dataset",))
        self._lost = router.counter("lost_rows", "Rows that were lost.", ("dataset",))
        self._failures = router.counter("write_failures", "Files that could not be written.")
        self._waiting = router.gauge("waiting_rows", "Rows in memory.", ("dataset",))
        self._counted_lost: dict[str, int] = {}
        self._stream: RecordStream | None = None
        if settings.record_address is not None:
            self._stream = self._stream_to(settings.record_address, settings.record_datasets)

    def _stream_to(self, address: str, datasets: str) -> RecordStream:
        """Return a stream to an address, to which all new rows of `datasets` are passed."""
        stream = RecordStream(self._router, address, datasets)
        for rows in (self._flows, self._events):
            if stream.takes(rows.dataset.name):
                rows.on_row = partial(_put_row, stream, rows.dataset.name)
        if stream.takes(self._deliveries.dataset.name):
            self._deliveries.on_table = partial(_put_table, stream)
        return stream

    async def run(self) -> None:
        """Collect rows and write them, until cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._take_events)
                nursery.start_soon(self._measure)
                nursery.start_soon(self._take_samples)
                nursery.start_soon(self._write)
                if self._stream is not None:
                    nursery.start_soon(self._stream.run)
                self._router.started()
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + LAST_WRITE_S):
                await self._finish()

    async def _take_events(self) -> None:
        async for event in self._queued:
            self._event(event)

    def _event(self, event: plugin.Event) -> None:
        lost = self._queued.lost
        if lost > self._lost_events:
            self._events.add(
                time=round(event.time * US), kind=EVENTS_LOST, count=lost - self._lost_events
            )
            self._lost_events = lost
        if isinstance(event, plugin.LinkDetached):
            self._meter.detached(event.totals, time.monotonic())
        self._events.add(**row_of(event))

    async def _measure(self) -> None:
        due = trio.current_time()
        while True:
            due = max(due + self._settings.interval_seconds, trio.current_time())
            await trio.sleep_until(due)
            await self._end_interval()

    async def _take_samples(self) -> None:
        while True:
            await trio.sleep(SAMPLES_S)
            self._add_samples()

    def _add_samples(self) -> None:
        self._deliveries.add(self._samples.take(), self._samples.lost)

    async def _end_interval(self) -> None:
        self._meter.begin_reading()
        links = await self._router.links()
        self._meter.end_interval(links, time.time(), time.monotonic())
        self._show()

    def _all(self) -> tuple[Rows | DeliveryRows, ...]:
        return self._flows, self._deliveries, self._events

    def _show(self) -> None:
        for rows in self._all():
            name = rows.dataset.name
            self._waiting.labels(name).set(len(rows) + rows.taken)
            self._lost.labels(name).inc(rows.lost - self._counted_lost.get(name, 0))
            self._counted_lost[name] = rows.lost

    async def _write(self) -> None:
        while True:
            await trio.sleep(self._settings.rotate_seconds)
            self._take_rows()
            pause_s = FIRST_PAUSE_S
            while not await self._write_batches():
                await trio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _take_rows(self) -> None:
        for rows in self._all():
            self._batches.extend(rows.take())

    async def _write_batches(self) -> bool:
        """Write the batches that were taken; return False as soon as one cannot be written."""
        while self._batches:
            batch = self._batches[0]
            try:
                await self._write_one(batch)
            except OSError as error:
                self._failures.inc()
                reason = error.strerror or str(error)
                self._router.log.warning(
                    "telemetry not written", directory=self._settings.directory, reason=reason
                )
                return False
            self._batches.pop(0)
            name = batch.dataset.name
            self._written.labels(name).inc(len(batch))
            for rows in self._all():
                if rows.dataset is batch.dataset:
                    rows.taken -= len(batch)
            self._show()
        return True

    async def _write_one(self, batch: Writable) -> None:
        """Write a batch. Raises OSError if that fails.

        A disk that hangs must not keep the plugin from stopping, so the thread is abandoned if this
        call is cancelled. The next call waits for that thread instead of writing the batch again.
        """
        write = self._current
        if write is None:
            write = self._current = _Write(self._files, batch)
            await trio.to_thread.run_sync(write.run, abandon_on_cancel=True)
        else:
            await trio.to_thread.run_sync(write.is_over.wait, abandon_on_cancel=True)
        self._current = None
        if write.error is not None:
            raise write.error

    async def _finish(self) -> None:
        """Write the rows that are in memory."""
        await self._end_interval()
        self._add_samples()
        self._take_rows()
        await self._write_batches()
