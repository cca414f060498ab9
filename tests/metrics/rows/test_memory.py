"""Metrics of memory: each use is counted in its place, until it is freed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from router.amqp.constants import TerminusExpiryPolicy
from router.amqp.message import Data, Header, Message, encode_message
from router.amqp.performatives import Accepted, Source
from router.engine.account import KINDS, LINK_BYTES
from router.logs.recent_lines import Line

from support.audit import reading_of
from support.in_memory import Router
from support.pairs import pair
from support.readings import idle_hub, reading_of as reading_of_exchange, samples
from support.scraping import running_node
from support.transcripts import wire

ANNOTATED = encode_message(
    Message(Header(), message_annotations={"k": "x" * 200}, body=(Data(b"y" * 500),))
)
KEPT = encode_message(Message(body=(Data(b"z" * 300),)))


def memory(router: Router) -> dict[str, int]:
    """Return the memory of messages and frames, without output buffers and charges of peers."""
    return {
        reason: octets
        for reason, octets in reading_of(router).memory.items()
        if octets and reason not in ("output", *KINDS)
    }


def waiting(router: Router) -> tuple[Callable[[], object], dict[str, int]]:
    client = router.client()
    client.receiver("q", 10)
    client.open_window(0)
    router.client().sender("q").send(b"x" * 1000)
    return lambda: client.open_window(10), {"waiting": 1000}


def half_sent(router: Router) -> tuple[Callable[[], object], dict[str, int]]:
    client = router.client()
    client.receiver("q", 10)
    sender = router.client().sender("q")
    sender.send(b"x" * 10, more=True)
    client.open_window(0)
    sender.go_on(b"y" * 700)
    return lambda: client.open_window(10), {"half_sent": 700}


def half_sent_of_a_multicast(router: Router) -> tuple[Callable[[], object], dict[str, int]]:
    router.client().receiver("multicast", 10)
    slow = router.client()
    slow.receiver("multicast", 10)
    sender = router.client().sender("multicast")
    sender.send(b"x" * 10, more=True)
    slow.open_window(0)
    sender.go_on(b"y" * 700)
    return lambda: slow.open_window(10), {"half_sent": 700}


def heads(router: Router) -> tuple[Callable[[], object], dict[str, int]]:
    router.client().receiver("q", 10)
    sender = router.client().sender("q")
    sender.send(ANNOTATED[:150], more=True)
    return lambda: sender.go_on(ANNOTATED[150:]), {"heads": 150}


def redelivery(router: Router) -> tuple[Callable[[], object], dict[str, int]]:
    receivers = [router.client().receiver("q", 10) for _ in range(2)]
    router.client().sender("q").send(KEPT)

    def settle() -> None:
        for receiver in receivers:
            if receiver.unsettled:
                receiver.settle(Accepted())

    return settle, {"redelivery": len(KEPT)}


def cut_frame(router: Router) -> tuple[Callable[[], object], dict[str, int]]:
    client = router.client()
    flow = wire(client.flow())
    client.say(flow[:-3])
    return lambda: client.say(flow[-3:]), {"input": len(flow) - 3}


@pytest.mark.parametrize(
    "hold", [waiting, half_sent, half_sent_of_a_multicast, heads, redelivery, cut_frame]
)
def test_each_reason_rises_and_falls_back(
    hold: Callable[[Router], tuple[Callable[[], object], dict[str, int]]],
) -> None:
    router = Router([(True, "multicast", "multicast")])
    let_go, held = hold(router)
    assert memory(router) == held
    let_go()
    assert memory(router) == {}


def test_what_a_peer_does_not_read_takes_a_buffer() -> None:
    router, sender, receiver = pair(1000)
    receiver.client.read(reads=False)
    before = reading_of(router).memory["output"]
    for _ in range(300):
        sender.send(b"x" * 1000)
    stalled = reading_of(router)
    assert stalled.memory["output"] >= before + 300 * 1000
    assert stalled.connections[-1].unsent_bytes > 300 * 1000
    receiver.client.read()
    for client in router.clients:
        # as the clock does with a connection that has been quiet
        client.connection.outbox.output.trim()
    assert reading_of(router).memory["output"] == 0
    assert reading_of(router).connections[-1].unsent_bytes == 0


def test_suspended_deliveries_are_counted_until_their_time_ends() -> None:
    lasts = Source(address="q", expiry_policy=TerminusExpiryPolicy.LINK_DETACH, timeout=10)
    router = Router()
    receiver = router.client().receiver("q", 10, source=lasts)
    sender = router.client().sender("q")
    for _ in range(3):
        sender.send(KEPT)
    assert reading_of(router).suspended == 0
    receiver.client.lose()
    assert reading_of(router).suspended == 3
    router.wait(11)
    assert reading_of(router).suspended == 0


async def test_the_router_s_own_connection_and_buffer() -> None:
    async with running_node() as running:
        scraped = await running.scrape()
        octets = scraped.by("reason", "trioute_memory_bytes")
        assert octets["read_buffer"] == len(running.node.hub.buffer)
        own = running.node.hub.own_pump
        assert own is not None
        own.connection.outbox.output.reserve(5000)
        scraped = await running.scrape()
        assert scraped("trioute_memory_bytes", reason="management") >= 5000


async def test_lines_that_are_kept() -> None:
    async with running_node() as running:
        before = (await running.scrape())("trioute_memory_bytes", reason="log")
        line = Line("ROUTER", "info", "x" * 100, 0)
        running.node.journal.recent.add(line)
        assert (await running.scrape())("trioute_memory_bytes", reason="log") == before + 100


def test_every_reason_is_there_from_the_start() -> None:
    found = samples(reading_of_exchange(idle_hub()), "trioute_memory_bytes")
    assert {labels[0] for labels in found} == {
        *("waiting", "half_sent", "heads", "redelivery"),
        *("input", "output", "management", "read_buffer"),
        *KINDS,
    }


def test_what_peers_are_charged_for_is_told_by_kind_and_by_connection() -> None:
    router = Router()
    ledger = router.turn.ledger
    ledger.limit_bytes = 1_000_000
    assert reading_of(router).memory["links"] == 0
    router.client().receiver("q", 10)
    reading = reading_of(router)
    assert reading.memory["links"] == ledger.by_kind["links"] >= LINK_BYTES
    assert reading.memory["connection"] == ledger.by_kind["connection"] > 0
    held = sum(each.memory_bytes for each in reading.connections)
    assert held >= ledger.total
    assert (reading.ledger.limit_bytes, reading.ledger.refused) == (1_000_000, 0)
