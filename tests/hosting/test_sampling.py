"""Sampled deliveries, as a plugin gets them from a running router."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from hosting.test_handle import running

from router.client import Accepted, AmqpValue, Message, connect
from router.core.deliveries.sampling import COLUMNS
from router.hosting.handle import MAX_SAMPLES


async def test_deliveries_are_returned_by_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, monkeypatch) as (router, handle):
        samples = handle.sample_deliveries(1.0)
        host, port = router.address
        async with connect(f"amqp://{host}:{port}", container_id="client") as connection:
            receiver = await connection.open_receiver("q")
            sender = await connection.open_sender("q")
            async with trio.open_nursery() as nursery:

                async def send() -> None:
                    assert await sender.send(Message(body=(AmqpValue(1),))) == Accepted()

                nursery.start_soon(send)
                (await receiver.receive()).accept()
        batch = samples.take()
        assert (batch.count, samples.lost) == (1, 0)
        assert tuple(batch.columns) == COLUMNS
        assert {len(column) for column in batch.columns.values()} == {1}
        (number,), (other,) = batch.columns["in_link"], batch.columns["out_link"]
        assert (batch.links[number].direction, batch.links[other].direction) == ("in", "out")
        assert batch.links[number].connection.container == "client"
        assert samples.take().count == 0


async def test_one_plugin_samples_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, monkeypatch) as (router, handle):
        forwarder = router.node.hub.forwarder
        assert forwarder.outcomes.sampler is None
        handle.sample_deliveries(0.5)
        with pytest.raises(ValueError, match="sampled already"):
            handle.sample_deliveries(0.5)
        handle.close()
        assert forwarder.outcomes.sampler is None
        with pytest.raises(RuntimeError, match="stopped"):
            handle.sample_deliveries(0.5)


@pytest.mark.parametrize(
    ("share", "capacity", "says"),
    [(-0.1, 1, "from 0 to 1"), (1.1, 1, "from 0 to 1"), (float("nan"), 1, "from 0 to 1")]
    + [(1.0, count, f"from 1 to {MAX_SAMPLES}") for count in (0, MAX_SAMPLES + 1)],
)
async def test_what_cannot_be_sampled_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, capacity: int, says: str
) -> None:
    async with running(tmp_path, monkeypatch) as (_, handle):
        with pytest.raises(ValueError, match=says):
            handle.sample_deliveries(share, capacity)
