"""Traces on their way: by the receiver's credit, so much waits and no more, the rest is counted."""

from __future__ import annotations

from router.client import connect
from router.client.management import open_management
from router.engine.account import LINE_BYTES, TRACES, Account, Ledger
from router.management.running_traces import (
    LINES_PER_MESSAGE,
    MAX_UNSETTLED_MESSAGES,
    MAX_WAITING_CHARACTERS,
    MAX_WAITING_LINES,
    Trace,
)

from support.loopback import running_node


def test_what_waits_is_bounded_and_the_rest_is_counted() -> None:
    account = Account(Ledger())
    trace = Trace(1, "q", None, account)
    for _ in range(MAX_WAITING_LINES + 7):
        trace.add({"kind": "frame"})
    assert trace.dropped == 7
    wide = Trace(2, "q", None, account)
    for _ in range(10):
        wide.add({"payload": "x" * (MAX_WAITING_CHARACTERS // 4)})
    assert wide.dropped == 6
    fields = Trace(3, "q", None, account)
    for _ in range(10):
        fields.add({"fields": {"f": "x" * (MAX_WAITING_CHARACTERS // 4)}})
    assert fields.dropped == 6
    waiting = MAX_WAITING_LINES * LINE_BYTES + 4 * LINE_BYTES * 2 + 2 * MAX_WAITING_CHARACTERS
    assert account.of_kind(TRACES) == waiting + MAX_WAITING_LINES * len("frame")
    for each in (trace, wide, fields):
        each.end()
    assert account.total == 0


async def test_without_credit_lines_wait_and_then_are_dropped() -> None:
    async with running_node() as running:
        host, port = running.address
        async with connect(f"amqp://{host}:{port}") as connection:
            management = await open_management(connection)
            receiver = await management.open_receiver(credit=2)
            await management.request("TRACE", None, {"to": receiver.address, "all": True})
            view = running.node.view
            assert view is not None
            (trace,) = view.running_traces.by_number.values()
            most = MAX_WAITING_LINES + LINES_PER_MESSAGE * (MAX_UNSETTLED_MESSAGES + 4)
            for _ in range(3 * most):
                trace.add({"kind": "frame"})
            assert trace.dropped >= 2 * most
            dropped = trace.dropped
            # what waited comes as soon as it is taken, and how much did not
            count, told = 0, 0
            while count + dropped < 3 * most:
                received = await receiver.receive()
                received.accept()
                message = received.message
                count += len(message.body[0].value)  # type: ignore[union-attr]
                told = (message.application_properties or {})["dropped"]
            assert (count, told) == (3 * most - dropped, dropped)
