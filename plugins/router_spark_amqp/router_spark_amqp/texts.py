"""Convert AMQP values of any type to text; octets are in hexadecimal."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta

from router.amqp.decimals import Decimal32, Decimal64, Decimal128
from router.amqp.types import Array, Described, Map, Timestamp

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def as_text(value: object) -> str | None:
    """Return a value as the text of a cell, or None if the value is null.

    Strings are unchanged; symbols, timestamps, UUIDs, decimals and octets are not quoted; other
    values are JSON.
    """
    if value is None or type(value) is str:
        return value
    plain = as_json(value)
    return plain if isinstance(plain, str) else json.dumps(plain, separators=(",", ":"))


def as_json(value: object) -> object:
    """Convert a value to one that the module json can write.

    Raises TypeError if the value is of no AMQP type.
    """
    if isinstance(value, Timestamp):
        return _time(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list | tuple | Array):
        return [as_json(each) for each in value]
    if isinstance(value, dict):
        return {as_text(key) or "": as_json(each) for key, each in value.items()}
    if isinstance(value, Map):
        return {as_text(key) or "": as_json(each) for key, each in value.pairs}
    if isinstance(value, Described):
        return as_json(value.value)
    if isinstance(value, uuid.UUID | Decimal32 | Decimal64 | Decimal128):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not an AMQP type")


def _time(value: int) -> str:
    try:
        moment = _EPOCH + timedelta(milliseconds=value)
    except OverflowError:
        # outside the range of datetime
        return str(int(value))
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
