"""Where messages go: anonymous relay, dynamic reply-to, multicast, shares of several receivers."""

from __future__ import annotations

import functools
import threading
from collections import Counter
from typing import Any

import pytest
from proton import Data, Link, Message, symbol
from proton.handlers import MessagingHandler
from proton.reactor import AtMostOnce, Container, LinkOption
from proton.utils import BlockingConnection, SyncRequestResponse

from support.configuring import LISTENER, entity
from support.proton_peers import ProtonPeers, Sent
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess, StartRouter

CLOSED = entity("address", prefix="unavailable", distribution="unavailable")
DETACHING = f'[router]\nunroutablePresettled = "detach"\n\n{CLOSED}{LISTENER}'


@pytest.mark.spec("A1-2", "A2.2-1")
def test_an_anonymous_sender_reaches_whatever_its_messages_name(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    one = proton.connect(router.url()).receiver(f"{address}/one", 10)
    two = proton.connect(router.url()).receiver(f"{address}/two", 10)
    sender = proton.connect(router.url()).sender(None)
    for n in range(6):
        where = f"{address}/{'one' if n % 2 else 'two'}"
        assert sender.outcome(Message(n, address=where)).outcome == "accepted"
    assert one.bodies() == [1, 3, 5]
    assert two.bodies() == [0, 2, 4]


@pytest.mark.spec("A2.2.2-1", "A2.2.2-2")
def test_an_anonymous_message_has_to_name_an_address(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    sender = proton.connect(router.url()).sender(None)
    sent = sender.outcome(Message("x"))
    assert sent.outcome == "rejected"
    assert sent.condition is not None
    assert sent.condition.name == "amqp:precondition-failed"
    assert sender.outcome(Message("x", address=f"{address}/nobody")).outcome == "released"
    sent = sender.outcome(Message("x", address="unavailable/there"))
    assert sent.outcome == "rejected"
    assert sent.condition is not None
    assert sent.condition.name == "amqp:not-found"
    assert sent.condition.description == "Deliveries cannot be sent to an unavailable address"


class OnlyAccepted(LinkOption):
    """The source of the link supports no outcome but accepted."""

    def apply(self, link: Link) -> None:
        """Set its outcomes."""
        link.source.outcomes.put_array(False, Data.SYMBOL)
        link.source.outcomes.enter()
        link.source.outcomes.put_symbol(symbol("amqp:accepted:list"))
        link.source.outcomes.exit()


@pytest.mark.spec("A2.2.2-3", "A2.2.2-4", "A2.2.2-6")
def test_proton_s_anonymous_sender_without_rejected_is_detached(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    connection = proton.connect(router.url())
    sender = connection.sender(None, options=OnlyAccepted())
    receiver = proton.connect(router.url()).receiver(address, 10)
    assert sender.outcome(Message("there", address=address)).outcome == "accepted"
    assert receiver.get(1)[0].body == "there"
    tag = sender.send(Message("x", address="unavailable/there")).delivery.tag
    sender.until_over()
    assert sender.condition is not None
    assert sender.condition.name == "amqp:not-found"
    assert sender.condition.info == {symbol("delivery-tag"): tag.encode()}
    # the connection goes on, and others with it
    assert connection.sender(address).outcome(Message("y")).outcome == "accepted"


@pytest.mark.spec("A2.2.2-5", "A2.2.2-6")
def test_proton_s_settled_message_to_nowhere_costs_its_link_where_that_is_configured(
    routers: StartRouter, proton: ProtonPeers, address: str
) -> None:
    router = routers(DETACHING)
    receiver = proton.connect(router.url()).receiver(address, 10)
    sender = proton.connect(router.url()).sender(None, options=AtMostOnce())
    sender.send(Message("there", address=address))
    assert receiver.get(1)[0].body == "there"
    sender.send(Message("x", address="unavailable/there"))
    sender.until_over()
    assert sender.condition is not None
    assert sender.condition.name == "amqp:not-found"
    assert isinstance(sender.condition.info, dict)
    assert set(sender.condition.info) == {symbol("delivery-tag")}


@pytest.mark.spec("A1-1", "F2.2-1", "M16.3.1-1")
def test_proton_hears_what_the_router_offers(router: RouterProcess, proton: ProtonPeers) -> None:
    connection = proton.connect(router.url())
    assert connection.endpoint.remote_offered_capabilities == [symbol("ANONYMOUS-RELAY")]


@pytest.mark.spec("A1-2", "A2.2-1")
def test_rhea_relays_anonymously(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    receiver = proton.connect(router.url()).receiver(address, 10)
    rhea.connect(router.port, username="anonymous")
    rhea.sender({})
    rhea.tell("send", link="sender", fields={"to": address, "body": "there"})
    rhea.tell("send", link="sender", fields={"body": "nowhere"})
    assert receiver.get(1)[0].body == "there"
    rhea.wait("accepted", number=0)
    (rejected,) = rhea.wait("rejected", number=1)
    assert rejected["error"]["condition"] == "amqp:precondition-failed"


def test_an_address_without_a_treatment_is_refused(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer
) -> None:
    connection = proton.connect(router.url())
    for link in (connection.sender("unavailable/x"), connection.receiver("unavailable/x", 1)):
        link.until_over()
        assert link.condition is not None
        assert link.condition.name == "amqp:not-found"
        assert link.condition.description == "Node not found"
        assert link.condition.info == {"address": "unavailable/x"}
    rhea.connect(router.port, username="anonymous")
    rhea.sender("unavailable/x")
    (closed,) = rhea.wait("sender_close")
    assert closed["error"]["condition"] == "amqp:not-found"


class Upper(MessagingHandler):
    """Proton's own example of a server: answers each request in upper case."""

    def __init__(self, url: str, address: str) -> None:
        super().__init__()
        self.url = url
        self.address = address
        self.connection: Any = None
        self.relay: Any = None
        self.ready = threading.Event()

    def on_start(self, event: Any) -> None:
        """Connect; an anonymous sender carries the answers."""
        self.connection = event.container.connect(self.url, reconnect=False)
        event.container.create_receiver(self.connection, self.address)
        self.relay = event.container.create_sender(self.connection, None)

    def on_link_opened(self, event: Any) -> None:
        """Report that requests may come, as soon as the receiver is open."""
        if event.link.is_receiver:
            self.ready.set()

    def on_message(self, event: Any) -> None:
        """Answer, and end when asked to."""
        request = event.message
        answer = Message(
            request.body.upper(), address=request.reply_to, correlation_id=request.correlation_id
        )
        self.relay.send(answer)
        if request.subject == "end":
            self.connection.close()


def test_requests_are_answered_at_dynamic_addresses(router: RouterProcess, address: str) -> None:
    server = Upper(router.url(), address)
    thread = threading.Thread(target=Container(server).run)
    thread.start()
    assert server.ready.wait(30)
    connection = BlockingConnection(router.url(), timeout=30)
    client = SyncRequestResponse(connection, address)
    assert client.reply_to
    try:
        for word in ("one", "two", "three"):
            answer = client.call(Message(word))
            assert answer.body == word.upper()
    finally:
        sender = connection.create_sender(address, name="the end")
        sender.send(Message("", reply_to=client.reply_to, subject="end"))
        connection.close()
        thread.join(30)
    assert not thread.is_alive()


def test_rhea_asks_and_proton_answers(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    server = proton.connect(router.url())
    requests = server.receiver(address, 10)
    relay = server.sender(None)
    rhea.connect(router.port, username="anonymous")
    rhea.receiver({"dynamic": True}, "answers")
    (opened,) = rhea.find("receiver_open", link="answers")
    rhea.sender(address)
    fields = {"body": "question", "reply_to": opened["address"], "correlation_id": "c-1"}
    rhea.tell("send", link="sender", fields=fields)
    request = requests.get()[0].message
    answer = Message("answer", address=request.reply_to, correlation_id=request.correlation_id)
    assert relay.outcome(answer).outcome == "accepted"
    (found,) = rhea.wait("message", link="answers")
    assert (found["body"], found["correlation_id"]) == ("answer", "c-1")


def test_proton_asks_and_rhea_answers(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    rhea.connect(router.port, username="anonymous")
    rhea.receiver(address)
    rhea.sender({}, "relay")
    connection = proton.connect(router.url())
    answers = connection.receiver(None, 10, dynamic=True)
    reply_to = answers.link.remote_source.address
    assert reply_to
    sender = connection.sender(address)
    sent = sender.send(Message("question", reply_to=reply_to, correlation_id="c-2"))
    (request,) = rhea.wait("message")
    fields = {
        "to": request["reply_to"],
        "body": "answer",
        "correlation_id": request["correlation_id"],
    }
    rhea.tell("send", link="relay", fields=fields)
    answer = answers.get()[0].message
    assert (answer.body, answer.correlation_id) == ("answer", "c-2")
    assert sender.settled(sent).outcome == "accepted"


def test_a_dynamic_address_goes_with_its_link(router: RouterProcess, proton: ProtonPeers) -> None:
    connection, other = proton.connect(router.url()), proton.connect(router.url())
    one = connection.receiver(None, 10, dynamic=True)
    two = connection.receiver(None, 10, dynamic=True)
    names = {one.link.remote_source.address, two.link.remote_source.address}
    assert len(names) == 2
    sender = other.sender(one.link.remote_source.address)
    assert sender.outcome(Message("x")).outcome == "accepted"
    one.detach()
    sender.until_over()
    assert sender.condition is not None
    assert sender.condition.name == "amqp:resource-deleted"
    sender = other.sender(two.link.remote_source.address)
    assert sender.outcome(Message("y")).outcome == "accepted"
    assert two.bodies() == ["y"]


def test_multicast_reaches_every_receiver_once(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    address = f"multicast/{address}"
    receivers = [proton.connect(router.url()).receiver(address, 300) for _ in range(4)]
    rhea.connect(router.port, username="anonymous")
    rhea.receiver(address)
    senders = [proton.connect(router.url()).sender(address) for _ in range(3)]
    for n in range(100):
        for number, sender in enumerate(senders):
            sender.send(Message(1000 * number + n))
    for sender in senders:
        proton.until(sender.all_settled, "everything is settled")
        assert set(sender.outcomes) == {"accepted"}
    everything = Counter(1000 * number + n for n in range(100) for number in range(3))
    for receiver in receivers:
        assert Counter(receiver.bodies()) == everything
        assert [b for b in receiver.bodies() if b < 1000] == list(range(100))
    assert len(rhea.messages(300)) == 300


def test_multicast_that_is_presettled(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    address = f"multicast/{address}"
    receivers = [proton.connect(router.url()).receiver(address, 1000) for _ in range(3)]
    sender = proton.connect(router.url()).sender(address, options=AtMostOnce())
    for n in range(50):
        # Small and large ones. What finds a receiver without room is not kept for it, so each is
        # awaited.
        sender.send(Message(bytes([n]) * (10 if n % 2 else 100_000)))
        for receiver in receivers:
            receiver.get(n + 1)
    for receiver in receivers:
        assert [body[0] for body in receiver.bodies()] == list(range(50))
        assert all(each.is_settled_by_sender for each in receiver.received)


@pytest.mark.parametrize("kind", ["balanced", "closest", "multicast"])
def test_presettled_messages_arrive_presettled(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str, kind: str
) -> None:
    address = f"{kind}/{address}"
    rhea.connect(router.port, username="anonymous")
    rhea.receiver(address)
    sender = proton.connect(router.url()).sender(address, options=AtMostOnce())
    for n in range(10):
        sender.send(Message(n))
    assert len(rhea.messages(10)) == 10
    assert all(each["settled"] for each in rhea.find("message"))
    rhea.sender(address, "back", snd_settle_mode=1)
    receiver = proton.connect(router.url()).receiver(f"{address}/back", 10)
    rhea.sender(f"{address}/back", "forth", snd_settle_mode=1)
    rhea.send(bytes(Message("x").encode()), "forth")
    assert receiver.get()[0].is_settled_by_sender


def test_a_receiver_may_want_everything_presettled(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    """What is said of it to a sender that did not settle: it has gone, as wanted."""
    receiver = proton.connect(router.url()).receiver(address, 10, options=AtMostOnce())
    sender = proton.connect(router.url()).sender(address)
    sent = [sender.send(Message(n)) for n in range(5)]
    assert all(each.is_settled_by_sender for each in receiver.get(5))
    for each in sent:
        assert sender.settled(each).outcome == "accepted"


@pytest.mark.spec("3.5.2-1")
def test_closest_receivers_take_turns(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    address = f"closest/{address}"
    receivers = [proton.connect(router.url()).receiver(address, 100) for _ in range(3)]
    sender = proton.connect(router.url()).sender(address)
    for n in range(60):
        sender.send(Message(n))
    proton.until(sender.all_settled, "everything is settled")
    assert sorted(b for receiver in receivers for b in receiver.bodies()) == list(range(60))
    assert [len(receiver.received) for receiver in receivers] == [20, 20, 20]


def test_balanced_receivers_share_by_their_speed(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    stuck = proton.connect(router.url()).receiver(address, 100, accept=False)
    quick = proton.connect(router.url()).receiver(address, 100)

    def is_received(sent: Sent, n: int) -> bool:
        return sent.is_settled or n in stuck.bodies()

    sender = proton.connect(router.url()).sender(address)
    for n in range(60):
        sent = sender.send(Message(n))
        proton.until(functools.partial(is_received, sent, n), "it is received")
    # One that settles nothing gets one message, and no more while another has nothing unsettled.
    assert len(stuck.received) == 1
    assert len(quick.received) == 59


def test_balanced_receivers_get_equal_shares_when_nobody_settles(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    receivers = [
        proton.connect(router.url()).receiver(address, 100, accept=False) for _ in range(4)
    ]
    sender = proton.connect(router.url()).sender(address)
    for n in range(80):
        sender.send(Message(n))
    proton.until(lambda: sum(len(r.received) for r in receivers) == 80, "all are received")
    assert [len(receiver.received) for receiver in receivers] == [20, 20, 20, 20]
    for receiver in receivers:
        for received in receiver.received:
            received.accept()
    proton.until(sender.all_settled, "everything is settled")


@pytest.mark.spec("B2.1-1", "G1.2-1")
def test_urls_and_slashes_name_the_same_address(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    receiver = proton.connect(router.url()).receiver(f"amqp://host:1234/{address}", 10)
    connection = proton.connect(router.url())
    anonymous = connection.sender(None)
    for text in (address, f"/{address}", f"amqps://other/{address}", f"{address}/"):
        assert connection.sender(text).outcome(Message(text)).outcome == "accepted"
        assert anonymous.outcome(Message(text, address=text)).outcome == "accepted"
    assert len(receiver.get(8)) == 8
