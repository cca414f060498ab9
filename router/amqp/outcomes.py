"""Errors and delivery states, including the outcomes (sections 2.8.14 and 3.4)."""

from __future__ import annotations

import attrs

from router.amqp import field_types as t
from router.amqp.composite import Composite, Field, composite
from router.amqp.constants import Descriptor
from router.amqp.decode import decode_value
from router.amqp.types import ValueMap
from router.amqp.walking import malformed


@composite(
    "amqp:error:list",
    Descriptor.ERROR,
    "error",
    Field("condition", t.SYMBOL, mandatory=True),
    Field("description", t.STRING),
    Field("info", t.FIELDS),
)
@attrs.frozen
class Error(Composite):
    """Error: why something ended or failed (section 2.8.14)."""

    condition: str
    description: str | None = None
    info: ValueMap | None = None


@composite(
    "amqp:received:list",
    Descriptor.RECEIVED,
    "delivery-state",
    Field("section_number", t.UINT, mandatory=True),
    Field("section_offset", t.ULONG, mandatory=True),
)
@attrs.frozen
class Received(Composite):
    """Progress of a message; the only delivery state that is not terminal (section 3.4.1)."""

    section_number: int
    section_offset: int


@composite("amqp:accepted:list", Descriptor.ACCEPTED, "delivery-state, outcome")
@attrs.frozen
class Accepted(Composite):
    """Outcome of a message that was processed (section 3.4.2)."""


@composite(
    "amqp:rejected:list",
    Descriptor.REJECTED,
    "delivery-state, outcome",
    Field("error", t.ERROR),
)
@attrs.frozen
class Rejected(Composite):
    """Outcome of an invalid message, which no receiver should process (section 3.4.3)."""

    error: Error | None = None


@composite("amqp:released:list", Descriptor.RELEASED, "delivery-state, outcome")
@attrs.frozen
class Released(Composite):
    """Outcome of a message that its receiver neither processed nor changed (section 3.4.4)."""


@composite(
    "amqp:modified:list",
    Descriptor.MODIFIED,
    "delivery-state, outcome",
    Field("delivery_failed", t.BOOLEAN),
    Field("undeliverable_here", t.BOOLEAN),
    Field("message_annotations", t.FIELDS),
)
@attrs.frozen
class Modified(Composite):
    """Outcome of an unprocessed message that is to be modified before a retry (section 3.4.5)."""

    delivery_failed: bool | None = None
    undeliverable_here: bool | None = None
    message_annotations: ValueMap | None = None


# The largest state that is kept whole. One frame can set the state of thousands of deliveries, each
# of which would keep it.
MAX_KEPT_BYTES = 512
EMPTY_LIST = b"\x45"
_OUTCOMES = range(Descriptor.ACCEPTED, Descriptor.MODIFIED + 1)


def kept_state(state: bytes, code: int) -> bytes | None:
    """Return an encoded delivery state in the form in which it is kept with a delivery.

    A state of at most `MAX_KEPT_BYTES` octets is kept whole. A larger outcome is kept without its
    fields. Returns None for a larger state that is not an outcome. `code` is the descriptor.
    """
    if len(state) <= MAX_KEPT_BYTES:
        return state
    return bytes((0x00, 0x53, code)) + EMPTY_LIST if code in _OUTCOMES else None


def check_state(octets: bytes) -> None:
    """Check that octets encode exactly one delivery state before they are passed on unchanged.

    Raises AmqpError as `decode_composite` does,
    except that a state may have an unknown descriptor.
    """
    value, after = decode_value(octets)
    if after != len(octets):
        raise malformed(f"{len(octets) - after} octets are left over after a delivery state")
    t.DELIVERY_STATE.read(value, "disposition.state")
