"""Consumers of event hubs that read from an offset: served by a container, refused by the router.

They ask for it with a filter. Links to `hub` are forwarded to a container with a log of events.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from azure.eventhub import EventData, EventHubConsumerClient
from proton import Message, symbol, timestamp

from support.azure_peers import (
    KEYS,
    LISTENERS,
    PATIENCE_S,
    said_by_java,
    said_by_node,
    serve,
    text_for,
)
from support.certificates import Authority
from support.configuring import both_ways
from support.proton_containers import ProtonContainer
from support.proton_peers import ProtonPeers, ProtonSender
from support.routers import RouterProcess, StartRouter
from support.tls_peers import listener

BROKERS = listener("brokers", role="route-container")
BROKERS += both_ways("linkRoute", prefix="hub", connection="brokers")
ROUTES = KEYS + LISTENERS + BROKERS
REFUSAL = "unsupported source filter: apache.org:selector-filter:string"
_OFFSET = re.compile(r"amqp\.annotation\.x-opt-offset > '(-?\d+)'")


class EventLog(ProtonContainer):
    """Container with a log of five events, from which consumers read what is behind an offset."""

    def on_link_remote_open(self, event: Any) -> None:
        """Take a link; send a consumer the events after the offset that its filter names."""
        super().on_link_remote_open(event)
        if not event.link.is_sender:
            return
        asked = event.link.remote_source.filter
        asked.rewind()
        assert asked.next()
        [selector] = asked.get_object().values()
        found = _OFFSET.fullmatch(selector.value)
        assert found, selector
        consumer = self.senders[-1]
        assert isinstance(consumer, ProtonSender)
        for number in range(int(found[1]) + 1, 5):
            annotations = {
                symbol("x-opt-offset"): str(number),
                symbol("x-opt-sequence-number"): number,
                symbol("x-opt-enqueued-time"): timestamp(1_800_000_000_000),
            }
            body = f"event {number}".encode()
            message = Message(body, annotations=annotations, inferred=True)
            # consumers of event hubs never settle
            delivery = consumer.link.delivery(str(number))
            consumer.link.stream(message.encode())
            delivery.settle()
            consumer.link.advance()


def read_by_python(router: RouterProcess, hub: str, offset: str) -> list[str]:
    """Return what the SDK in Python reads: two events, or the error."""
    text = f"{text_for(router)};EntityPath={hub}"
    consumer = EventHubConsumerClient.from_connection_string(text, "$Default", retry_total=0)
    found: list[str] = []
    over = threading.Event()

    def received(_: object, event: EventData | None) -> None:
        assert event is not None
        found.append(f"{event.body_as_str()}@{event.offset}")
        if len(found) == 2:
            over.set()

    def failed(_: object, error: Exception) -> None:
        found.append(str(error))
        over.set()

    with consumer, ThreadPoolExecutor() as pool:
        reading = pool.submit(
            consumer.receive,
            received,
            partition_id="0",
            starting_position=offset,
            on_error=failed,
            prefetch=2,
        )
        over.wait(PATIENCE_S)
        consumer.close()
        reading.result(PATIENCE_S)
    return found[:2]


def read_by_node(router: RouterProcess, hub: str, offset: str) -> list[str]:
    """Return what the SDK in JavaScript reads: two events, or the error."""
    said = said_by_node("consume", text_for(router), hub, offset)
    return [said["failed"]] if "failed" in said else said["events"]


@pytest.mark.parametrize("read", [read_by_python, read_by_node])
def test_a_consumer_reads_on_from_an_offset(
    routers: StartRouter, proton: ProtonPeers, read: Callable[..., list[str]]
) -> None:
    router = routers(ROUTES)
    EventLog(proton, router.url(listener=2), "log")
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(read, router, "hub", "1")
        proton.until(reading.done, "it has read")
    assert reading.result() == ["event 2@2", "event 3@3"]


@pytest.mark.parametrize("read", [read_by_python, read_by_node])
def test_a_consumer_of_an_address_of_the_router_is_refused(
    routers: StartRouter, read: Callable[..., list[str]]
) -> None:
    [refused] = read(routers(ROUTES), "other", "1")
    assert REFUSAL in refused


def test_a_consumer_in_java(
    routers: StartRouter, authority: Authority, proton: ProtonPeers
) -> None:
    router, place = serve(routers, authority, "tls", BROKERS)
    EventLog(proton, router.url(listener=3), "log")
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(said_by_java, authority, place, "consume:hub:1", "consume:other:1")
        proton.until(reading.done, "it has read")
    read, refused = reading.result()
    assert read == "event 2@2, event 3@3"
    assert REFUSAL in refused
