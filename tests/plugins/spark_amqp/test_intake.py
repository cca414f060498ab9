"""The Spark intake accepts committed messages, and releases or modifies all others."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from proton import Message
from router_spark_amqp.intake import Intake, SourceLost
from router_spark_amqp.ledger import Batch
from router_spark_amqp.options import parse_options

from support.proton_peers import ProtonPeers
from support.routers import RouterProcess, StartRouter

pytestmark = pytest.mark.spark


@contextmanager
def intake(url: str, *, drains: bool = False, **options: str) -> Iterator[Intake]:
    """Receive from a URL until the end of the block."""
    made = Intake(parse_options({"url": url, **options}), drains=drains)
    made.start(0)
    try:
        yield made
    finally:
        made.stop()


def make_batch(receiving: Intake, proton: ProtonPeers, limit: int) -> Batch:
    """Wait for `limit` rows and cut a batch of them."""
    proton.until(lambda: receiving.waiting >= limit, "the rows are there")
    batch = receiving.make_batch(limit)
    assert batch is not None
    return batch


def test_what_is_committed_is_accepted_and_the_rest_is_given_back(
    router_process: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    url = router_process.url(address)
    sender = proton.connect(router_process.url()).sender(address)
    with intake(url) as receiving:
        sent = [sender.send(Message(body=str(number))) for number in range(5)]
        first = make_batch(receiving, proton, 2)
        second = make_batch(receiving, proton, 2)
        proton.until(lambda: receiving.waiting == 1, "the last is there")
        assert (first.begin, first.end, second.end) == (0, 2, 4)
        assert receiving.between(0, 4) == first.rows + second.rows
        receiving.commit(2)
        proton.until(lambda: sent[1].is_settled, "the first batch is settled")
        assert sender.outcomes == ["accepted", "accepted", "", "", ""]
        assert receiving.has_uncommitted
    proton.until(sender.all_settled, "all is settled")
    assert sender.outcomes == ["accepted", "accepted", "modified", "modified", "released"]


def test_octets_are_bounded(
    router_process: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    sender = proton.connect(router_process.url()).sender(address)
    with intake(router_process.url(address), maxBytes="50") as receiving:
        sent = [sender.send(Message(body="x" * 100)) for _ in range(3)]
        for number in range(3):
            batch = make_batch(receiving, proton, 1)
            assert (len(batch.rows), receiving.waiting) == (1, 0)
            receiving.commit(number + 1)
        proton.until(lambda: all(each.is_settled for each in sent), "all is settled")


def test_a_drain_ends(router_process: RouterProcess, proton: ProtonPeers, address: str) -> None:
    with intake(router_process.url(address), drains=True) as receiving:
        assert receiving.drain() == []
        assert receiving.is_dry


def test_a_pause_may_stand_for_the_end_of_a_drain(
    router_process: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    with intake(router_process.url(address), drains=True, idleSeconds="0.05") as receiving:
        assert receiving.drain() == []
        assert receiving.is_dry


def test_a_peer_that_refuses(router_process: RouterProcess) -> None:
    url = router_process.url("unavailable/node")
    with pytest.raises(SourceLost, match="cannot receive from unavailable/node at 127"):
        Intake(parse_options({"url": url})).start(0)


def test_a_router_that_does_not_come_back(start_router: StartRouter, proton: ProtonPeers) -> None:
    router = start_router()
    with intake(router.url("orders"), reconnectTimeoutSeconds="0.3") as receiving:
        router.stop(signal.SIGKILL)

        def is_given_up() -> bool:
            try:
                receiving.check()
            except SourceLost:
                return True
            return False

        proton.until(is_given_up, "it has given up")
        with pytest.raises(SourceLost, match="cannot connect to"):
            receiving.check()
