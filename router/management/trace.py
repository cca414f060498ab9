"""TRACE: send the frames of connections to a receiver of the requester.

The trace ends when the receiver is gone. The body has the receiver's address, `to`, and selects
connections: one by its number (`connection`), those of a `container` or a `user`, those from a
`peer` (host, or host and port), or `all`. Matching connections that open later are traced as well.
With `delivery`, lines about deliveries are sent instead of frames. The value of `delivery` is a map
with at least one of the deliveries' `address`, `messageId`, `link`, `deliveryId` and `tag`.
(docs/how-to/trace.md describes the lines.)
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from router.core.addresses.table import address_name
from router.management.delivery_trace import DeliveryFilter, DeliveryTracer
from router.management.ports import ConnectionRecord, TracedFrame
from router.management.requests import BAD_REQUEST, NOT_FOUND, AnswerMap, Refused, Request
from router.management.running_traces import MAX_TRACES, Line, TooManyTraces, Trace
from router.management.views import RouterView

Asked: TypeAlias = Mapping[object, object]
"""Map in a request."""

MAX_TEXT: Final = 512
# Maximum number of connections whose last reported line is kept.
MAX_KNOWN_CONNECTIONS: Final = 10_000
KINDS: Final = ("connection", "container", "user", "peer", "all", "delivery")
OF_DELIVERIES: Final = ("address", "messageId", "link", "deliveryId", "tag")


def trace(router: RouterView, request: Request) -> AnswerMap:
    """Start a trace; return its number, and which connections or how many deliveries are in it."""
    asked = request.body
    if not isinstance(asked, dict):
        raise Refused(BAD_REQUEST, "the body of a TRACE must be a map")
    unknown = [key for key in asked if key not in ("to", *KINDS)]
    if unknown:
        raise Refused(
            BAD_REQUEST, f"the body of a TRACE has an unknown key: {str(unknown[0])[:100]!r}"
        )
    wants = _wants(asked)
    to = _text(asked, "to")
    receivers = router.running_traces.receivers(to)
    if not receivers:
        raise Refused(BAD_REQUEST, "the address in `to` has no receiver")
    carrying = router.running_traces.carrying_connections() | receivers | {request.connection}
    pumps = [pump for pump in router.observed.pumps.values() if wants(pump)]
    if "connection" in asked:
        if not pumps:
            raise Refused(NOT_FOUND, f"there is no connection {asked['connection']}")
        if pumps[0].number in carrying:
            raise Refused(
                BAD_REQUEST,
                f"connection {pumps[0].number} carries a trace itself, so it cannot be traced",
            )
    deliveries = _deliveries(asked["delivery"]) if "delivery" in asked else None
    started = _start(router, to, request.connection, receivers)
    if deliveries is not None:
        return _follow(router, started, deliveries)
    frames = FrameTracer(router, started)
    listening = router.observed.tracer.add_listener(wants, frames.on_frame)
    started.on_end = lambda: router.observed.tracer.remove_listener(listening)
    started.on_heartbeat = frames.report_ended
    if "connection" in asked:
        frames.report_peer(pumps[0])
    numbers = [str(pump.number) for pump in pumps if pump.number not in carrying]
    return {"trace": started.number, "connections": numbers}


def _follow(router: RouterView, started: Trace, wanted: DeliveryFilter) -> AnswerMap:
    """Follow deliveries over all connections, and report those that are in the router now."""

    def is_carrier(number: int) -> bool:
        return number in router.running_traces.carrying_connections()

    traces = router.observed.tracer
    deliveries = DeliveryTracer(started, wanted, router.observed, is_carrier)
    here = deliveries.report_present()
    listening = traces.add_listener(lambda _: True, deliveries.on_frame, deliveries.on_processed)
    started.on_end = lambda: traces.remove_listener(listening)
    started.on_heartbeat = deliveries.report_without_sender
    return {"trace": started.number, "deliveries": here}


def _deliveries(asked: object) -> DeliveryFilter:
    """Return the criteria for the deliveries to follow. Raise Refused if they are invalid."""
    if not isinstance(asked, dict) or not asked:
        raise Refused(
            BAD_REQUEST, f"delivery must be a map with one or more of {', '.join(OF_DELIVERIES)}"
        )
    unknown = [key for key in asked if key not in OF_DELIVERIES]
    if unknown:
        raise Refused(BAD_REQUEST, f"delivery has an unknown key: {str(unknown[0])[:100]!r}")
    given = {key: _text(asked, key) for key in asked}
    number = given.get("deliveryId")
    if number is not None and not (number.isascii() and number.isdigit()):
        raise Refused(BAD_REQUEST, "deliveryId must be an integer of at least 0")
    address = given.get("address")
    return DeliveryFilter(
        address=None if address is None else address_name(address),
        message_id=given.get("messageId"),
        link=given.get("link"),
        delivery_id=None if number is None else int(number),
        tag=given.get("tag"),
    )


def _start(router: RouterView, to: str, requester_number: int | None, receivers: set[int]) -> Trace:
    """Start a trace, and charge its waiting lines to the requester's connection.

    If that connection is not known, a connection that receives the trace is charged. Raise Refused
    if too many traces run.
    """
    pumps = router.observed.pumps
    # no connection in `pumps` has the number 0
    holder = pumps.get(requester_number or 0) or pumps[min(receivers)]
    account = holder.connection.account
    try:
        return router.running_traces.begin(to, requester_number, account)
    except TooManyTraces:
        reason = f"{MAX_TRACES} traces are running, which is the maximum"
        raise Refused(BAD_REQUEST, reason) from None


def _text(asked: Asked, key: str) -> str:
    value = asked.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(int(value))
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_TEXT:
        raise Refused(BAD_REQUEST, f"{key} must be text of 1 to {MAX_TEXT} characters")
    return value


def _wants(asked: Asked) -> Callable[[ConnectionRecord], bool]:
    """Return a function that says whether a connection is among the requested ones.

    Raise Refused if the request does not select connections in exactly one way.
    """
    given = [kind for kind in KINDS if kind in asked]
    if len(given) != 1:
        raise Refused(BAD_REQUEST, f"TRACE needs exactly one of {', '.join(KINDS)}")
    (kind,) = given
    if kind == "delivery":
        return lambda _: True
    if kind == "all":
        if asked["all"] is not True:
            raise Refused(BAD_REQUEST, "the key all must be true if it is given")
        return lambda _: True
    value = _text(asked, kind)
    if kind == "connection":
        return lambda pump: str(pump.number) == value
    if kind == "user":
        return lambda pump: pump.connection.user == value
    if kind == "peer":
        return lambda pump: value in (pump.connection.name, _host(pump.connection.name))
    return lambda pump: _container(pump) == value


def _host(name: str) -> str:
    return name.rpartition(":")[0].strip("[]")


def _container(pump: ConnectionRecord) -> str | None:
    opened = pump.connection.remote_open
    return None if opened is None else str(opened.container_id)


class FrameTracer:
    """Source of trace lines about the frames of connections."""

    def __init__(self, router: RouterView, trace: Trace) -> None:
        self._router = router
        self._trace = trace
        # the line last sent about each connection, the newest last
        self._told: OrderedDict[int, Line] = OrderedDict()

    def on_frame(self, frame: TracedFrame) -> None:
        """Report a frame, unless its connection carries trace lines itself."""
        number = frame.pump.number
        if number in self._router.running_traces.carrying_connections():
            return
        self.report_peer(frame.pump)
        if self._trace.is_full():
            # the line would be dropped, so do not format it
            self._trace.dropped += 1
            return
        description = frame.description
        line: Line = {
            "kind": "frame",
            "connection": str(number),
            "direction": "in" if frame.incoming else "out",
            "channel": frame.channel,
            "name": description.name,
            "code": description.code,
            "fields": description.fields,
        }
        if description.payload_bytes:
            line |= {"payload": description.payload, "payloadBytes": description.payload_bytes}
        if description.note:
            line["note"] = description.note
        self._trace.add(line)

    def report_peer(self, pump: ConnectionRecord) -> None:
        """Report the peer of a connection, unless the last report about it was the same."""
        line = connection_line(pump)
        if self._told.get(pump.number) != line:
            self._told[pump.number] = line
            self._trace.add(dict(line))
            if len(self._told) > MAX_KNOWN_CONNECTIONS:
                self._told.popitem(last=False)

    def report_ended(self) -> None:
        """Report the connections that have ended."""
        pumps = self._router.observed.pumps
        for number in [number for number in self._told if number not in pumps]:
            self._trace.add({**self._told.pop(number), "gone": True})


def connection_line(pump: ConnectionRecord) -> Line:
    """Return the line about the peer of a connection."""
    line: Line = {
        "kind": "connection",
        "connection": str(pump.number),
        "peer": pump.connection.name,
    }
    if pump.connection.user is not None:
        line["user"] = pump.connection.user
    container = _container(pump)
    if container is not None:
        line["container"] = container[:MAX_TEXT]
    return line
