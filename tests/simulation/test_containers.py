"""Simulated containers send and receive as clients do, and come back when they are cut off."""

from __future__ import annotations

from typing import Any

from router.amqp.performatives import Accepted
from router.client.failures import ConnectionLost
from router.engine.losing import AT_ONCE
from router.simulation.containers import Container
from router.simulation.links import ReceiverPlan, SenderPlan
from router.simulation.network import Network

MESSAGE = b"\x00Sw\xa1\x02hi"


class Talk:
    """One router, a sender, and a receiver that accepts."""

    def __init__(self) -> None:
        self.network = Network()
        self.host = self.network.add("a")
        self.to_send = 0
        self.received: list[bytes] = []
        self.outcomes: list[Any] = []
        self.lost = 0
        self.receiver = self.network.container("receiver", "a")
        self.inbox = self.receiver.add_receiver(ReceiverPlan("q", self.take))
        self.sender = self.network.container("sender", "a")
        self.outbox = self.sender.add_sender(SenderPlan("q", self.send, self.told))
        self.network.start()
        self.network.run(1)

    def send(self) -> None:
        """Send what there is to be sent, as far as there is room."""
        sender = self.outbox.sender()
        while sender is not None and self.to_send and sender.has_room():
            self.to_send -= 1
            sender.send_nowait(MESSAGE)

    def take(self, received: Any) -> None:
        """Accept a message."""
        self.received.append(received.payload)
        received.accept()

    def told(self, sending: Any) -> None:
        """Note an outcome, or count a message whose link was lost before it had one."""
        if sending.is_lost:
            self.lost += 1
        else:
            self.outcomes.append(sending.outcome)

    def offer(self, count: int) -> None:
        """Have so many messages sent."""
        self.to_send += count
        self.send()
        self.network.run(1)


def test_messages_go_from_one_container_to_another_and_outcomes_come_back() -> None:
    talk = Talk()

    talk.offer(300)

    assert talk.received == [MESSAGE] * 300
    assert talk.outcomes == [Accepted()] * 300


def test_containers_come_back_when_their_router_does() -> None:
    talk = Talk()
    talk.host.kill()
    talk.network.run(3)
    assert not talk.sender.is_connected()

    talk.host.start()
    talk.network.run(10)
    assert talk.sender.is_connected()
    talk.offer(5)

    assert talk.outcomes == [Accepted()] * 5


def test_what_is_unsettled_when_the_connection_is_lost_is_told_of_as_lost() -> None:
    talk = Talk()
    talk.inbox.on_message = lambda _: None
    talk.offer(7)
    assert not talk.outcomes

    talk.sender.lose()
    talk.network.run(0.001)

    assert talk.lost == 7
    assert not talk.sender.is_connected()
    talk.network.run(5)
    assert talk.sender.is_connected()


def test_each_of_very_many_links_hears_that_its_connection_is_lost() -> None:
    talk = Talk()
    for number in range(AT_ONCE + 6):
        talk.receiver.add_receiver(ReceiverPlan(f"q{number}", talk.take))
    talk.network.run(1)
    links = [plan.live for plan in talk.receiver.receivers]

    talk.receiver.lose()
    talk.network.run(0.001)

    assert all(link is not None and link.is_over for link in links)


def test_a_receiver_can_leave_and_its_container_can_close() -> None:
    talk = Talk()
    talk.receiver.remove_receiver(talk.inbox)
    talk.network.run(1)
    talk.offer(3)
    assert talk.received == []

    talk.sender.close()
    talk.network.run(5)
    assert not talk.sender.is_connected()
    assert len(talk.host.hub.pumps) == 1


def test_hooks_hear_of_connections_that_come_and_go() -> None:
    network = Network()
    network.add("a")
    container: Container = network.container("c", "a")
    heard: list[str] = []
    container.on_connected.append(lambda: heard.append("connected"))
    container.on_lost.append(lambda: heard.append("lost"))
    network.start()
    network.run(1)
    container.lose()
    network.run(5)

    assert heard == ["connected", "lost", "connected"]


def test_a_link_without_a_session_tells_which_container_is_not_connected() -> None:
    talk = Talk()
    sender = talk.outbox.sender()
    assert sender is not None
    talk.sender.lose()
    talk.network.run(0.001)
    failure = sender.failure()
    assert isinstance(failure, ConnectionLost)
    assert failure.description == "sender is not connected"
