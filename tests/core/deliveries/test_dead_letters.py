"""Expired messages go to the dead-letter address, and get their outcome from the receiver there."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.message import Data, Header, Message, Properties, decode_message, encode_message
from router.amqp.performatives import Accepted, Error, Modified, Rejected, Released
from router.amqp.types import Symbol
from router.core.addresses.rules import AddressRule
from router.core.model.address import MESH, OWN_TREE

from support.in_memory import ReceivingLink, Router, Sending, SendingLink
from support.pairs import rejected

MORE = b"\0\x53\x75\xa0\x01+"


def message(ttl: int | None, body: bytes = b"x", to: str | None = None) -> bytes:
    return encode_message(
        Message(
            header=Header(durable=True, priority=7, ttl=ttl),
            properties=None if to is None else Properties(to=to),
            body=(Data(body),),
        )
    )


def rules(q: str = "balanced", dead: str = "balanced") -> list[AddressRule]:
    """Return rules that send dead letters of q to dead, and those of dead to deader."""
    return [
        AddressRule(False, "q", q, dead_letter="dead"),
        AddressRule(False, "dead", dead, dead_letter="deader"),
    ]


def bodies(receiver: ReceivingLink) -> list[bytes]:
    messages = [decode_message(each.payload) for each in receiver.received]
    return [
        b"".join(part.octets for part in each.body if isinstance(part, Data)) for each in messages
    ]


class Scene:
    """A receiver that takes nothing more, and one of its dead letters."""

    def __init__(self, credit: int = 10, treatment: str = "balanced", **dead: Any) -> None:
        self.router = Router(rules(dead=treatment))
        self.receiver = self.router.client(window=1).receiver("q", 100)
        self.dead = self.router.client(**dead).receiver("dead", credit)
        self.sender = self.router.client().sender("q")
        self.sender.send(b"first")

    def expire(self, **fields: Any) -> Sending:
        """Send what waits longer than it may."""
        sending = self.sender.send(message(100), **fields)
        self.router.wait(0.2)
        return sending


@pytest.mark.parametrize(
    "outcome",
    [
        Accepted(),
        Released(),
        Modified(delivery_failed=True),
        Rejected(error=Error(condition=Symbol("x:y"))),
    ],
)
@pytest.mark.spec("3.2.1-5", "B2.2.5-1")
def test_what_has_expired_goes_to_its_receiver_there(outcome: Any) -> None:
    scene = Scene()
    sending = scene.expire()
    assert sending.outcome is None
    # nothing is changed but the ttl, which is no more
    assert [each.payload for each in scene.dead.received] == [message(None)]
    scene.dead.client.dispose([scene.dead.received[0].number], outcome)
    assert sending.outcome == outcome
    scene.receiver.client.open_window(100)
    assert len(scene.receiver.received) == 1
    total = scene.router.table.total()
    assert (total.expired, total.egress, scene.router.forwarder.backlog.held_bytes) == (1, 2, 0)


def test_it_waits_there_for_as_long_as_it_takes() -> None:
    scene = Scene(credit=0)
    sending = scene.expire()
    # as much as it is without its ttl
    assert scene.router.forwarder.backlog.held_bytes == len(message(None))
    assert scene.sender.client.connection.held_bytes == len(message(None))
    assert scene.router.forwarder.backlog.deadlines.next == 0
    scene.router.wait(1_000_000)
    assert sending.outcome is None
    scene.dead.grant(1)
    assert scene.dead.received[0].payload == message(None)
    scene.dead.settle()
    assert sending.outcome == Accepted()


def test_it_goes_in_its_order_and_priority_among_the_others_there() -> None:
    scene = Scene(credit=0)
    to_dead = scene.router.client().sender(None)
    to_dead.send(
        encode_message(Message(properties=Properties(to="dead"), body=(Data(b"ordinary"),)))
    )
    scene.expire()
    scene.dead.grant(10)
    assert bodies(scene.dead) == [b"x", b"ordinary"]


@pytest.mark.parametrize("is_attached", [True, False])
def test_without_a_receiver_there_the_sender_is_told(is_attached: bool) -> None:
    scene = Scene()
    scene.dead.detach()
    if is_attached:
        scene.router.client().sender("dead")
    assert rejected("trioute:expired") == scene.expire().outcome


def test_what_waits_there_when_its_last_receiver_goes_is_released() -> None:
    scene = Scene(credit=0)
    sending = scene.expire()
    scene.dead.detach()
    assert sending.outcome == Released()


def test_a_receiver_that_is_lost_with_it_failed() -> None:
    scene = Scene()
    sending = scene.expire()
    scene.dead.client.lose()
    assert sending.outcome == Modified(delivery_failed=True)


def test_a_dead_letter_address_has_none_of_its_own() -> None:
    scene = Scene(credit=0)
    deader = scene.router.client().receiver("deader", 10)
    to_dead = scene.router.client().sender(None).send(message(100, to="dead"))
    scene.router.wait(1)
    assert rejected("trioute:expired") == to_dead.outcome
    assert deader.received == []


def test_a_settled_message_goes_there_too() -> None:
    scene = Scene()
    scene.expire(settled=True)
    assert bodies(scene.dead) == [b"x"]
    assert scene.dead.received[0].settled


def test_what_has_come_in_half_follows_there() -> None:
    scene = Scene()
    sending = scene.expire(more=True)
    assert not scene.dead.received[0].complete
    scene.sender.go_on(MORE)
    assert bodies(scene.dead) == [b"x+"]
    scene.dead.settle()
    assert sending.outcome == Accepted()


def test_what_is_given_up_after_it_went_there_is_gone_from_there() -> None:
    for credit in (0, 10):
        scene = Scene(credit)
        scene.expire(more=True)
        scene.sender.abort()
        scene.dead.grant(10)
        assert [each for each in scene.dead.received if not each.aborted] == []
        assert scene.router.forwarder.backlog.held_bytes == 0


def test_a_message_that_nobody_looked_at_in_time_goes_there_too() -> None:
    scene = Scene()
    scene.sender.send(message(100))
    scene.router.turn.now += 1
    scene.receiver.client.open_window(100)
    assert len(scene.receiver.received) == 1
    assert bodies(scene.dead) == [b"x"]


def test_one_goes_there_while_the_room_is_for_what_is_more_urgent() -> None:
    """What keeps a receiver from what is less urgent keeps no other one from it (`unblocking`)."""
    scene = Scene()
    found = scene.router.table.in_use("q")
    assert found is not None
    (consumer,) = found.consumers
    # as a lane between routers by which something else goes as well
    consumer.sibling_lanes = [consumer.link]
    consumer.link.urgency = 9
    other = scene.receiver.client.receiver("other", 1)
    # its flow has opened the window for one
    scene.sender.send(b"second")
    scene.sender.send(message(100))
    urgent = encode_message(Message(header=Header(priority=8), body=(Data(b"urgent"),)))
    scene.router.client().sender("other").send(urgent)
    scene.router.turn.now += 1
    scene.receiver.client.open_window(100)
    assert bodies(other) == [b"urgent"]
    assert bodies(scene.dead) == [b"x"]


def test_an_anonymous_sender_gets_its_credit_back_when_it_leaves() -> None:
    scene = Scene(credit=0)
    anonymous = scene.router.client(link_capacity=2).sender(None)
    for _ in range(2):
        anonymous.send(message(100, to="q"))
    scene.router.wait(1)
    assert anonymous.credit == 0
    scene.dead.grant(10)
    assert len(scene.dead.received) == 2
    assert anonymous.credit == 2


def test_what_another_router_sent_is_not_for_those_alone_who_are_at_other_routers() -> None:
    scene = Scene(treatment="multicast")
    q, dead = map(scene.router.table.in_use, ("q", "dead"))
    assert q is not None
    assert dead is not None
    (producer,), (consumer,) = q.producers, dead.consumers
    producer.side = producer.link.side = MESH
    consumer.side, consumer.tree = MESH, OWN_TREE
    q.remote_ends = dead.remote_ends = 1
    assert rejected("trioute:expired") == scene.expire().outcome
    assert scene.dead.received == []


def test_each_copy_of_a_multicast_goes_by_itself() -> None:
    router = Router(rules("multicast"))
    slow = router.client(window=1).receiver("q", 10)
    quick = router.client().receiver("q", 10)
    dead = router.client().receiver("dead", 10)
    sender = router.client().sender("q")
    sender.send(b"first")
    sending = sender.send(message(100))
    router.wait(1)
    quick.settle()
    told = [sending.outcome]
    assert bodies(dead) == [b"x"]
    dead.settle()
    told.append(sending.outcome)
    assert told == [None, Accepted()]
    assert len(slow.received) == 1


def test_dead_letters_are_not_multiplied() -> None:
    scene = Scene(credit=1, treatment="multicast")
    other = scene.router.client().receiver("dead", 1)
    sent = [scene.expire(), scene.expire()]
    assert (len(scene.dead.received), len(other.received)) == (1, 1)
    scene.dead.settle()
    other.settle()
    assert [each.outcome for each in sent] == [Accepted()] * 2


def test_several_receivers_share_them() -> None:
    scene = Scene(credit=2)
    other = scene.router.client().receiver("dead", 2)
    sent = [scene.sender.send(message(100)) for _ in range(5)]
    scene.router.wait(1)
    assert (len(scene.dead.received), len(other.received)) == (2, 2)
    other.grant(1)
    scene.dead.settle()
    other.settle()
    assert [each.outcome for each in sent] == [Accepted()] * 5


def test_a_sender_that_is_gone_does_not_hinder_it() -> None:
    scene = Scene()
    sender: SendingLink = scene.sender
    sender.send(message(100))
    sender.client.lose()
    scene.router.wait(1)
    assert bodies(scene.dead) == [b"x"]
    scene.dead.settle()
    scene.receiver.client.open_window(100)
    assert len(scene.receiver.received) == 1
