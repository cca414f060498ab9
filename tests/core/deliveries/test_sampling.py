"""Which deliveries are sampled, and what is recorded of them."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from router.amqp.constants import SenderSettleMode
from router.amqp.message import Data, Header, Message, encode_message
from router.amqp.performatives import Accepted, Modified, Rejected, Released
from router.core.deliveries.sampling import COLUMNS, Rows, Sampler
from router.engine.link import Link

from support.in_memory import Router
from support.pairs import pair, several

MESSAGE = encode_message(Message(body=(Data(b"x"),)))
# what router.core.deliveries.sampling calls so: constants of compiled code cannot be imported
ABSENT = 2**64 - 1
ABORTED, PRESETTLED = 1, 2
RECEIVER, ROUTER = 1, 2
CODES = {Accepted: 0x24, Rejected: 0x25, Released: 0x26, Modified: 0x27}
NS = 10**9


def sampled(router: Router, share: float = 1.0, capacity: int = 10_000, seed: int = 1) -> Sampler:
    """Have a router sample; links are described by their names."""
    numbers = count(1)

    def describe(link: Link) -> str:
        link.number = link.number or next(numbers)
        return link.name

    sampler = Sampler(router.turn, share, capacity, (7, seed), describe)
    router.forwarder.outcomes.sampler = sampler
    return sampler


def rows_of(rows: Rows) -> list[dict[str, int]]:
    """Return rows as they can be compared."""
    assert tuple(rows.columns) == COLUMNS
    assert {len(column) for column in rows.columns.values()} == {rows.count}
    values = zip(*rows.columns.values(), strict=True)
    return [dict(zip(COLUMNS, each, strict=True)) for each in values]


@pytest.mark.parametrize("state", [Accepted(), Rejected(), Released(), Modified()])
def test_what_is_recorded_of_a_delivery(state: Any) -> None:
    router, sender, receiver = pair(10)
    sampler = sampled(router)
    sender.send(MESSAGE)
    assert sampler.count == 0
    router.wait(2.0)
    receiver.settle(state)
    rows = sampler.take()
    (row,) = rows_of(rows)
    assert (row["trace_high"], row["hop"], row["threshold"]) == (7, 1, 2**64 - 1)
    assert row["arrived_ns"] == 1000 * NS
    assert (row["forward_ns"], row["settle_ns"]) == (0, 2 * NS)
    assert [rows.links[row[name]] for name in ("in_link", "out_link")] == [
        sender.name,
        receiver.name,
    ]
    assert row["size"] == len(MESSAGE)
    assert (row["outcome"], row["decided_by"]) == (CODES[type(state)], RECEIVER)
    assert [rows.texts[row[name]] for name in ("reason", "address")] == ["", "q"]
    assert (row["ingress"], row["origin"]) == (0, 0)
    assert rows_of(sampler.take()) == []


def test_a_delivery_that_waited_says_how_long() -> None:
    router, sender, receiver = pair(10, window=0)
    sampler = sampled(router)
    sender.send(MESSAGE)
    router.wait(3.0)
    receiver.client.open_window(10)
    router.wait(1.0)
    receiver.settle(Accepted())
    (row,) = rows_of(sampler.take())
    assert (row["forward_ns"], row["settle_ns"]) == (3 * NS, 4 * NS)


def test_one_that_is_sent_settled_is_over_when_it_has_left() -> None:
    router, sender, _ = pair(10)
    sampler = sampled(router)
    sender.send(MESSAGE, settled=True)
    (row,) = rows_of(sampler.take())
    assert (row["outcome"], row["decided_by"]) == (PRESETTLED, 0)
    assert (row["forward_ns"], row["settle_ns"]) == (0, ABSENT)


def test_a_receiver_that_takes_it_settled_accepts_it() -> None:
    router = Router()
    router.client().receiver("q", 10, snd_settle_mode=SenderSettleMode.SETTLED)
    sender = router.client().sender("q")
    sampler = sampled(router)
    sender.send(MESSAGE)
    (row,) = rows_of(sampler.take())
    assert (row["outcome"], row["decided_by"]) == (CODES[Accepted], RECEIVER)
    assert (row["forward_ns"], row["settle_ns"]) == (0, 0)


def test_what_the_router_decides_has_a_reason() -> None:
    router, sender, receiver = pair(10, window=1)
    sampler = sampled(router)
    sender.send(MESSAGE)
    sender.send(encode_message(Message(header=Header(ttl=1000), body=(Data(b"x"),))))
    router.wait(2.0)
    sender.send(MESSAGE)
    receiver.client.lose()
    rows = sampler.take()
    told = [
        (each["outcome"], each["decided_by"], rows.texts[each["reason"]], each["out_link"] == 0)
        for each in rows_of(rows)
    ]
    assert told == [
        (CODES[Rejected], ROUTER, "trioute:expired", True),
        (CODES[Modified], ROUTER, "delivery-failed", False),
        (CODES[Released], ROUTER, "no-receiver", True),
    ]


def test_a_delivery_that_is_aborted_is_recorded_once() -> None:
    router, sender, _ = pair(10)
    sampler = sampled(router)
    sender.send(MESSAGE, more=True)
    sender.abort()
    (row,) = rows_of(sampler.take())
    assert (row["outcome"], row["decided_by"], row["settle_ns"]) == (ABORTED, 0, 0)


def test_each_copy_of_a_multicast_has_a_row() -> None:
    router, sender, receivers = several("multicast", [1, 1, 1])
    sampler = sampled(router)
    sender.send(MESSAGE)
    receivers[0].settle(Accepted())
    receivers[1].settle(Rejected())
    receivers[2].client.lose()
    rows = rows_of(sampler.take())
    assert len({each["trace_low"] for each in rows}) == 1
    assert len({each["out_link"] for each in rows}) == 3
    assert [each["outcome"] for each in rows] == [
        CODES[Accepted],
        CODES[Rejected],
        CODES[Modified],
    ]


def test_the_share_is_kept_and_traces_are_never_the_same() -> None:
    router, sender, receiver = pair(10_000)
    sampler = sampled(router, share=0.25)
    for _ in range(4000):
        sender.send(MESSAGE)
        receiver.settle(Accepted())
        receiver.grant(10)
    rows = rows_of(sampler.take())
    # chosen by a hash: the same ones in each run
    assert len(rows) == 1053
    assert len({each["trace_low"] for each in rows}) == len(rows)
    assert {each["threshold"] for each in rows} == {2**62}


def test_nothing_is_chosen_where_the_share_is_0() -> None:
    router, sender, receiver = pair(10)
    sampler = sampled(router, share=0.0)
    sender.send(MESSAGE)
    receiver.settle(Accepted())
    assert sampler.count == 0


def test_rows_for_which_there_is_no_room_are_counted() -> None:
    router, sender, receiver = pair(10)
    sampler = sampled(router, capacity=2)
    for _ in range(5):
        sender.send(MESSAGE)
    receiver.settle(Accepted())
    assert (sampler.count, sampler.lost) == (2, 3)
    sampler.take()
    sender.send(MESSAGE)
    receiver.settle(Accepted())
    rows = sampler.take()
    assert rows.count == 1
    assert sampler.lost == 3
    # links are described for each batch
    assert len(rows.links) == 2


def test_one_that_was_chosen_may_end_after_sampling_has() -> None:
    router, sender, receiver = pair(10)
    sampler = sampled(router)
    sending = sender.send(MESSAGE)
    router.forwarder.outcomes.sampler = None
    receiver.settle(Accepted())
    assert sampler.count == 0
    assert sending.outcome == Accepted()
