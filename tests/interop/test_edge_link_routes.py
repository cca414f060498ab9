"""Links to containers by way of edges, whichever end is at one: real routers, and Proton."""

from __future__ import annotations

import signal

import pytest
from proton import Message

from support.configuring import both_ways, entity
from support.proton_broker import ProtonBroker
from support.proton_containers import ProtonContainer
from support.proton_peers import ProtonPeers
from support.router_lines import (
    EDGES,
    ask_for_route,
    edge,
    interior,
    start_between_edges,
    until_known,
)
from support.routers import RouterProcess, StartRouter
from support.transacting import Transacting

LISTENER = entity("listener", name="brokers", host="127.0.0.1", port=0, role="route-container")
BROKERS = (
    LISTENER
    + both_ways("linkRoute", prefix="queue", connection="brokers")
    + both_ways("linkRoute", prefix="$coordinator", connection="brokers")
)
LOST = "qd:routed-link-lost"
NO_ROUTE = "qd:no-route-to-dest"


@pytest.fixture
def line(routers: StartRouter) -> list[RouterProcess]:
    """Start an edge, two interior routers and an edge with a listener for brokers."""
    return start_between_edges(routers, BROKERS)


def brokers_at(router: RouterProcess) -> str:
    """Where brokers connect to an edge."""
    return router.url(listener=1)


def test_transactions_from_edge_to_edge(line: list[RouterProcess], proton: ProtonPeers) -> None:
    broker = ProtonBroker(proton).connect(brokers_at(line[-1]), container_id="broker")
    until_known(line[0], "C$coordinator", "Cqueue", "Dqueue")
    client = proton.connect(line[0].url(), container_id="client")
    sender = client.sender("queue/a")
    for number, ends in enumerate(("commit", "abort", "commit")):
        transaction = Transacting(client).begin()
        for each in range(3):
            transaction.send(sender, Message(f"{number}.{each}"))
        getattr(transaction, ends)()
    assert (broker.committed, broker.rolled_back) == (2, 1)
    receiver = client.receiver("queue/a", credit=10)
    receiver.get(6)
    assert receiver.bodies() == ["0.0", "0.1", "0.2", "2.0", "2.1", "2.2"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "paused"])
def test_an_interior_is_lost_and_the_next_uplink_takes_over(
    routers: StartRouter, proton: ProtonPeers, how: signal.Signals
) -> None:
    b = routers(interior("b", more=EDGES))
    a = routers(interior("a", b, more=EDGES))
    client_edge = routers(edge("e", a, b))
    broker_edge = routers(edge("f", b, more=BROKERS))
    broker = ProtonContainer(proton, brokers_at(broker_edge), "broker")
    until_known(client_edge, "Cqueue", "Dqueue")
    client = proton.connect(client_edge.url(), container_id="client")
    sender, receiver = client.sender("queue/a"), client.receiver("queue/b", credit=5)
    broker.accept = False
    sent = sender.send(Message("in doubt"))
    broker.receivers[0].get()
    a.process.send_signal(how)
    try:
        for link in (sender, receiver):
            link.until_over()
            assert link.condition is not None
            assert link.condition.name == LOST
        assert (sent.outcome, sent.failed) == ("modified", True)
        # at once: no attach finds an address of that name
        again = client.sender("queue/a")
        broker.accept = True
        proton.until(lambda: len(broker.receivers) == 2, "it is at the broker")
        broker.receivers[1].accept = True
        assert again.outcome(Message("once more")).outcome == "accepted"
    finally:
        if how == signal.SIGSTOP:
            a.process.send_signal(signal.SIGCONT)


def test_the_brokers_edge_is_lost(line: list[RouterProcess], proton: ProtonPeers) -> None:
    ProtonContainer(proton, brokers_at(line[-1]), "broker")
    for router in line[:-1]:
        until_known(router, "Cqueue", "Dqueue")
    clients = [proton.connect(router.url(), container_id="client") for router in line[:-1]]
    links = [
        client.receiver("queue/a", credit=1, name=f"r{at}") for at, client in enumerate(clients)
    ]
    line[-1].process.kill()
    for link in links:
        link.until_over()
        assert link.condition is not None
        assert link.condition.name == LOST
    for router in line[:-1]:
        until_known(router, "Cqueue", "Dqueue", known=False)


def test_an_edge_without_an_uplink_refuses_what_it_knew_of(
    line: list[RouterProcess], proton: ProtonPeers
) -> None:
    ProtonContainer(proton, brokers_at(line[-1]), "broker")
    until_known(line[0], "Cqueue", "Dqueue")
    client = proton.connect(line[0].url(), container_id="client")
    first = client.sender("queue/a")
    line[1].process.kill()
    first.until_over()
    refused = client.sender("queue/b")
    refused.until_over()
    assert refused.condition is not None
    assert refused.condition.name == NO_ROUTE


def test_a_route_that_a_container_at_an_edge_asks_for(
    line: list[RouterProcess], proton: ProtonPeers
) -> None:
    connection = ask_for_route(line[-1], "mine/*")
    for router in line:
        until_known(router, "Emine/*")
    connection.close()
    for router in line:
        until_known(router, "Emine/*", known=False)


def test_auto_links_of_an_edge(routers: StartRouter, proton: ProtonPeers) -> None:
    broker = ProtonBroker(proton)
    broker.queues["out"].append(bytes(Message("old").encode()))
    links = "".join(
        entity("autoLink", connection="brokers", phase=0, **fields)
        for fields in (
            {"address": "orders", "direction": "out", "externalAddress": "in"},
            {"address": "news", "direction": "in", "externalAddress": "out"},
        )
    )
    line = start_between_edges(routers, LISTENER + links)
    broker.connect(brokers_at(line[-1]), container_id="broker")
    for number, router in enumerate(line):
        sender = proton.connect(router.url()).sender("orders")
        assert sender.outcome(Message(number)).outcome == "accepted"
    assert len(broker.queues["in"]) == 4
    receiver = proton.connect(line[0].url()).receiver("news", 10)
    assert receiver.get()[0].body == "old"
