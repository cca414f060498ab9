"""Send records as messages to an AMQP address, each as a JSON object."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import trio

from router import plugin
from router.client import ClientError, Data, Message, Properties
from router_telemetry.schema import DATASETS, TIMESTAMP, VERSION

ALL: Final = "all"
KINDS: Final = (ALL, *(dataset.name for dataset in DATASETS))
MOST_WAITING: Final = 10_000
"""Maximum number of records that wait for credit; beyond it, the oldest are dropped."""
RETRY_S: Final = 1.0
"""Pause before attaching to the address again."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES: Final = {
    dataset.name: [column.name for column in dataset.columns if column.type == TIMESTAMP]
    for dataset in DATASETS
}


class RecordStream:
    """Sender of records to an address, in presettled messages that wait for credit.

    Records about messages to this address are omitted: each would lead to another record.
    """

    def __init__(self, router: plugin.Router, address: str, datasets: str = ALL) -> None:
        self._router = router
        self._address = address
        self._datasets = frozenset(KINDS[1:] if datasets == ALL else [datasets])
        self._waiting: deque[tuple[str, Mapping[str, object]]] = deque()
        self._has_some = trio.Event()
        self._sent = router.counter("sent_records", "Records sent to an address.", ("dataset",))
        self._dropped = router.counter(
            "dropped_records", "Records that were not sent to an address in time.", ("dataset",)
        )

    def takes(self, dataset: str) -> bool:
        """Return whether records of a dataset are sent."""
        return dataset in self._datasets

    def put(self, dataset: str, rows: Iterable[Mapping[str, object]]) -> None:
        """Send rows, which map column names to values, as soon as there is credit.

        Times are datetimes, or microseconds since 1970.
        """
        for row in rows:
            if row.get("address") == self._address:
                continue
            if len(self._waiting) >= MOST_WAITING:
                lost, _ = self._waiting.popleft()
                self._dropped.labels(lost).inc()
            self._waiting.append((dataset, row))
        if self._waiting:
            self._has_some.set()

    async def run(self) -> None:
        """Send records until cancelled; attach again if the link is lost or refused."""
        while True:
            try:
                async with self._router.connect() as connection:
                    sender = await connection.open_sender(self._address, presettled=True)
                    while True:
                        await self._has_some.wait()
                        await sender.wait_for_room()
                        # a record stays in the queue until it is sent, for the link may be lost
                        dataset, row = self._waiting[0]
                        sender.send_nowait(message_of(dataset, row))
                        self._waiting.popleft()
                        if not self._waiting:
                            self._has_some = trio.Event()
                        self._sent.labels(dataset).inc()
            except ClientError as error:
                self._router.log.warning(
                    "records not sent", address=self._address, reason=str(error)
                )
            await trio.sleep(RETRY_S)


def message_of(dataset: str, row: Mapping[str, object]) -> Message:
    """Return a record as a message whose subject is the dataset and whose body is JSON."""
    values = {name: _value(value) for name, value in row.items() if value is not None}
    for name in _TIMES[dataset]:
        microseconds = values.get(name)
        if isinstance(microseconds, int):
            values[name] = _value(_EPOCH + timedelta(microseconds=microseconds))
    return Message(
        properties=Properties(subject=dataset, content_type="application/json"),
        application_properties={"schema-version": VERSION},
        body=(Data(json.dumps(values, separators=(",", ":")).encode()),),
    )


def _value(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return value.hex() if isinstance(value, bytes) else value
