"""The loads and their ledger, between a client and a broker and no router."""

from __future__ import annotations

from support.broker_loads import Consumer, Ledger, Producer, Traffic
from support.brokers import Broker
from support.proton_peers import ProtonPeers


def test_a_load_passes_a_broker(broker: Broker, proton: ProtonPeers, address: str) -> None:
    ledger = Ledger()
    queue = broker.address(address)
    client = proton.connect(broker.url())
    traffic = Traffic(
        ledger, [Producer(ledger, client, queue, 500)], [Consumer(ledger, client, queue)]
    )
    proton.until(traffic.step, "all has arrived")
    ledger.check(["accepted"])
    assert len(ledger.order) == 500
