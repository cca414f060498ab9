"""What a router has counted for its clients, without what it has sent and received itself."""

from __future__ import annotations

from router.client import connect
from router.management.totals import counted_by

from support.loopback import running_node
from support.management import NODE, asked, request


async def test_a_request_came_in_and_its_answer_went_out() -> None:
    async with running_node() as running:
        async with connect(f"amqp://127.0.0.1:{running.address[1]}") as connection:
            sender = await connection.open_sender(NODE)
            for _ in range(2):
                await asked(connection, sender, request(operation="GET-TYPES"))
        await running.until_empty()
        observed = running.node.exchange
        total, counted = observed.table.total(), counted_by(observed)
        assert (total.ingress, total.egress) == (4, 4)
        assert (counted.ingress, counted.egress, counted.told_accepted) == (2, 2, 2)
