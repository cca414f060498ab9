"""Behaviour that the Azure client libraries depend on."""

from __future__ import annotations

from router.amqp.batches import BATCH_FORMAT
from router.amqp.message import Data, Message, encode_message
from router.core.links.azure_clients import AZURES_MAX_MESSAGE_BYTES, MAX_BATCH_BYTES

from support.in_memory import Router
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


def test_other_connections_are_as_before() -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=1)
    to = router.client().sender("q")
    assert to.attach is not None
    assert to.attach.max_message_size is None
    to.send(b"one")
    assert len(receiver.received[0].tag or b"") < 16


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
