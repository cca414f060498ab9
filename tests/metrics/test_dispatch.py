"""Under Dispatch's names stand the same numbers as under ours, and nothing without a series."""

from __future__ import annotations

import pytest
import trio
from proton import Message

from router.config.model import MetricsSettings
from router.engine.traffic import Traffic
from router.metrics.dispatch import DISPATCH, DispatchMetric

from support import audit
from support.blocking_proton import Peer, send, settle
from support.in_memory import Router
from support.readings import idle_hub, reading_of
from support.scraping import Scrape, running_node

# what Dispatch 1.19 shows of a router, without the memory pools
OF_DISPATCH = {
    *("qdr_connections_total", "qdr_links_total", "qdr_addresses_total", "qdr_routers_total"),
    *("qdr_link_routes_total", "qdr_auto_links_total", "qdr_deliveries_stuck_total"),
    *("qdr_links_blocked_total", "qdr_presettled_deliveries_total"),
    *("qdr_dropped_presettled_deliveries_total", "qdr_accepted_deliveries_total"),
    *("qdr_released_deliveries_total", "qdr_rejected_deliveries_total"),
    *("qdr_modified_deliveries_total", "qdr_deliveries_ingress_total"),
    *("qdr_deliveries_egress_total", "qdr_deliveries_transit_total"),
    *("qdr_deliveries_ingress_route_container_total",),
    *("qdr_deliveries_egress_route_container_total", "qdr_deliveries_delayed_1sec_total"),
    *("qdr_deliveries_delayed_10sec_total", "qdr_deliveries_redirected_to_fallback_total"),
}


def of_dispatch(scraped: Scrape) -> dict[str, float]:
    """Return the samples under Dispatch's names; those with labels are left out."""
    return {
        name: value
        for (name, labels), value in scraped.samples.items()
        if name.startswith("qdr_") and not labels
    }


def test_there_are_all_of_them() -> None:
    assert {each.name for each in DISPATCH} == OF_DISPATCH


@pytest.mark.parametrize("each", DISPATCH, ids=lambda each: each.name)
def test_what_there_is_none_of_says_why(each: DispatchMetric) -> None:
    assert each.ours or each.meaning.endswith(("yet.", "alone."))


async def test_both_names_say_the_same() -> None:
    said = ["accepted", "accepted", "rejected", "released", "modified"]
    async with (
        running_node() as running,
        Peer(running.amqp_port) as one,
        Peer(running.amqp_port) as other,
        trio.open_nursery() as nursery,
    ):
        before = of_dispatch(await running.scrape())
        receiver = await one.receiver("orders")
        sender = await other.sender("orders")
        nursery.start_soon(settle, receiver, said)
        for _ in said:
            await send(sender, Message(body="x"))
        scraped = await running.scrape()
    found = of_dispatch(scraped)
    assert set(found) == OF_DISPATCH
    changed = {name: value - before[name] for name, value in found.items()}
    assert {name: value for name, value in changed.items() if value} == {
        "qdr_links_total": 2,
        "qdr_addresses_total": 1,
        "qdr_accepted_deliveries_total": 2,
        "qdr_rejected_deliveries_total": 1,
        "qdr_released_deliveries_total": 1,
        "qdr_modified_deliveries_total": 1,
        "qdr_deliveries_ingress_total": 5,
        "qdr_deliveries_egress_total": 5,
    }
    assert found["qdr_connections_total"] == 2


async def test_they_can_be_left_out() -> None:
    async with running_node(qdr_names=False) as running:
        assert of_dispatch(await running.scrape()) == {}
        running.node.exposition.collector.configure(MetricsSettings())
        assert set(of_dispatch(await running.scrape())) == OF_DISPATCH


def test_deliveries_of_route_containers_are_counted_apart() -> None:
    hub = idle_hub()
    for role, count in (("normal", 5), ("route-container", 2), ("route-container", 3)):
        counters = hub.add_counters(f"{role}-{count}", "in", role)
        counters.past.add(Traffic(received_deliveries=count, sent_deliveries=10 * count))
    reading = reading_of(hub)
    found = {each.name: each.read(reading) for each in DISPATCH}
    assert found["qdr_deliveries_ingress_route_container_total"] == 5
    assert found["qdr_deliveries_egress_route_container_total"] == 50


def test_links_are_blocked_that_have_had_no_credit_for_ten_seconds() -> None:
    router = Router()
    router.client().sender("q")
    router.client().receiver("q")
    (blocked,) = (each for each in DISPATCH if each.name == "qdr_links_blocked_total")
    assert blocked.read(audit.reading_of(router)) == 0
    router.turn.now += 11
    assert blocked.read(audit.reading_of(router)) == 2
