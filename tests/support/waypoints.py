"""Links of waypoints and fallbacks, and messages whose bodies are text."""

from __future__ import annotations

from typing import Any

from router.amqp.message import (
    AmqpValue,
    Header,
    Message,
    Properties,
    decode_message,
    encode_message,
)
from router.amqp.performatives import Source, Target
from router.amqp.types import Symbol

from support.in_memory import Client, ReceivingLink, SendingLink


def message(
    text: str,
    to: str | None = None,
    *,
    annotations: Any = None,
    subject: str | None = None,
    header: Header | None = None,
) -> bytes:
    """Return a message with the body `text`."""
    return encode_message(
        Message(
            header=header,
            message_annotations=annotations,
            properties=Properties(to=to, subject=subject),
            body=(AmqpValue(text),),
        )
    )


def text_of(octets: bytes) -> Any:
    """Return the body of a message."""
    (body,) = decode_message(octets).body
    assert isinstance(body, AmqpValue)
    return body.value


def texts(receiver: ReceivingLink) -> list[Any]:
    """Return the bodies that a receiver has got so far."""
    return [text_of(each.payload) for each in receiver.received if each.complete]


def into(client: Client, capability: str, address: str = "q") -> SendingLink:
    """Attach a waypoint's link for the messages that it returns."""
    target = Target(address=address, capabilities=(Symbol(capability),))
    return client.sender(address, target=target)


def out_of(client: Client, capability: str, address: str = "q", credit: int = 10) -> ReceivingLink:
    """Attach a waypoint's link for the messages that it takes, or a fallback's."""
    source = Source(address=address, capabilities=(Symbol(capability),))
    return client.receiver(address, source=source, credit=credit)
