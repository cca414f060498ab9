"""A router that is told to stop tells everybody, resolves every delivery, and ends with 0."""

from __future__ import annotations

import signal

import pytest
from proton import Message

from router.amqp.performatives import Close

from support.proton_peers import ProtonPeers
from support.raw_peers import RawPeer
from support.rhea_peers import RheaPeer
from support.routers import StartRouter


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.spec("2.7.7-1", "2.7.9-3")
def test_clients_are_told_why_and_every_delivery_has_an_outcome(
    routers: StartRouter, proton: ProtonPeers, rhea: RheaPeer, address: str, number: int
) -> None:
    router = routers()
    receiving, sending = proton.connect(router.url()), proton.connect(router.url())
    receiver = receiving.receiver(address, 20, accept=False)
    sender = sending.sender(address)
    for n in range(20):
        sender.send(Message(n))
    receiver.get(20)[0].accept()
    proton.until(lambda: sender.sent[0].is_settled, "the first is settled")
    rhea.connect(router.port, username="anonymous")
    rhea.receiver(f"{address}/rhea", autoaccept=False)
    rhea.sender(f"{address}/rhea", "to-itself", treat_modified_as_released=False)
    rhea.send(bytes(Message("x").encode()), "to-itself")
    rhea.messages(1)
    router.process.send_signal(number)
    proton.until(lambda: receiving.is_lost and sending.is_lost, "both are closed")
    assert sender.outcomes == ["accepted"] + ["modified"] * 19
    assert all(sent.is_settled and sent.failed for sent in sender.sent[1:])
    for connection in (receiving, sending):
        assert connection.condition is not None
        assert connection.condition.name == "amqp:connection:forced"
        assert connection.condition.description
    for link in (sender, receiver):
        assert link.is_over
        assert link.condition is not None
        assert link.condition.name == "amqp:connection:forced"
    rhea.wait("modified", link="to-itself", failed=True)
    (closed,) = rhea.wait("connection_close")
    assert closed["error"]["condition"] == "amqp:connection:forced"
    assert router.process.wait(30) == 0


def test_messages_that_wait_are_released(
    routers: StartRouter, proton: ProtonPeers, address: str
) -> None:
    router = routers()
    receiver = proton.connect(router.url()).receiver(address, 1, accept=False)
    connection = proton.connect(router.url())
    senders = [connection.sender(address) for _ in range(3)]
    for sender in senders:
        sender.send(Message("x"))
    receiver.get(1)
    # An answer on the same connection comes after all that was sent before it.
    connection.receiver(f"{address}/round-trip").detach()
    router.process.send_signal(signal.SIGTERM)
    proton.until(lambda: connection.is_lost, "the connection is closed")
    assert sorted(s.sent[0].outcome for s in senders) == ["modified", "released", "released"]
    assert router.process.wait(30) == 0


def test_a_client_that_does_not_answer_cannot_keep_the_router(
    routers: StartRouter, address: str
) -> None:
    router = routers()
    with RawPeer(router.port) as rude, RawPeer(router.port) as slow:
        rude.open()
        rude.attach_receiver(address, 10)
        slow.send(b"AMQP")
        router.process.send_signal(signal.SIGTERM)
        rude.hear_until(Close)
        assert router.process.wait(30) == 0


def test_a_second_signal_ends_it_at_once(routers: StartRouter, address: str) -> None:
    router = routers()
    with RawPeer(router.port) as rude:
        rude.open()
        rude.attach_receiver(address, 10)
        router.process.send_signal(signal.SIGTERM)
        rude.hear_until(Close)
        router.process.send_signal(signal.SIGINT)
        router.process.wait(30)
    assert "stopped immediately" in router.log_text()
