"""The ledger of waiting, batched and committed rows, without Spark and without AMQP."""

from __future__ import annotations

import pytest
from router_spark_amqp.ledger import Ledger, Row

pytestmark = pytest.mark.spark


class Told:
    """A delivery that keeps what it was told."""

    def __init__(self) -> None:
        self.outcomes: list[str] = []

    def accept(self) -> None:
        self.outcomes.append("accepted")

    def release(self) -> None:
        self.outcomes.append("released")

    def modify(self, *, delivery_failed: bool = False, undeliverable_here: bool = False) -> None:
        self.outcomes.append("modified")


def rows(*payloads: bytes, settled: bool = False) -> list[Row]:
    return [Row(Told(), payload, 0, settled) for payload in payloads]


def payloads(found: list[Row]) -> list[bytes]:
    return [row.payload for row in found]


def test_rows_are_counted_until_their_batch_is_committed() -> None:
    ledger = Ledger()
    ledger.position = 100
    assert ledger.make_batch(5) is None
    ledger.add(rows(b"a", b"bb", b"ccc"))
    assert (ledger.waiting, ledger.count, ledger.octets) == (3, 3, 6)
    first = ledger.make_batch(2)
    second = ledger.make_batch(None)
    assert first is not None
    assert second is not None
    assert (first.begin, first.end, second.end) == (100, 102, 103)
    assert (ledger.waiting, ledger.count, ledger.has_uncommitted) == (0, 3, True)
    assert payloads(ledger.between(100, 102)) == [b"a", b"bb"]
    assert payloads(ledger.between(100, 103)) == [b"a", b"bb", b"ccc"]
    assert payloads(ledger.commit(102)) == [b"a", b"bb"]
    assert ledger.commit(102) == []
    assert ledger.between(100, 102) == []
    assert (ledger.count, ledger.octets) == (1, 3)
    assert payloads(ledger.commit(103)) == [b"ccc"]
    assert (ledger.count, ledger.octets, ledger.has_uncommitted) == (0, 0, False)


def test_a_lost_link_takes_what_will_come_again() -> None:
    ledger = Ledger()
    ledger.add(rows(b"batched"))
    ledger.make_batch(None)
    ledger.add(rows(b"waiting"))
    ledger.add(rows(b"settled", settled=True))
    assert ledger.lose_link() == 1
    assert (ledger.waiting, ledger.count) == (1, 2)
    batch = ledger.make_batch(None)
    assert batch is not None
    assert payloads(batch.rows) == [b"settled"]
    assert payloads(ledger.between(0, 1)) == [b"batched"]


def test_giving_up_tells_what_spark_has_seen() -> None:
    ledger = Ledger()
    ledger.add(rows(b"a", b"b"))
    ledger.make_batch(1)
    waiting, batched = ledger.give_up()
    assert (payloads(waiting), payloads(batched)) == ([b"b"], [b"a"])
    assert (ledger.count, ledger.octets, ledger.has_uncommitted) == (0, 0, False)
