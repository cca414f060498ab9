"""Messages to the router itself are assembled from their frames."""

from __future__ import annotations

from router.amqp.message import AmqpValue, Message, encode_message

from support.in_memory import Router
from support.tokens import Claimant, Verifier, answer_in


def test_a_message_in_many_frames_is_read_whole() -> None:
    claimant = Claimant(Router(), Verifier())
    sender, receiver = claimant.attach()
    given = {"operation": "put-token", "name": "n", "type": "jwt"}
    octets = encode_message(
        Message(application_properties=given, body=(AmqpValue("send:" + "a" * 500),))
    )
    sender.send(octets[:1], more=True)
    for at in range(1, len(octets) - 1):
        sender.go_on(octets[at : at + 1], more=True)
    sender.go_on(b"", more=True)
    sender.go_on(octets[-1:])
    assert answer_in(receiver)[0] == 200


def test_an_aborted_message_leaves_nothing_behind() -> None:
    claimant = Claimant(Router(), Verifier())
    sender, receiver = claimant.attach()
    sender.send(b"nothing of this", more=True)
    sender.abort()
    assert claimant.put(sender, "send:a").outcome is not None
    assert answer_in(receiver)[0] == 200
