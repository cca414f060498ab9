"""Message annotations of routers, with Qpid Dispatch's names: which routers a message has passed.

`x-opt-qd.ingress` names the router where the message entered the network, `x-opt-qd.trace` all
routers that it has passed, in order, `x-opt-qd.to` its address, and `x-opt-qd.phase` the phase of
that address, if it is not 0. The name of a router is `0/` followed by its id.

Inside the router a message carries none of them. They are removed from each message that is
received, and kept with its delivery if the settings of its connection say `honours_annotations`.
They are written anew, after all other annotations, into messages that leave on a connection whose
settings say `shows_annotations`. A message that arrives without them and leaves on a connection
that does not show them is not changed. (docs/decisions/0034-message-annotations.md.)

Messages for the router itself get other annotations instead: `x-opt-qd.connection`, the number of
the connection on which the message was received, and `x-opt-qd.rights` if the message came from
another router that declares a right of its sender to make changes.
(docs/decisions/0037-who-may-manage.md.)
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeGuard

import attrs

from router.amqp.annotations import PREFIX
from router.amqp.reading import TransferFrame
from router.amqp.revision import Entry, change_annotations, encode_entry, take_annotations
from router.amqp.types import Int
from router.core.addresses import management_access
from router.core.model.address import LAST_PHASE
from router.errors import AmqpError

if TYPE_CHECKING:
    from router.core.model.address import Consumer
    from router.engine.delivery import Delivery

INGRESS: Final = f"{PREFIX}ingress"
TRACE: Final = f"{PREFIX}trace"
TO: Final = f"{PREFIX}to"
PHASE: Final = f"{PREFIX}phase"
CONNECTION: Final = f"{PREFIX}connection"
RIGHTS: Final = f"{PREFIX}rights"


@attrs.frozen
class RouterAnnotations:
    """Set of the annotations that earlier routers wrote into a message."""

    ingress: str | None = None
    trace: tuple[str, ...] = ()
    to: str | None = None
    phase: int = 0
    others: tuple[bytes, ...] = ()
    """Encoded annotations with the prefix of routers whose names this router does not know."""


def router_name(router_id: str) -> str:
    """Return the name of a router in annotations: its area, which is always 0, and its id."""
    return f"0/{router_id}"


def is_own(key: str) -> bool:
    """Return whether an annotation with this key is written only by routers."""
    return key.startswith(PREFIX)


def remove_annotations(delivery: Delivery, frame: TransferFrame) -> TransferFrame:
    """Return a copy of a frame without the routers' annotations.

    The frame must contain the message's header and all its annotations. The routers' annotations
    are kept as the delivery's `passage`, if its connection honours them. Raises `AmqpError` if the
    message annotations are not a map.
    """
    payload = bytes(memoryview(frame.octets)[frame.payload_at : frame.end])
    octets, entries = take_annotations(payload, is_own)
    if delivery.incoming.session.connection.settings.honours_annotations:
        delivery.passage = passage_of(entries)
    return frame.with_payload(octets)


def passage_of(entries: tuple[Entry, ...]) -> RouterAnnotations:
    """Decode the routers' annotations; values of the wrong type are ignored (section 3.2.10)."""
    ingress = to = None
    phase = 0
    trace: tuple[str, ...] = ()
    others = []
    for entry in entries:
        try:
            value = entry.value()
        except AmqpError:
            continue
        if entry.key == INGRESS:
            ingress = value if type(value) is str else ingress
        elif entry.key == TO:
            to = value if type(value) is str else to
        elif entry.key == PHASE:
            # each router checks whether the phase has receivers
            phase = int(value) if _is_phase(value) else phase
        elif entry.key == TRACE:
            if type(value) is list and all(type(name) is str for name in value):
                trace = tuple(value)
        else:
            others.append(entry.octets)
    return RouterAnnotations(ingress, trace, to, phase, tuple(others))


def _is_phase(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LAST_PHASE


def with_annotations(consumer: Consumer, delivery: Delivery, octets: bytes) -> bytes:
    """Return a message with the router's annotations, for a link that shows them.

    `octets` must contain the message's header and all its annotations. The message is returned
    unchanged if its annotations cannot be decoded, or if it would become larger than the link's
    max-message-size.
    """
    if delivery.message_format:
        return octets
    settings = consumer.link.session.connection.settings
    here = router_name(settings.container_id)
    passed = delivery.passage
    if settings.is_own:
        incoming = delivery.incoming
        entries: tuple[bytes, ...] = (encode_entry(CONNECTION, incoming.session.connection.number),)
        if management_access.declares_change(incoming):
            entries += (encode_entry(RIGHTS, management_access.CHANGE),)
    elif passed is None:
        entries = _fresh_entries(here, delivery.address.name, delivery.address.phase)
    else:
        entries = _entries(here, delivery.address.name, delivery.address.phase, passed)
    try:
        changed = change_annotations(octets, is_own, entries)
    except AmqpError:
        return octets
    # if it becomes too large for its receiver, it is sent without annotations
    size = delivery.size + len(changed) - len(octets)
    return octets if size > consumer.link.max_message_size else changed


def _entries(here: str, to: str, phase: int, passed: RouterAnnotations) -> tuple[bytes, ...]:
    return (
        *passed.others,
        *([encode_entry(PHASE, Int(phase))] if phase else []),
        encode_entry(TO, to),
        encode_entry(INGRESS, here if passed.ingress is None else passed.ingress),
        encode_entry(TRACE, [*passed.trace, here]),
    )


@lru_cache(maxsize=64)
def _fresh_entries(here: str, to: str, phase: int) -> tuple[bytes, ...]:
    """Return the encoded annotations for a message that enters the network at this router."""
    return _entries(here, to, phase, RouterAnnotations())


def annotate_frame(consumer: Consumer, delivery: Delivery, frame: TransferFrame) -> TransferFrame:
    """Return a frame with the router's annotations in its payload (`with_annotations`)."""
    payload = bytes(memoryview(frame.octets)[frame.payload_at : frame.end])
    return frame.with_payload(with_annotations(consumer, delivery, payload))
