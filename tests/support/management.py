"""Requests to `$management` and their answers, over a connection of our own client."""

from __future__ import annotations

from typing import Any

from router.amqp.message import AmqpValue, Message, Properties
from router.amqp.performatives import Accepted
from router.client import ClientConnection, Sender

NODE = "$management"
ANSWERS = "answers/here"


def request(body: Any = None, **properties: Any) -> Message:
    """Return a request whose answer goes to ANSWERS."""
    return Message(
        properties=Properties(message_id="mine", reply_to=ANSWERS),
        application_properties=properties,
        body=(AmqpValue(body),),
    )


async def asked(connection: ClientConnection, sender: Sender, message: Message) -> Message:
    """Send a request and return its answer."""
    receiver = await connection.open_receiver(ANSWERS)
    assert await sender.send(message) == Accepted()
    received = await receiver.receive()
    received.accept()
    await receiver.aclose()
    return received.message


def status(message: Message) -> int:
    """Return the status code of an answer."""
    assert message.application_properties is not None
    return int(message.application_properties["statusCode"])
