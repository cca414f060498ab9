"""Transactions that ActiveMQ Artemis coordinates, for clients of the router."""

from __future__ import annotations

from proton import Message

from router.amqp.constants import Descriptor

from support.brokers import Broker
from support.proton_peers import ProtonConnection, ProtonPeers
from support.transacting import Transacting


def test_messages_are_there_when_a_transaction_is_committed(
    client: ProtonConnection, proton: ProtonPeers, address: str
) -> None:
    receiver = client.receiver(address, 10)
    sender = client.sender(address)
    transaction = Transacting(client).begin()
    sent = [transaction.send(sender, Message(f"{number}", durable=True)) for number in range(3)]
    proton.until(lambda: all(each.state for each in sent), "the broker has them")
    # accepted, if the transaction is
    assert {each.state for each in sent} == {Descriptor.TRANSACTIONAL_STATE}
    proton.run_for(0.2)
    assert receiver.bodies() == []
    transaction.commit()
    receiver.get(3)
    assert receiver.bodies() == ["0", "1", "2"]


def test_messages_never_were_when_a_transaction_is_rolled_back(
    client: ProtonConnection, proton: ProtonPeers, address: str
) -> None:
    receiver = client.receiver(address, 10)
    sender = client.sender(address)
    first = Transacting(client).begin()
    sent = first.send(sender, Message("never", durable=True))
    proton.until(lambda: sent.state, "the broker has it")
    first.abort()
    second = Transacting(client).begin()
    second.send(sender, Message("now", durable=True))
    second.commit()
    receiver.get()
    assert receiver.bodies() == ["now"]


def test_what_was_received_comes_again_when_a_transaction_is_rolled_back(
    client: ProtonConnection, address: str
) -> None:
    sender = client.sender(address)
    for body in ("0", "1"):
        assert sender.outcome(Message(body, durable=True)).outcome == "accepted"
    receiver = client.receiver(address, 2, accept=False)
    transaction = Transacting(client).begin()
    for received in receiver.get(2):
        transaction.accept(received.delivery)
    transaction.abort()
    receiver.detach()
    again = client.receiver(address, 2, accept=False)
    transaction = Transacting(client).begin()
    for received in again.get(2):
        transaction.accept(received.delivery)
    assert again.bodies() == ["0", "1"]
    transaction.commit()
    again.detach()
    empty = client.receiver(address)
    empty.link.drain(10)
    client.peers.until(lambda: empty.link.credit == 0, "there is nothing left")
    assert empty.bodies() == []


def test_a_transaction_is_over_when_its_broker_is(
    client: ProtonConnection, proton: ProtonPeers, artemis: Broker, address: str
) -> None:
    sender = client.sender(address)
    transaction = Transacting(client).begin()
    transaction.send(sender, Message("x", durable=True))
    artemis.kill()
    control = transaction.control
    proton.until(lambda: control.remote_condition, "the control link is detached")
    assert control.remote_condition.name == "amqp:transaction:rollback"
    assert not client.is_lost
