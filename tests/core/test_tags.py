"""Whose delivery-tags reach receivers: the sender's, wherever they are certain to be unique."""

from __future__ import annotations

from uuid import UUID

import pytest

from router.amqp.constants import TerminusExpiryPolicy
from router.amqp.message import Data, Message, encode_message
from router.amqp.performatives import Modified, Released, Source

from support.far_routers import Mesh
from support.in_memory import Router
from support.pairs import pair, several

LASTING = Source(address="q", expiry_policy=TerminusExpiryPolicy.LINK_DETACH, timeout=30)
TOKEN = UUID("12345678-1234-5678-1234-567812345678").bytes


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("tag", [b"1", b"\0\0\0\1", b"\1" + bytes(7), TOKEN, b"t" * 32])
@pytest.mark.spec("2.6.12-2")
def test_a_receiver_is_told_the_senders_tag(tag: bytes, settled: bool) -> None:
    _, sender, receiver = pair()
    sender.send(b"x", tag=tag, settled=settled)
    assert [each.tag for each in receiver.received] == [tag]


def test_a_message_that_has_waited_keeps_its_tag() -> None:
    _, sender, receiver = pair(2)
    receiver.grant(0)
    sender.send(b"x", tag=TOKEN)
    sender.send(b"y", tag=b"2")
    receiver.grant(2)
    assert [each.tag for each in receiver.received] == [TOKEN, b"2"]


def test_a_message_of_many_frames_keeps_its_tag() -> None:
    _, sender, receiver = pair()
    sender.send(b"half", more=True, tag=TOKEN)
    sender.go_on(b"+half", delivery_tag=TOKEN)
    assert receiver.take() == b"half+half"
    assert receiver.received[0].tag == TOKEN


@pytest.mark.parametrize("tag", [b"7", b"\0\0\0\7", TOKEN])
def test_senders_who_choose_the_same_tag(tag: bytes) -> None:
    router, sender, receiver = pair()
    other = router.client().sender("q")
    sender.send(b"first", tag=tag)
    other.send(b"second", tag=tag)
    first, second = (each.tag for each in receiver.received)
    assert first == tag
    assert second != tag
    # each is settled for whom it belongs to
    receiver.settle()
    other.send(b"third", tag=tag)
    assert receiver.received[2].tag == tag


def test_each_of_a_multicasts_receivers_is_told_the_senders_tag() -> None:
    _, sender, receivers = several("multicast", [5, 5, 5])
    for tag in (TOKEN, b"8"):
        sender.send(b"x", tag=tag)
    for receiver in receivers:
        assert [each.tag for each in receiver.received] == [TOKEN, b"8"]


@pytest.mark.parametrize("state", [Released(), Modified(delivery_failed=True)])
@pytest.mark.parametrize("tag", [b"9", TOKEN])
def test_what_is_given_back_goes_on_by_the_same_tag(tag: bytes, state: object) -> None:
    _, sender, receivers = several("balanced", [5, 5])
    sending = sender.send(encode_message(Message(body=(Data(b"x"),))), tag=tag)
    giver = next(each for each in receivers if each.received)
    taker = next(each for each in receivers if not each.received)
    giver.settle(state)
    assert [each.tag for each in taker.received] == [tag]
    taker.settle()
    assert sending.is_over


def test_a_tag_that_is_in_use_where_a_message_goes_next_is_not_kept() -> None:
    router, sender, receivers = several("closest", [5, 5])
    other = router.client().sender("q")
    sender.send(b"x", tag=TOKEN)
    other.send(b"y", tag=TOKEN)
    giver, taker = receivers
    assert [each.tag for each in (*giver.received, *taker.received)] == [TOKEN, TOKEN]
    giver.settle(Released())
    assert len(taker.received) == 2
    assert taker.received[1].tag != TOKEN


def test_a_link_that_may_be_resumed_has_tags_of_its_own() -> None:
    router = Router()
    receiver = router.client().receiver("q", 5, source=LASTING)
    router.client().sender("q").send(b"x", tag=TOKEN)
    # the receiver may remember a tag for longer than the router does
    assert receiver.received[0].tag != TOKEN


@pytest.mark.parametrize("tag", [b"10", TOKEN])
def test_a_tag_is_kept_from_router_to_router(tag: bytes) -> None:
    mesh = Mesh("a", "b", "c")
    mesh.join("a", "b")
    mesh.join("b", "c")
    mesh.learn()
    receiver = mesh["c"].client().receiver("q", credit=5)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    sender.send(b"x", tag=tag)
    mesh.run()
    assert [each.tag for each in receiver.received] == [tag]


def test_a_sender_that_uses_a_tag_twice_harms_nobody() -> None:
    _, sender, receiver = pair(300)
    for _ in range(200):
        sender.send(b"x", tag=b"always")
    heard = [each.tag for each in receiver.received]
    assert len(set(heard)) == len(heard) == 200
    assert heard[0] == b"always"
