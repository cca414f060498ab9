"""Why nothing flows: each reason, brought about by clients and then found by looking."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from router.amqp.constants import TerminusExpiryPolicy
from router.amqp.message import Data, Message, Properties, encode_message
from router.amqp.performatives import Source, Target
from router.core.diagnosis import blocking
from router.core.diagnosis.blocking import MEANINGS, AddressState, Reason, Survey, blocked_reason
from router.core.model.address import Consumer, Producer
from router.engine.session import Session

from support.in_memory import Client, ReceivingLink, Router, SendingLink

TO_Q = encode_message(Message(properties=Properties(to="q"), body=(Data(b"x"),)))
MULTICAST = [(True, "m", "multicast")]


def state(router: Router, name: str = "q") -> AddressState:
    address = router.table.in_use(name)
    assert address is not None
    return Survey(router.forwarder).address(address)


def session(client: Client) -> Session:
    (found,) = client.connection.local_sessions.values()
    assert isinstance(found, Session)
    return found


def reason(link: SendingLink | ReceivingLink) -> Reason | None:
    """Why nothing comes or goes by a client's link, as the router sees it."""
    (found,) = [
        each for each in session(link.client).local_links.values() if each.name == link.name
    ]
    return Survey(link.client.router.forwarder).link(found)


def test_every_reason_has_its_words() -> None:
    assert MEANINGS.keys() == set(Reason)
    assert len(set(MEANINGS.values())) == len(Reason)


def test_without_a_receiver() -> None:
    router = Router()
    sender = router.client().sender("q")
    assert reason(sender) is Reason.NO_CONSUMER
    found = state(router)
    assert found.credit_reason is found.flow_reason is Reason.NO_CONSUMER
    assert (found.receivers, found.senders, found.room, found.held) == ({}, 1, 0, 0)


def test_credit_that_is_asked_back_is_none() -> None:
    router = Router()
    receiver = router.client().receiver("q", 10)
    sender = router.client().sender("q")
    assert reason(sender) is None
    receiver.detach()
    assert sender.credit == 10
    assert reason(sender) is Reason.NO_CONSUMER


def test_without_credit_of_any_receiver() -> None:
    router = Router()
    receivers = [router.client().receiver("q") for _ in range(2)]
    sender = router.client().sender("q")
    assert reason(sender) is reason(receivers[0]) is Reason.NO_CREDIT
    assert state(router).receivers == {Reason.NO_CREDIT: 2}
    receivers[0].grant(1)
    assert reason(sender) is reason(receivers[0]) is None
    assert state(router).receivers == {Reason.NO_CREDIT: 1, None: 1}
    assert state(router).flow_reason is None
    assert state(router).room == state(router).held == 1


def test_where_all_receivers_have_drained() -> None:
    router = Router()
    receiver = router.client().receiver("q")
    receiver.grant(3, drain=True)
    assert reason(receiver) is Reason.DRAINED
    assert state(router).credit_reason is Reason.DRAINED


def test_a_closed_session_window_keeps_what_has_credit() -> None:
    router = Router()
    slow = router.client(window=1)
    receiver = slow.receiver("q", 3)
    sender = router.client().sender("q")
    assert reason(sender) is None
    for _ in range(3):
        sender.send(b"x")
    assert reason(receiver) is Reason.WINDOW_CLOSED
    found = state(router)
    assert found.flow_reason is Reason.WINDOW_CLOSED
    assert found.waiting == 2
    slow.open_window(10)
    assert state(router).flow_reason is Reason.NO_CREDIT


def test_a_full_socket() -> None:
    router = Router()
    slow = router.client(window=10_000)
    receiver = slow.receiver("q", 1000)
    slow.reads = False
    sender = router.client().sender("q")
    while not slow.connection.outbox.congested:
        sender.send(bytes(60_000))
    assert reason(receiver) is Reason.CONGESTED
    assert state(router).flow_reason is Reason.CONGESTED


def test_a_receiver_in_the_middle_of_a_message() -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    sender = router.client().sender("q")
    sender.send(b"begin", more=True)
    assert reason(receiver) is Reason.IN_MESSAGE
    assert state(router).flow_reason is Reason.IN_MESSAGE


def test_what_waits_is_too_large() -> None:
    router = Router()
    small = router.client().receiver("q", 5, max_message_size=50)
    large = router.client().receiver("q", 0)
    sender = router.client().sender("q")
    sender.send(bytes(100))
    assert reason(small) is Reason.TOO_LARGE
    assert reason(large) is Reason.NO_CREDIT
    assert state(router).flow_reason is Reason.TOO_LARGE
    large.grant(1)
    assert reason(small) is None


def test_a_long_queue_is_looked_at_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    router = Router()
    small = router.client().receiver("q", 5, max_message_size=50)
    router.client().receiver("q", 0)
    sender = router.client().sender("q")
    monkeypatch.setattr(blocking, "LONGEST_CHECK", 1)
    sender.send(bytes(100))
    assert reason(small) is Reason.TOO_LARGE
    sender.send(bytes(100))
    assert reason(small) is Reason.TOO_LARGE


@pytest.mark.parametrize("default", ["balanced", "multicast"])
def test_some_of_very_many_links_stand_for_all(
    monkeypatch: pytest.MonkeyPatch, default: str
) -> None:
    router = Router(default=default)
    receivers = [router.client().receiver("q", 5) for _ in range(3)]
    for _ in range(3):
        router.client().sender("q")
    every = state(router)
    assert every.receivers == {None: 3}
    examined: set[Any] = set()

    def note(consumer: Consumer) -> Reason | None:
        examined.add(consumer)
        return blocked_reason(consumer)

    monkeypatch.setattr(blocking, "MOST_EXAMINED", 2)
    monkeypatch.setattr(blocking, "blocked_reason", note)
    some = state(router)
    assert len(examined) == 2
    assert (some.receivers, some.senders, some.flow_reason) == ({None: 2}, 3, None)
    assert 0 < some.held < every.held
    assert some.room == (5 if default == "multicast" else 10)
    receivers[0].detach()
    assert state(router).receivers == {None: 2}


def test_other_senders_hold_what_there_is() -> None:
    router = Router()
    senders = [router.client().sender("q") for _ in range(2)]
    receiver = router.client().receiver("q", 2)
    senders[0].send(b"x")
    assert receiver.take() == b"x"
    # the other one's credit is what the receiver has left, until the turn that gives more
    assert reason(senders[0]) is reason(senders[1]) is None
    _producers(router)[0].link.credit = 0
    assert reason(senders[0]) is Reason.SHARED


def _producers(router: Router) -> list[Producer]:
    address = router.table.in_use("q")
    assert address is not None
    return address.producers


def test_too_much_is_unsettled() -> None:
    router = Router()
    router.client().receiver("q", 100)
    sender = router.client().sender("q")
    (producer,) = _producers(router)
    producer.link.credit, producer.link.unsettled = 0, 65535
    assert reason(sender) is Reason.SHARED
    producer.link.unsettled = 65536
    assert reason(sender) is Reason.UNSETTLED


def test_an_anonymous_sender_has_too_much_waiting() -> None:
    router = Router()
    receiver = router.client().receiver("q")
    sender = router.client(link_capacity=2).sender(None)
    assert reason(sender) is None
    for _ in range(2):
        sender.send(TO_Q)
    assert reason(sender) is Reason.WAITING
    receiver.grant(2)
    assert reason(sender) is None


@pytest.mark.parametrize(
    ("is_held_back", "is_pressed", "expected"),
    [
        (False, False, Reason.SESSION_FULL),
        (True, True, Reason.CONNECTION_FULL),
        (False, True, Reason.MEMORY_FULL),
    ],
)
def test_a_window_that_is_full_with_what_waits(
    is_held_back: bool, is_pressed: bool, expected: Reason
) -> None:
    router = Router()
    router.client().receiver("q", 100)
    client = router.client()
    sender = client.sender("q")
    session(client).window.size = 0
    client.connection.held_back = is_held_back
    router.turn.is_pressed = is_pressed
    assert reason(sender) is expected


def test_a_peer_that_asks_and_does_not_read() -> None:
    router = Router()
    router.client().receiver("q", 100)
    client = router.client(unsent_limit_bytes=1)
    client.sender("p")
    sender = client.sender("q")
    client.reads = False
    client.say(client.flow(echo=True))
    assert reason(sender) is Reason.NOT_READ


def test_multicast_waits_for_the_slowest() -> None:
    router = Router(MULTICAST)
    sender = router.client().sender("m")
    quick = router.client().receiver("m", 10)
    assert state(router, "m").flow_reason is None
    slow = router.client().receiver("m")
    assert reason(sender) is None
    assert state(router, "m").flow_reason is Reason.NO_CREDIT
    assert state(router, "m").credit_reason is Reason.NO_CREDIT
    sender.send(b"x")
    assert state(router, "m").waiting == 1
    assert quick.take() == b"x"
    assert blocked_reason(_consumers(router)[0]) is None
    assert reason(slow) is Reason.NO_CREDIT


def _consumers(router: Router) -> list[Consumer]:
    address = router.table.in_use("m")
    assert address is not None
    return address.consumers


def test_links_are_counted_by_reason() -> None:
    router = Router()
    clients = [router.client() for _ in range(3)]
    senders = [client.sender("q") for client in clients]
    receiver = clients[0].receiver("q")
    links = [link for client in clients for link in session(client).local_links.values()]
    survey = Survey(router.forwarder)
    assert survey.links_blocked(links) == Counter(
        {(True, Reason.NO_CREDIT): 3, (False, Reason.NO_CREDIT): 1}
    )
    receiver.detach()
    senders[2].detach()
    assert Survey(router.forwarder).links_blocked(links) == Counter(
        {(True, Reason.NO_CONSUMER): 2, (True, Reason.DETACHED): 1, (False, Reason.DETACHED): 1}
    )


def test_a_survey_looks_at_an_address_once() -> None:
    router = Router()
    router.client().sender("q")
    survey = Survey(router.forwarder)
    address = router.table.in_use("q")
    assert address is not None
    assert survey.address(address) is survey.address(address)


def test_a_receiver_that_resumes() -> None:
    router = Router()
    policy = TerminusExpiryPolicy.NEVER
    client = router.client(container="c", window=1)
    source = Source(address="q", expiry_policy=policy, timeout=60)
    receiver = client.receiver("q", 5, name="r", source=source)
    sender = router.client().sender("q", target=Target(address="q"))
    for _ in range(2):
        sender.send(b"x")
    assert receiver.received
    client.lose()
    client = router.client(container="c", window=1)
    unsettled = {delivery.tag: None for delivery in receiver.received}
    client.receiver("q", name="r", source=source, unsettled=unsettled)
    consumer = list((router.table.in_use("q") or pytest.fail("gone")).resuming)
    found = state(router)
    assert len(consumer) == found.receivers.get(Reason.RESUMING, 0) == 1
    assert found.credit_reason is Reason.RESUMING
    assert blocked_reason(consumer[0]) is Reason.RESUMING
