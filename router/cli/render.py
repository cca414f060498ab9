"""Format a message as text: its body for people, or all of it as JSON."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

from router.amqp.composite import Composite
from router.amqp.message import AmqpSequence, AmqpValue, Data, Message
from router.amqp.types import Array, Decimal32, Decimal64, Decimal128, Described, Map

JsonMap = dict[str, Any]
"""Map in JSON, or in the response of a router."""


def body_octets(message: Message) -> bytes:
    """Return the body for `--print body`: octets and text as they are, anything else as JSON."""
    parts = []
    for section in message.body:
        if isinstance(section, Data):
            parts.append(section.octets)
        elif isinstance(section, AmqpValue) and isinstance(section.value, str):
            parts.append(section.value.encode())
        elif isinstance(section, AmqpValue) and isinstance(section.value, bytes):
            parts.append(section.value)
        else:
            value = section.value if isinstance(section, AmqpValue) else section.items
            parts.append(_dumps(value))
    return b"".join(parts)


def message_as_json(message: Message) -> JsonMap:
    """Return the sections of a message by name; the body is `data`, `value` or `sequence`.

    Binary values become objects with a `base64` field. Maps with keys that JSON does not allow
    become lists of pairs.
    """
    shown: JsonMap = {}
    for name in ("header", "delivery_annotations", "message_annotations", "properties"):
        shown[name] = getattr(message, name)
    shown["application_properties"] = message.application_properties
    if message.body and isinstance(message.body[0], Data):
        shown["data"] = b"".join(s.octets for s in message.body if isinstance(s, Data))
    elif message.body and isinstance(message.body[0], AmqpValue):
        # null is a value too
        shown["value"] = message.body[0].value
    elif message.body:
        shown["sequence"] = [
            item for s in message.body if isinstance(s, AmqpSequence) for item in s.items
        ]
    shown["footer"] = message.footer
    return {
        name: as_json(section)
        for name, section in shown.items()
        if section is not None or name == "value"
    }


def as_json(value: object) -> Any:
    """Convert an AMQP value to a value that JSON can represent."""
    match value:
        case None | bool():
            return value
        case float():
            return float(value) if math.isfinite(value) else str(float(value))
        case int():
            return int(value)
        case str():
            return str(value)
        case bytes():
            return {"base64": base64.b64encode(value).decode()}
        case Decimal32() | Decimal64() | Decimal128():
            return str(value.to_decimal())
        case dict() if all(isinstance(key, str) for key in value):
            return {str(key): as_json(item) for key, item in value.items()}
        case dict():
            return [[as_json(key), as_json(item)] for key, item in value.items()]
        case Map(pairs):
            return [[as_json(key), as_json(item)] for key, item in pairs]
        case list() | tuple() | Array():
            return [as_json(item) for item in value]
        case Described(descriptor, inner):
            return {"descriptor": as_json(descriptor), "value": as_json(inner)}
        case Composite():
            fields = ((field.name, getattr(value, field.name)) for field in value.FIELDS)
            return {name: as_json(item) for name, item in fields if item not in (None, ())}
        case _:
            return str(value)


def _dumps(value: object) -> bytes:
    return json.dumps(as_json(value), ensure_ascii=False).encode()
