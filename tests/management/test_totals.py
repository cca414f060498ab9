"""A router's totals for its clients, without its own messages."""

from __future__ import annotations

from typing import Any

from router.client import connect
from router.management.totals import (
    ITEMS_PER_STEP,
    LINKS_PER_STEP,
    Totals,
    compute_link_sums,
    compute_totals,
)

from support.entities import view_of
from support.loopback import dialled, running_node
from support.management import NODE, asked, request


def summed(observed: Any) -> Totals:
    """Run all steps of the addition and return the totals."""
    steps = compute_totals(observed)
    while True:
        try:
            next(steps)
        except StopIteration as over:
            totals: Totals = over.value
            return totals


async def test_a_request_came_in_and_its_answer_went_out() -> None:
    async with running_node() as running:
        async with connect(f"amqp://127.0.0.1:{running.address[1]}") as connection:
            sender = await connection.open_sender(NODE)
            for _ in range(2):
                await asked(connection, sender, request(operation="GET-TYPES"))
        await running.until_empty()
        observed = running.node.hub
        total, counted = observed.table.total(), summed(observed).counters
        assert (total.ingress, total.egress) == (4, 4)
        assert (counted.ingress, counted.egress, counted.told_accepted) == (2, 2, 2)


async def test_few_addresses_and_links_are_added_up_in_each_step() -> None:
    async with running_node() as running, dialled(running.address) as peer:
        table = running.node.hub.table
        for number in range(100 * ITEMS_PER_STEP):
            table.enter(f"q{number}")
        await peer.begin()
        for number in range(3 * ITEMS_PER_STEP):
            await peer.attach_receiver(f"q{number}", credit=0, handle=number)
        steps = list(compute_totals(running.node.hub))
        assert len(steps) >= 100 + 2
        assert summed(running.node.hub).links == 3 * ITEMS_PER_STEP


async def test_few_links_of_an_address_are_added_up_in_each_step() -> None:
    async with running_node() as running, dialled(running.address) as peer:
        await peer.begin()
        for number in range(2 * LINKS_PER_STEP):
            await peer.attach_receiver("q", credit=0, handle=number)
        address = running.node.hub.table.in_use("q")
        assert address is not None
        assert len(list(compute_link_sums(address))) == 2
        *steps, told = view_of(running).address(address)
        assert told is not None
        assert (steps, told.subscribers, told.in_process) == ([None, None], 2 * LINKS_PER_STEP, 0)
