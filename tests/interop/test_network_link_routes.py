"""Links to containers at other routers while the network changes: real routers, and Proton."""

from __future__ import annotations

import signal

import pytest
from proton import Message

from support.configuring import both_ways, entity
from support.proton_broker import ProtonBroker
from support.proton_containers import ProtonContainer
from support.proton_peers import ProtonPeers
from support.router_lines import ask_for_route, interior, start_line, until_known
from support.routers import RouterProcess, StartRouter
from support.transacting import Transacting

BROKERS = (
    entity("listener", name="brokers", host="127.0.0.1", port=0, role="route-container")
    + both_ways("linkRoute", prefix="queue", connection="brokers")
    + both_ways("linkRoute", prefix="$coordinator", connection="brokers")
)
LOST = "qd:routed-link-lost"


@pytest.fixture
def line(routers: StartRouter) -> list[RouterProcess]:
    """Three routers in a line, the last one with a listener for brokers."""
    return start_line(routers, "a", "b", "c", last=BROKERS)


@pytest.fixture
def diamond(routers: StartRouter) -> dict[str, RouterProcess]:
    """From `a` to `d`, where brokers are, by way of `b`, or of `c`, which is longer."""
    found = {"d": routers(interior("d", more=BROKERS))}
    found["b"] = routers(interior("b", found["d"]))
    found["c"] = routers(interior("c", found["d"], costs=(5,)))
    found["a"] = routers(interior("a", found["b"], found["c"], costs=(1, 5)))
    return found


def brokers_at(router: RouterProcess) -> str:
    """Where brokers connect to a router."""
    return router.url(listener=2)


def test_transactions(line: list[RouterProcess], proton: ProtonPeers) -> None:
    broker = ProtonBroker(proton).connect(brokers_at(line[2]), container_id="broker")
    until_known(line[0], "C$coordinator", "Cqueue", "Dqueue")
    client = proton.connect(line[0].url(), container_id="client")
    sender = client.sender("queue/a")
    for number, ends in enumerate(("commit", "abort", "commit")):
        transaction = Transacting(client).begin()
        sent = [transaction.send(sender, Message(f"{number}.{each}")) for each in range(3)]
        getattr(transaction, ends)()
        assert len(sent) == 3
    assert (broker.committed, broker.rolled_back) == (2, 1)
    bodies = []
    for octets in broker.queues["queue/a"]:
        message = Message()
        message.decode(octets)
        bodies.append(message.body)
    assert bodies == ["0.0", "0.1", "0.2", "2.0", "2.1", "2.2"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "paused"])
def test_a_router_on_the_way_is_lost(
    diamond: dict[str, RouterProcess], proton: ProtonPeers, how: signal.Signals
) -> None:
    broker = ProtonContainer(proton, brokers_at(diamond["d"]), "broker")
    broker.accept = False
    until_known(diamond["a"], "Cqueue", "Dqueue")
    client = proton.connect(diamond["a"].url(), container_id="client")
    sender = client.sender("queue/a")
    receiver = client.receiver("queue/b", credit=5)
    sent = sender.send(Message("in doubt"))
    assert broker.receivers[0].get()[0].body == "in doubt"
    diamond["b"].process.send_signal(how)
    try:
        sender.until_over()
        receiver.until_over()
        assert [link.condition and link.condition.name for link in (sender, receiver)] == [LOST] * 2
        assert (sent.outcome, sent.failed) == ("modified", True)
        # the container is told, too
        proton.until(lambda: broker.receivers[0].is_over, "the container's end is over")
        broker.accept = True
        again = client.sender("queue/a")
        assert again.outcome(Message("once more")).outcome == "accepted"
        assert broker.receivers[1].get()[0].body == "once more"
    finally:
        if how == signal.SIGSTOP:
            diamond["b"].process.send_signal(signal.SIGCONT)


def test_a_link_that_comes_back_by_another_router(
    line: list[RouterProcess], proton: ProtonPeers
) -> None:
    broker = ProtonContainer(proton, brokers_at(line[2]), "broker")
    for router in line:
        until_known(router, "Dqueue")
    first = proton.connect(line[0].url(), container_id="client")
    old = first.receiver("queue/a", credit=1, name="durable")
    second = proton.connect(line[1].url(), container_id="client")
    new = second.receiver("queue/a", credit=5, name="durable")
    old.until_over()
    assert old.condition is not None
    assert old.condition.name == "amqp:link:stolen"
    assert [sender.link.name for sender in broker.senders] == ["durable@client"] * 2
    broker.senders[1].send(Message("one"))
    assert new.get()[0].body == "one"


def test_a_route_lasts_as_long_as_its_container(
    line: list[RouterProcess], proton: ProtonPeers
) -> None:
    broker = ProtonContainer(proton, brokers_at(line[2]), "broker")
    until_known(line[0], "Cqueue", "Dqueue", "C$coordinator")
    broker.close()
    until_known(line[0], "Cqueue", "Dqueue", "C$coordinator", known=False)
    # and one that its container asks for, which may come and go by any connection
    connection = ask_for_route(line[2], "mine/*")
    until_known(line[0], "Emine/*")
    connection.close()
    until_known(line[0], "Emine/*", known=False)
