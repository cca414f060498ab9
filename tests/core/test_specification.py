"""Requirements of the specification for links and nodes that no other test here covers."""

from __future__ import annotations

import pytest

from router.amqp.constants import TerminusDurability, TerminusExpiryPolicy
from router.amqp.framing import AMQP_HEADER
from router.amqp.message import Data, Message, encode_message
from router.amqp.performatives import (
    Accepted,
    Attach,
    Detach,
    Disposition,
    Error,
    Open,
    Rejected,
    Source,
    Target,
)
from router.amqp.types import Described, Symbol, ULong

from support.in_memory import Router
from support.pairs import pair
from support.transcripts import Talk, attach_receiver, attach_sender, begin

NODE_PROPERTIES = {Symbol("x"): 1}


@pytest.mark.spec("2.6.3-7", "3.5.5-1", "3.5.3-12")
def test_what_a_receiver_cannot_have_is_for_it_to_judge() -> None:
    asked = Source(
        address="q",
        durable=TerminusDurability.UNSETTLED_STATE,
        expiry_policy=TerminusExpiryPolicy.NEVER,
        timeout=3600,
        filter={Symbol("f"): Described(ULong(0x468C00000004), "colour = 'red'")},
    )
    router = Router()
    router.forwarder.sources.configure(refuses_filters=False, refuses_durable=False)
    receiver = router.client().receiver(None, source=asked)
    assert receiver.attached
    assert receiver.attach is not None
    granted = receiver.attach.source
    assert granted is not None
    assert granted.filter is None
    assert (granted.durable, granted.timeout) == (TerminusDurability.NONE, 60)


@pytest.mark.spec("2.6.12-1", "2.6.12-2")
def test_no_two_unsettled_deliveries_of_a_link_share_a_tag() -> None:
    router, sender, receiver = pair(600)
    other = router.client().sender("q")
    for number in range(300):
        for each in (sender, other):
            each.send(b"%d" % number)
    assert len(receiver.unsettled) == 600
    assert len({received.tag for received in receiver.received}) == 600


@pytest.mark.spec("2.6.12-3", "3.4.3-2")
def test_a_receiver_is_told_what_its_sender_says_and_nothing_else() -> None:
    _, sender, receiver = pair()
    quiet, talking = sender.send(b"quiet"), sender.send(b"talking")
    client = sender.client
    client.say(Disposition(False, talking.number, settled=False, state=Rejected()))
    heard = [frame for frame in receiver.client.heard if isinstance(frame, Disposition)]
    assert heard == [Disposition(False, 1, 1, settled=False, state=Rejected())]
    assert len(receiver.unsettled) == 2
    # settled when the receiver has said that it knows
    receiver.settle(Rejected())
    assert (quiet.outcome, talking.outcome) == (Rejected(), Rejected())


@pytest.mark.spec("2.6.14-1")
def test_frames_of_two_senders_do_not_interleave_on_a_receiver_s_link() -> None:
    router, one, receiver = pair(10)
    other = router.client().sender("q")
    one.send(b"a", more=True)
    other.send(b"x", more=True)
    one.go_on(b"b", more=True)
    other.go_on(b"y")
    one.go_on(b"c")
    assert [each.payload for each in receiver.received] == [b"abc", b"xy"]
    assert all(each.complete for each in receiver.received)


@pytest.mark.spec("3.2.1-1", "3.2-1")
def test_a_message_without_a_header_never_expires() -> None:
    router, sender, receiver = pair(10, window=1)
    sender.send(b"first")
    octets = encode_message(Message(body=(Data(b"x"),)))
    sender.send(octets)
    router.wait(10.0**9)
    receiver.client.open_window()
    assert receiver.received[1].payload == octets


@pytest.mark.spec("3.5.3-1", "3.5.3-2", "3.5.4-2")
def test_an_address_beside_a_wish_for_a_dynamic_node_is_not_looked_at() -> None:
    client = Router().client()
    receiver = client.receiver(None, source=Source(address="q", dynamic=True))
    sender = client.sender(None, target=Target(address="q", dynamic=True))
    assert receiver.attach is not None
    assert sender.attach is not None
    for granted in (receiver.attach.source, sender.attach.target):
        assert isinstance(granted, Source | Target)
        assert granted.dynamic
        assert granted.address not in (None, "", "q")


@pytest.mark.spec("3.5.3-4", "3.5.4-4")
def test_node_properties_are_not_told_where_nothing_is_dynamic() -> None:
    client = Router().client()
    receiver = client.receiver(None, source=Source("q", dynamic_node_properties=NODE_PROPERTIES))
    sender = client.sender("q", target=Target("q", dynamic_node_properties=NODE_PROPERTIES))
    assert receiver.attach is not None
    assert sender.attach is not None
    for granted in (receiver.attach.source, sender.attach.target):
        assert isinstance(granted, Source | Target)
        assert granted.dynamic_node_properties is None


@pytest.mark.spec("3.5.3-10")
def test_accepted_can_be_told_where_no_outcome_was_named() -> None:
    _, sender, receiver = pair()
    assert receiver.attach is not None
    granted = receiver.attach.source
    assert granted is not None
    assert granted.default_outcome is None
    assert Accepted.NAME in granted.outcomes
    sending = sender.send(b"x")
    receiver.settle(Accepted())
    assert sending.outcome == Accepted()


@pytest.mark.spec("B2.3.13-1")
def test_a_dynamic_node_is_down_when_the_detach_that_ends_it_is_answered() -> None:
    router = Router()
    client = router.client()
    receiver = client.receiver(None, source=Source(dynamic=True))
    assert receiver.attach is not None
    assert receiver.attach.source is not None
    sender = client.sender(receiver.attach.source.address)
    handles = [sender.router_handle, receiver.router_handle]
    receiver.detach()
    detached = [frame for frame in client.heard if isinstance(frame, Detach)]
    assert [frame.handle for frame in detached] == handles
    assert len(router.table) == 0


@pytest.mark.spec("G1.2-2")
def test_how_a_client_calls_its_own_end_is_answered_as_it_came() -> None:
    router = Router()
    talk = Talk(router.forwarder, turn=router.turn, sasl_mechanisms=())
    (talk >> AMQP_HEADER >> Open("c") >> begin()).skip()
    talk >> attach_receiver(0, source=Source("q"), target=Target("client$1"))
    talk >> attach_sender(1, source=Source("client$2"), target=Target("q"))
    ends = [each.performative for each in talk.frames() if isinstance(each.performative, Attach)]
    assert [ends[0].target, ends[1].source] == [Target("client$1"), Source("client$2")]


@pytest.mark.spec("G1.3-2")
def test_the_error_of_a_rejection_is_the_receiver_s_own() -> None:
    _, sender, receiver = pair()
    sending = sender.send(b"x")
    error = Error(Symbol("x:why"), "the body is no number", {Symbol("at"): 7})
    receiver.settle(Rejected(error))
    assert sending.outcome == Rejected(error)
