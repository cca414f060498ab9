"""Metrics of clients: by connection once it has lasted, and by listener immediately."""

from __future__ import annotations

import pytest
import trio
from proton import Message

from router.metrics import connection_labels

from support.blocking_proton import Peer, send, settle
from support.scraping import running_node

OWN = {"endpoint": "amqp", "user": "anonymous"}


async def test_octets_and_links_of_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_labels, "MIN_AGE_S", 0.0)
    async with running_node() as running:
        async with Peer(running.amqp_port) as one, Peer(running.amqp_port) as other:
            async with trio.open_nursery() as nursery:
                receiver = await other.receiver("orders")
                nursery.start_soon(settle, receiver, ["accepted"] * 3)
                sender = await one.sender("orders")
                for _ in range(3):
                    await send(sender, Message(body="x" * 10_000))
            scraped = await running.scrape()
            for number, pump in running.node.hub.pumps.items():
                container = pump.connection.remote_open.container_id
                own = {**OWN, "connection": str(number), "container": container}
                octets = "received" if number == 1 else "sent"
                links = {"in": float(number == 1), "out": float(number == 2)}
                prefix = "trioute_connection_"
                assert scraped.by("direction", f"{prefix}links", **own) == links
                assert sum(scraped.by("direction", f"{prefix}links_blocked", **own).values()) == 0
                assert 30_000 < scraped(f"{prefix}{octets}_bytes_total", **own) < 35_000
                assert scraped(f"{prefix}held_bytes", **own) == 0
        scraped = await running.scrape_until(lambda s: s("trioute_sessions") == 0)
    series = [labels for name, labels in scraped.samples if name == "trioute_connection_held_bytes"]
    assert [dict(labels)["connection"] for labels in series] == ["other"]
    endpoint = {"endpoint": "amqp", "direction": "in", "role": "normal"}
    assert scraped("trioute_connections_received_bytes_total", **endpoint) > 30_000
    assert scraped("trioute_connections_sent_bytes_total", **endpoint) > 30_000


async def test_without_labels_there_is_nothing_by_connection() -> None:
    async with running_node(connection_label_limit=0) as running:
        scraped = await running.scrape()
    assert not [name for name in scraped.families if name.startswith("trioute_connection_")]
