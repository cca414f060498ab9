"""Behaviour that the Azure client libraries depend on."""

from __future__ import annotations

import pytest

from router.amqp.batches import BATCH_FORMAT
from router.amqp.constants import ReceiverSettleMode, TerminusExpiryPolicy
from router.amqp.message import Data, Message, encode_message
from router.amqp.performatives import Accepted, Error, Modified, Rejected, Released, Source, Target
from router.amqp.types import Symbol
from router.core.links.azure_clients import AZURES_MAX_MESSAGE_BYTES, MAX_BATCH_BYTES

from support.in_memory import ReceivingLink, Router, SendingLink
from support.tokens import Claimant, Verifier
from support.waypoints import message, texts


def test_azures_clients_get_what_they_rely_on() -> None:
    claimant = Claimant(Router(), Verifier())
    sender, _ = claimant.attach()
    claimant.put(sender, "listen,send:q")
    receiver = claimant.client.receiver("q", credit=1, name="r")
    to = claimant.client.sender("q", name="s")
    assert to.attach is not None
    assert to.attach.max_message_size == AZURES_MAX_MESSAGE_BYTES
    to.send(b"one")
    # the tag is a UUID
    assert len(receiver.received[0].tag or b"") == 16


def test_a_client_may_send_without_credit_and_consumers_of_hubs_never_settle() -> None:
    claimant = Claimant(Router(), Verifier())
    sender, _ = claimant.attach()
    claimant.put(sender, "listen,send:h")
    name = "h/ConsumerGroups/$Default/Partitions/0"
    receiver = claimant.client.receiver(name, credit=2, name="r")
    to = claimant.client.sender(name, name="s")
    to.credit = 2
    to.send(b"one")
    to.send(b"two")
    assert [each.settled for each in receiver.received] == [True, True]


def pair(claimant: Claimant, mode: ReceiverSettleMode) -> tuple[SendingLink, ReceivingLink]:
    """Attach a sender that asks for a rcv-settle-mode, and a receiver, on the same connection."""
    requests, _ = claimant.attach()
    claimant.put(requests, "listen,send:q")
    receiver = claimant.client.receiver("q", credit=1, name="r")
    return claimant.client.sender("q", name="s", rcv_settle_mode=mode), receiver


@pytest.mark.parametrize("outcome", [Released(), Modified(), Modified(undeliverable_here=True)])
@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
def test_a_sender_that_asks_for_second_gets_returned_messages_rejected(
    outcome: Released | Modified, settled: bool
) -> None:
    sender, receiver = pair(Claimant(Router(), Verifier()), ReceiverSettleMode.SECOND)
    sent = sender.send(b"one")
    receiver.settle(outcome, settled=settled)
    assert isinstance(sent.outcome, Rejected)
    assert sent.outcome.error is not None
    assert sent.outcome.error.condition == "com.microsoft:server-busy"


def test_so_it_does_when_the_receiver_is_lost_and_what_is_accepted_is_accepted() -> None:
    claimant = Claimant(Router(), Verifier())
    sender, receiver = pair(claimant, ReceiverSettleMode.SECOND)
    first = sender.send(b"one")
    receiver.settle(Accepted())
    assert first.outcome == Accepted()
    receiver.grant(1)
    sent = sender.send(b"two")
    receiver.detach()
    assert isinstance(sent.outcome, Rejected)


def test_other_senders_hear_what_the_receiver_has_said() -> None:
    sender, receiver = pair(Claimant(Router(), Verifier()), ReceiverSettleMode.FIRST)
    sent = sender.send(b"one")
    receiver.settle(Released())
    assert sent.outcome == Released()


def test_a_receiver_does_not_hear_the_error_of_its_own_rejection() -> None:
    sender, receiver = pair(Claimant(Router(), Verifier()), ReceiverSettleMode.FIRST)
    sent = sender.send(b"one")
    outcome = Rejected(error=Error(condition=Symbol("com.microsoft:dead-letter")))
    receiver.settle(outcome, settled=False)
    assert sent.outcome == outcome
    [received] = receiver.received
    assert received.sender_settled is not None
    assert received.sender_settled.state == Rejected()


def test_other_connections_are_as_before() -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=1)
    to = router.client().sender("q")
    assert to.attach is not None
    assert to.attach.max_message_size is None
    to.send(b"one")
    assert len(receiver.received[0].tag or b"") < 16


def test_they_make_no_batch_that_their_link_refuses() -> None:
    claimant = Claimant(Router(), Verifier())
    sender, _ = claimant.attach()
    claimant.put(sender, "send:q")
    claimant.client.connection.access.max_message_size = 1000
    to = claimant.client.sender("q", name="s")
    assert to.attach is not None
    assert to.attach.max_message_size == 1000
    assert to.attach.properties == {"com.microsoft:max-message-batch-size": 1000}


def test_their_batches_are_taken_apart() -> None:
    claimant = Claimant(Router(), Verifier())
    sender, _ = claimant.attach()
    claimant.put(sender, "listen,send:q")
    receiver = claimant.client.receiver("q", credit=2, name="r")
    to = claimant.client.sender("q", name="s")
    assert to.attach is not None
    assert to.attach.properties == {"com.microsoft:max-message-batch-size": MAX_BATCH_BYTES}
    batch = Message(body=(Data(message("one")), Data(message("two"))))
    to.send(encode_message(batch), message_format=BATCH_FORMAT)
    assert texts(receiver) == ["one", "two"]


def test_senders_of_batches_are_not_recovered_but_receivers_are() -> None:
    claimant = Claimant(Router(), Verifier())
    requests, _ = claimant.attach()
    claimant.put(requests, "listen,send:q")
    policy = TerminusExpiryPolicy.LINK_DETACH
    source = Source(address="q", expiry_policy=policy, timeout=30)
    receiver = claimant.client.receiver("q", credit=2, name="r", source=source)
    target = Target(address="q", expiry_policy=policy, timeout=30)
    sender = claimant.client.sender("q", name="s", target=target)
    assert sender.attach is not None
    assert isinstance(sender.attach.target, Target)
    assert sender.attach.target.timeout == 0
    sender.detach(closed=False)
    assert len(claimant.router.forwarder.suspended) == 0
    receiver.detach(closed=False)
    assert len(claimant.router.forwarder.suspended) == 1
