"""Senders send at their rate, receivers settle as they are told to, and the ledger hears of it."""

from __future__ import annotations

from typing import Any

import pytest

from router.simulation.network import Network
from router.simulation.topology import ReceiverEntry, SenderEntry
from router.simulation.traffic import Flow, Listener, Traffic


def traffic(sender: dict[str, Any], receiver: dict[str, Any]) -> tuple[Network, Traffic]:
    """One router, with traffic of one address."""
    network = Network()
    network.add("a")
    made = Traffic(
        network,
        ["a"],
        [ReceiverEntry(**{"address": "q", **receiver})],
        [SenderEntry(**{"address": "q", **sender})],
    )
    network.start()
    network.run(1)
    return network, made


def outcomes(made: Traffic) -> set[str]:
    """Return the outcomes that the senders were told."""
    return {entry.outcome for entry in made.ledger.entries}


def test_senders_send_at_their_rate_until_they_end() -> None:
    network, made = traffic({"rate": 100, "bytes": 300}, {})
    made.begin()
    network.run(10)
    made.end()
    network.run(10)

    assert 995 <= len(made.ledger.entries) <= 1001
    assert outcomes(made) == {"accepted"}
    assert made.ledger.mistakes(is_whole=True) == []


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        ("accept", "accepted"),
        ("release", "released"),
        ("reject", "rejected"),
        ("modify", "modified"),
    ],
)
def test_receivers_settle_as_they_are_told_to(outcome: str, told: str) -> None:
    network, made = traffic({}, {"outcome": outcome, "milliseconds": 20})
    made.begin()
    network.run(3)

    assert outcomes(made) - {""} == {told}


@pytest.mark.parametrize("body", [8, 255, 256, 100_000])
@pytest.mark.parametrize("anonymous", [True, False])
def test_bodies_of_any_size_carry_their_number(body: int, anonymous: bool) -> None:
    network, made = traffic({"bytes": body, "anonymous": anonymous, "presettled": True}, {})
    made.begin()
    network.run(2)

    assert len(made.ledger.entries) > 10
    assert all(len(entry.receivers) == 1 for entry in made.ledger.entries[:10])


def test_there_is_one_for_each_place_with_an_address_of_its_own_where_that_is_said() -> None:
    network = Network()
    for name in "abc":
        network.add(name)
    made = Traffic(
        network,
        ["a", "b", "c"],
        [ReceiverEntry(address="q.{n}", at=("a", "c")), ReceiverEntry(address="x", count=5)],
        [SenderEntry(address="q.{n}", at=("b", "c"))],
    )

    assert [(sink.router, sink.address) for sink in made.sinks[:2]] == [("a", "q.0"), ("c", "q.1")]
    assert len(made.sinks) == 7
    assert [(flow.router, flow.address) for flow in made.flows] == [("b", "q.0"), ("c", "q.1")]


def test_who_listens_hears_of_everything() -> None:
    heard: list[str] = []

    class Ear(Listener):
        def sent(self, flow: Flow) -> None:
            heard.append("sent")

        def outcome_known(self, flow: Flow, entry: Any) -> None:
            heard.append(entry.outcome)

        def delivered(self, sink: Any, flow: Flow, entry: Any) -> None:
            heard.append("delivered")

    network, made = traffic({"rate": 1}, {})
    made.listener = Ear()
    made.begin()
    network.run(1)

    assert heard == ["sent", "delivered", "accepted"]


def test_what_is_lost_with_its_connection_is_noted() -> None:
    network, made = traffic({"rate": 100}, {"milliseconds": 500})
    made.begin()
    network.run(2)
    network.restart("a")
    network.run(5)

    assert "lost" in outcomes(made)
    assert made.ledger.mistakes(is_whole=False) == []
