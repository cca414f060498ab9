"""Brokers that refuse: full queues, absent ones, slow ones. Clients hear what the broker says."""

from __future__ import annotations

from proton import Message

from support import artemis as artemis_settings, rabbitmq as rabbitmq_settings
from support.broker_loads import Ledger, Producer
from support.brokers import Broker, until_connected
from support.configuring import LISTENER, both_ways, entity
from support.proton_peers import ProtonConnection, ProtonPeers, Sent
from support.routers import StartRouter


def until_refused(client: ProtonConnection, address: str) -> Sent:
    """Send until a message is not accepted, and return that one."""
    sender = client.sender(address)
    body = "x" * 1000
    for _ in range(100):
        sent = sender.outcome(Message(body, durable=True))
        if sent.outcome != "accepted":
            return sent
    raise AssertionError("it takes everything")


def one_queue(broker: Broker, queue: str, address: str = "orders") -> str:
    """Return the configuration that makes a broker's queue an address of the router."""
    return (
        LISTENER
        + broker.connector()
        + entity("address", prefix=address, waypoint=True)
        + both_ways("autoLink", address=address, connection=broker.name, externalAddress=queue)
    )


def check_full(refused: Sent) -> None:
    """Check that the rejection comes from Artemis."""
    assert refused.outcome == "rejected"
    assert refused.condition is not None
    assert refused.condition.name == "amqp:resource-limit-exceeded"
    assert "is full" in (refused.condition.description or "")


def test_a_queue_that_is_full_refuses_through_auto_links(
    routers: StartRouter, proton: ProtonPeers, address: str, artemis: Broker
) -> None:
    queue = artemis.make_queue(proton, artemis_settings.FULL + address)
    router = routers(one_queue(artemis, queue))
    client = proton.connect(router.url())
    check_full(until_refused(client, "orders"))
    # with room again, it takes more
    receiver = client.receiver("orders", 10)
    receiver.get(10)
    receiver.detach()
    assert client.sender("orders").outcome(Message("x", durable=True)).outcome == "accepted"


def test_a_queue_that_is_full_refuses_through_a_link_route(
    routers: StartRouter, proton: ProtonPeers, address: str, artemis: Broker
) -> None:
    prefix = artemis_settings.FULL.removesuffix(".")
    router = routers(
        LISTENER + artemis.connector() + both_ways("linkRoute", prefix=prefix, connection="artemis")
    )
    until_connected(proton, router)
    check_full(until_refused(proton.connect(router.url()), artemis_settings.FULL + address))


def test_a_broker_that_breaks_off_where_it_should_refuse_is_gone_back_to(
    routers: StartRouter, proton: ProtonPeers, address: str, rabbitmq: Broker
) -> None:
    # RabbitMQ 3.10 cannot say over AMQP 1.0 that a queue takes no more: it ends the connection
    queue = rabbitmq.make_queue(proton, rabbitmq_settings.FULL + address)
    router = routers(one_queue(rabbitmq, queue))
    client = proton.connect(router.url())
    refused = until_refused(client, "orders")
    assert (refused.outcome, refused.failed) == ("modified", True)
    receiver = client.receiver("orders", 10)
    receiver.get(rabbitmq_settings.FULL_AT)
    assert client.sender("orders").outcome(Message("x", durable=True)).outcome == "accepted"
    assert receiver.get(rabbitmq_settings.FULL_AT + 1)[-1].body == "x"


def test_an_absent_queue_is_refused_by_the_broker_itself_through_a_link_route(
    routers: StartRouter, proton: ProtonPeers, address: str, artemis: Broker
) -> None:
    prefix = artemis_settings.ABSENT.removesuffix(".")
    router = routers(
        LISTENER + artemis.connector() + both_ways("linkRoute", prefix=prefix, connection="artemis")
    )
    until_connected(proton, router)
    queue = artemis_settings.ABSENT + address
    through, direct = proton.connect(router.url()), proton.connect(artemis.url())
    for begin in ("begin_sender", "begin_receiver"):
        links = [getattr(client, begin)(queue) for client in (through, direct)]
        for link in links:
            link.until_over()
        refused, said = (link.condition for link in links)
        assert (refused.name, refused.description) == (said.name, said.description)


def test_an_auto_link_waits_for_a_queue_that_is_not_there_yet(
    routers: StartRouter, proton: ProtonPeers, address: str, rabbitmq: Broker
) -> None:
    # only from it: RabbitMQ 3.10 accepts what is sent to a queue that it does not have
    queue = rabbitmq.own_address(address)
    router = routers(
        LISTENER
        + rabbitmq.connector()
        + entity("address", prefix="orders", waypoint=True)
        + entity(
            "autoLink",
            address="orders",
            direction="in",
            connection="rabbitmq",
            externalAddress=queue,
        )
    )
    receiver = proton.connect(router.url()).receiver("orders", 1)
    proton.until(lambda: "not-found" in router.log_text(), "the broker has refused")
    rabbitmq.make_queue(proton, address)
    there = proton.connect(rabbitmq.url())
    assert there.sender(queue).outcome(Message("x", durable=True)).outcome == "accepted"
    assert receiver.get()[0].body == "x"


def test_a_broker_that_stands_still_holds_up_nobody_else(
    routers: StartRouter, proton: ProtonPeers, address: str, artemis: Broker, example: Broker
) -> None:
    router = routers(
        one_queue(artemis, address, "slow")
        + example.connector()
        + entity("address", prefix="quick", waypoint=True)
        + both_ways("autoLink", address="quick", connection="example", externalAddress=address)
    )
    client = proton.connect(router.url())
    slow = [Producer(Ledger(), client, "slow", 2000, name=name, window=5000) for name in "ab"]
    quick = Producer(Ledger(), client, "quick", 500)
    proton.until(lambda: min([_accepted(each) for each in slow]) > 100, "both senders have begun")
    artemis.freeze()
    try:
        proton.until(quick.step, "the other broker takes all")
        for each in slow:
            _accepted(each)
        # no more is under way than the broker gave credit for, and what one link may have
        assert sum(len(each.open) for each in slow) < 2500
    finally:
        artemis.thaw()
    proton.until(lambda: max([_accepted(each) for each in slow]) == 2000, "one of them is done")
    # the other has had its share
    assert min(_accepted(each) for each in slow) > 1000
    for each in slow:
        proton.until(each.step, "the slow one takes all")


def _accepted(producer: Producer) -> int:
    producer.step()
    return producer.accepted
