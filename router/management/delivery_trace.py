"""Trace of deliveries: where each one is received, waits and is sent, and its outcomes.

Trace lines combine the frames of all connections with the engine's records of the deliveries in
those frames. A presettled delivery has no record once it has been sent, so its outgoing frames are
recognised by their content.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import attrs

from router.amqp.constants import Descriptor
from router.amqp.describing import show_octets
from router.amqp.message_head import bare_content, message_id_of, outcome_text
from router.amqp.peek import find_to
from router.amqp.watching import SeenFrame
from router.core.addresses.table import address_name
from router.core.model.address import Address, Producer
from router.engine.delivery import Delivery, parts_of
from router.engine.link import IncomingLink
from router.engine.naming import link_identity
from router.engine.session import Session
from router.management.ports import ConnectionRecord, RouterInternals, TracedFrame
from router.management.running_traces import Line, Trace

MAX_FOLLOWED: Final = 1000
# Maximum number of deliveries in the router that are examined when a trace starts.
MAX_SCANNED: Final = 100_000
IDS: Final = 2**32

# First octets of frames that do not concern deliveries, so that they need not be decoded.
_OTHERS: Final = frozenset(
    bytes((0x00, 0x53, code))
    for code in Descriptor
    if code < 2**8 and code not in (Descriptor.TRANSFER, Descriptor.DISPOSITION)
)
# Fields that must be 32-bit numbers.
_NUMBERS: Final = ("handle", "delivery_id", "first", "last")
# Maximum length of texts from peers in a line.
MAX_TEXT: Final = 256

# Key of a delivery: number of its connection, this router's channel, and delivery-id.
Key: TypeAlias = tuple[int, int, int]

Values: TypeAlias = Mapping[str, object]
"""Fields of a performative, as decoded."""


@attrs.frozen
class DeliveryFilter:
    """Criteria for the deliveries to follow; a criterion that is None matches any delivery.

    `link` is the identity of the link on which a delivery is received. `tag` is its delivery-tag as
    text, in hexadecimal, or as `trioute trace` shows it. `message_id` is its message-id, as text.
    """

    address: str | None = None
    message_id: str | None = None
    link: str | None = None
    delivery_id: int | None = None
    tag: str | None = None

    def matches(self, received: _ReceivedDelivery) -> bool:
        """Return whether a delivery matches the criteria."""
        return (
            self._is(self.address, received.address)
            and self._is(self.link, received.link)
            and self._is(self.delivery_id, received.delivery_id)
            and self._is(self.message_id, received.message_id)
            and (self.tag is None or self.tag in received.tags())
        )

    @staticmethod
    def _is(wanted: object, found: object) -> bool:
        return wanted is None or wanted == found


@attrs.frozen
class _ReceivedDelivery:
    """Properties of a delivery that is being received."""

    link: str
    delivery_id: int
    tag: bytes | None
    address: str | None
    message_id: str | None

    def tags(self) -> tuple[str, ...]:
        """Return the forms in which users may write the delivery-tag."""
        if self.tag is None:
            return ()
        # in quotes, as trace lines show it, and without them
        shown = show_octets(self.tag, len(self.tag))
        return shown, shown[1:-1], self.tag.hex(), self.tag.decode("latin-1")


@attrs.define(eq=False)
class _Followed:
    """Delivery that has been followed since `began_at`, a time on the engine's clock."""

    number: int
    key: Key
    began_at: float
    content: bytes = b""
    is_settled: bool = False
    octets: int = 0
    link: str = ""
    # its outgoing deliveries, each with the identity of its link
    outs: dict[Key, str] = attrs.field(factory=dict)


class DeliveryTracer:
    """Source of trace lines about deliveries.

    `is_carrier` returns whether the connection with a given number itself carries trace lines.
    """

    def __init__(
        self,
        trace: Trace,
        wanted: DeliveryFilter,
        observed: RouterInternals,
        is_carrier: Callable[[int], bool],
    ) -> None:
        self._trace = trace
        self._wanted = wanted
        self._observed = observed
        self._is_carrier = is_carrier
        self._last = 0
        self._followed: OrderedDict[Key, _Followed] = OrderedDict()
        self._out: dict[Key, _Followed] = {}
        # the first frames of deliveries in this turn, and the incomplete delivery of each link
        self._arrived: list[tuple[TracedFrame, Session, IncomingLink, Address | None]] = []
        self._unfinished: dict[tuple[int, int, int], Key] = {}

    @property
    def followed_total(self) -> int:
        """Return how many deliveries have been followed so far."""
        return self._last

    @property
    def followed(self) -> int:
        """Return how many deliveries are followed now."""
        return len(self._followed)

    # Deliveries that are in the router already.

    def report_present(self) -> int:
        """Report the matching deliveries that are in the router; return how many there are."""
        looked = 0
        for pump in list(self._observed.pumps.values()):
            for session in list(pump.connection.local_sessions.values()):
                unsettled = session.incoming
                for delivery in (*unsettled.ring, *unsettled.stragglers.values()):
                    if delivery is None or delivery.incoming is None:
                        continue
                    looked += 1
                    if looked > MAX_SCANNED or len(self._followed) == MAX_FOLLOWED:
                        return len(self._followed)
                    self._look_at(pump, session, delivery)
        return len(self._followed)

    def _look_at(self, pump: ConnectionRecord, session: Session, delivery: Delivery) -> None:
        octets = b"".join(delivery.chunks or ())
        received = _ReceivedDelivery(
            link_identity(delivery.incoming),
            delivery.incoming_id,
            delivery.incoming_tag,
            None if delivery.address is None else delivery.address.name,
            message_id_of(octets),
        )
        if not self._wanted.matches(received):
            return
        key = (pump.number, session.channel, delivery.incoming_id)
        followed = self._follow(key, octets, received.link)
        followed.octets = delivery.size
        self._tell(followed, "is here", received.link, **_facts(received), bytes=delivery.size)
        parts = [delivery, *parts_of(delivery)]
        outs = [each for each in parts if each.outgoing is not None]
        for each in outs:
            link = each.outgoing
            number = link.session.connection.number
            key = (number, link.session.channel, each.outgoing_id)
            self._go_out(followed, key, link_identity(link))
            self._tell(followed, "is out", link_identity(link), deliveryId=each.outgoing_id)
        if not outs:
            self._tell_waiting(followed, delivery)

    def report_without_sender(self) -> None:
        """Report and forget deliveries whose sender's connection is closed."""
        pumps = self._observed.pumps
        for followed in list(self._followed.values()):
            if followed.key[0] not in pumps:
                self._tell(followed, "has no sender", followed.link, last=True)
                self._forget(followed)

    # Frames.

    def on_frame(self, frame: TracedFrame) -> None:
        """Handle a frame of any connection; the engine processes incoming frames afterwards."""
        if not isinstance(frame.captured, SeenFrame) or frame.captured.body[:3] in _OTHERS:
            return
        name = frame.description.name
        if name not in ("transfer", "disposition") or self._is_carrier(frame.pump.number):
            return
        connection, values = frame.pump.connection, frame.description.values
        if not all(_is_number(values[name]) for name in _NUMBERS if name in values):
            # an invalid field: the engine will report it
            return
        session: Session | None
        if frame.incoming:
            session = connection.sessions.find(frame.channel)
        else:
            session = connection.local_sessions.get(frame.channel)
        if session is None:
            return
        if name == "disposition":
            self._disposition(frame, session, values)
        elif frame.incoming:
            self._transfer_in(frame, session, values)
        else:
            self._transfer_out(frame, session, values)

    def _transfer_in(self, frame: TracedFrame, session: Session, values: Values) -> None:
        link = session.links.find(_number(values, "handle"))
        if not isinstance(link, IncomingLink):
            return
        place = (frame.pump.number, session.channel, link.handle)
        id_ = _number(values, "delivery_id")
        known = self._unfinished.get(place)
        if known is not None and values.get("delivery_id") in (None, known[2]):
            self._go_on(frame, place, values)
        elif link.current is None:
            # get the address now: once the frame has been processed, the link may be gone
            producer: Producer | None = link.owner
            address = None if producer is None else producer.address
            self._arrived.append((frame, session, link, address))
            if values.get("more"):
                self._unfinished[place] = (frame.pump.number, session.channel, id_)
                if len(self._unfinished) > MAX_FOLLOWED:
                    del self._unfinished[next(iter(self._unfinished))]

    def _go_on(self, frame: TracedFrame, place: tuple[int, int, int], values: Values) -> None:
        """Handle a further frame of an incomplete delivery."""
        is_aborted, goes_on = bool(values.get("aborted")), bool(values.get("more"))
        key = self._unfinished[place]
        # if its first frame came in the same read, report that one first
        self.on_processed()
        followed = self._followed.get(key)
        if followed is not None:
            followed.octets += frame.description.payload_bytes
        if goes_on and not is_aborted:
            return
        del self._unfinished[place]
        if followed is not None:
            what = "was aborted" if is_aborted else "is whole"
            self._tell(followed, what, followed.link, bytes=followed.octets)

    def on_processed(self) -> None:
        """Report the received deliveries, after the engine has processed their frames."""
        arrived, self._arrived = self._arrived, []
        for frame, session, link, address in arrived:
            self._came_in(frame, session, link, address)

    def _came_in(
        self, frame: TracedFrame, session: Session, link: IncomingLink, address: Address | None
    ) -> None:
        values = frame.description.values
        payload = _payload(frame)
        id_ = _number(values, "delivery_id")
        delivery = session.incoming.find(id_)
        to = find_to(payload, 0, len(payload)) if address is None else None
        tag = values.get("delivery_tag")
        received = _ReceivedDelivery(
            link_identity(link),
            id_,
            tag if isinstance(tag, bytes) else None,
            address.name if address is not None else None if to is None else address_name(to),
            message_id_of(payload),
        )
        if not self._wanted.matches(received):
            return
        key = (frame.pump.number, session.channel, id_)
        followed = self._follow(key, payload, received.link)
        followed.octets = frame.description.payload_bytes
        followed.is_settled = bool(values.get("settled"))
        facts: Line = {"bytes": followed.octets, "settled": followed.is_settled}
        if values.get("more"):
            facts["more"] = True
        self._tell(followed, "came in", received.link, **_facts(received), **facts)
        if delivery is not None and delivery.outgoing is None and not delivery.copies:
            self._tell_waiting(followed, delivery)

    def _transfer_out(self, frame: TracedFrame, session: Session, values: Values) -> None:
        if "delivery_id" not in values:
            # a further frame of a delivery that was sent
            return
        id_ = _number(values, "delivery_id")
        delivery = session.outgoing.find(id_)
        followed = self._origin(delivery) if delivery is not None else self._alike(frame)
        link = session.local_links.get(_number(values, "handle"))
        if followed is None or link is None:
            return
        is_settled = bool(values.get("settled"))
        facts: Line = {"settled": is_settled, "deliveryId": id_}
        if delivery is None:
            facts["by"] = "content"
        if followed.is_settled and is_settled:
            facts["last"] = True
        else:
            key = (frame.pump.number, session.channel, id_)
            self._go_out(followed, key, link_identity(link))
        self._tell(followed, "went out", link_identity(link), **facts)

    def _origin(self, delivery: Delivery) -> _Followed | None:
        """Return the followed delivery from which an outgoing delivery originates, or None."""
        origin = delivery
        while origin.parent is not None:
            origin = origin.parent
        session = origin.incoming.session
        key = (session.connection.number, session.channel, origin.incoming_id)
        return self._followed.get(key)

    def _alike(self, frame: TracedFrame) -> _Followed | None:
        """Return the latest followed delivery whose content equals that of a frame, or None."""
        content = bare_content(_payload(frame))
        alike = (each for each in reversed(self._followed.values()) if each.content == content)
        return next(alike, None) if content else None

    def _disposition(self, frame: TracedFrame, session: Session, values: Values) -> None:
        first = _number(values, "first")
        width = (_number(values, "last", first) - first) % IDS
        from_receiver = bool(values.get("role"))
        # it concerns outgoing deliveries if the peer sends it as receiver, or this router as sender
        outs = frame.incoming is from_receiver
        events = ("outcome", "was settled by us") if outs else ("told", "was settled by its sender")
        facts: Line = {"settled": bool(values.get("settled"))}
        state = values.get("state")
        if state is not None:
            facts["state"] = outcome_text(state)
        concerned = self._out if outs else self._followed
        for key, followed in list(concerned.items()):
            number, channel, id_ = key
            if (number, channel) != (frame.pump.number, session.channel):
                continue
            if (id_ - first) % IDS > width:
                continue
            event = events[0] if from_receiver else events[1]
            is_last = not outs and facts["settled"]
            if is_last:
                facts["last"] = True
            link = followed.outs[key] if outs else followed.link
            self._tell(followed, event, link, deliveryId=id_, **facts)
            if is_last:
                self._forget(followed)

    # Records of followed deliveries.

    def _follow(self, key: Key, payload: bytes, link: str) -> _Followed:
        self._last += 1
        now = self._observed.turn.now
        followed = _Followed(self._last, key, now, bare_content(payload), link=link)
        old = self._followed.get(key)
        if old is not None:
            self._forget(old)
        self._followed[key] = followed
        if len(self._followed) > MAX_FOLLOWED:
            self._forget(next(iter(self._followed.values())))
        return followed

    def _go_out(self, followed: _Followed, key: Key, link: str) -> None:
        followed.outs[key] = link
        self._out[key] = followed

    def _forget(self, followed: _Followed) -> None:
        if self._followed.get(followed.key) is followed:
            del self._followed[followed.key]
        for key in followed.outs:
            if self._out.get(key) is followed:
                del self._out[key]

    def _tell_waiting(self, followed: _Followed, delivery: Delivery) -> None:
        address = delivery.address
        if address is None:
            return
        receivers = len(address.consumers)
        why = (
            "the address has no receivers"
            if not receivers
            else f"none of {receivers} receivers can take it"
        )
        self._tell(followed, "waits", "", address=address.name, reason=why)

    def _tell(self, followed: _Followed, event: str, link: str, **facts: object) -> None:
        line: Line = {"kind": "delivery", "delivery": followed.number, "event": event}
        if link:
            line["connection"], line["link"] = link.partition(".")[0], link
        after_ms = (self._observed.turn.now - followed.began_at) * 1000
        line["afterMs"] = round(after_ms, 3)
        self._trace.add(line | {name: value for name, value in facts.items() if value is not None})


def _payload(frame: TracedFrame) -> bytes:
    """Return the part of a frame's payload that was captured."""
    captured = frame.captured
    return captured.body[frame.description.payload_at :] if isinstance(captured, SeenFrame) else b""


def _facts(received: _ReceivedDelivery) -> Line:
    tag = None if received.tag is None else show_octets(received.tag, 32)
    return {
        "deliveryId": received.delivery_id,
        "tag": tag,
        "address": received.address and received.address[:MAX_TEXT],
        "messageId": received.message_id and received.message_id[:MAX_TEXT],
    }


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < IDS


def _number(values: Values, name: str, otherwise: int = 0) -> int:
    value = values.get(name, otherwise)
    return int(value) if isinstance(value, int) else otherwise
