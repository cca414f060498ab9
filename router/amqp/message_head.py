"""Read the beginning of a message for traces; the rest of the message may be missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from router.amqp.composite import class_of
from router.amqp.constants import Descriptor
from router.amqp.decode import decode_value
from router.amqp.describing import show
from router.amqp.types import Described, Value
from router.errors import AmqpError

CONTENT_BYTES: Final = 512
"""Number of octets of their content that are compared to distinguish messages."""


def sections(octets: bytes) -> Iterator[tuple[int, int, Value]]:
    """Yield the descriptor code, position and value of each complete section in `octets`."""
    at = 0
    while at < len(octets):
        try:
            value, after = decode_value(octets, at)
        except AmqpError:
            return
        if not isinstance(value, Described):
            return
        cls = class_of(value)
        code = value.descriptor if cls is None else int(cls.CODE)
        if not isinstance(code, int):
            return
        yield int(code), at, value.value
        at = after


def message_id_of(octets: bytes) -> str | None:
    """Return the message-id as text, or None if it is absent or `octets` end before it."""
    for code, _, value in sections(octets):
        if code == Descriptor.PROPERTIES:
            found = value[0] if isinstance(value, list) and value else None
            if isinstance(found, bytes):
                return found.hex()
            if isinstance(found, int):
                return str(int(found))
            return None if found is None else str(found)
        if code > Descriptor.PROPERTIES:
            return None
    return None


def bare_content(octets: bytes) -> bytes:
    """Return the first `CONTENT_BYTES` octets of the bare message in `octets`, or fewer."""
    for code, at, _ in sections(octets):
        if code >= Descriptor.PROPERTIES:
            return octets[at : at + CONTENT_BYTES]
    return b""


def outcome_text(state: Value) -> str:
    """Return a delivery's state as text: `accepted`, or `rejected [error=...]` with its fields."""
    if not isinstance(state, Described):
        return show(state)
    cls = class_of(state)
    if cls is None or not isinstance(state.value, list):
        return show(state)
    name = cls.NAME.split(":")[1]
    told = [
        f"{field.name.replace('_', '-')}={show(item)}"
        for field, item in zip(cls.FIELDS, state.value, strict=False)
        if item is not None
    ]
    return f"{name} [{', '.join(told)}]" if told else name
