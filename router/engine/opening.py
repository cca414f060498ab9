"""Life of a connection: open, heartbeats and close (section 2.4).

These functions work on `Connection`; none of them runs once per message. `headers` processes the
protocol headers before the open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from router.amqp.constants import Condition
from router.amqp.framing import (
    AMQP_HEADER,
    SASL_HEADER,
    encode_frame,
)
from router.amqp.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    End,
    Error,
    Open,
)
from router.amqp.types import Symbol
from router.engine import attaching, beginning
from router.engine.account import CONNECTION_BYTES, open_bytes
from router.engine.events import (
    ConnectionClosed,
    ConnectionOpened,
    ConnectionRefused,
    OpenReceived,
    OpenRefused,
)
from router.engine.settings import ConnectionSettings
from router.engine.states import Act, ConnectionState, next_connection_state
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.amqp.composite import Composite
    from router.engine.connection import Connection

# Phases, as in `connection`; named again here because the compiled module keeps its own in C.
SASL_PHASE = 1
AMQP_PHASE = 2
OVER_PHASE = beginning.OVER_PHASE

MIN_MAX_FRAME_SIZE = 512

# The shortest idle time-out that is accepted (section 2.4.5): a peer must not be able to make the
# router check timers all the time. Proton asks for half of its heartbeat, perhaps half a second.
LEAST_IDLE_MS = 250
# The slowest rate for a large frame: it may take a second longer per this many octets.
LEAST_BYTES_PER_S = 1024

# The property of our open with the connection's number in our logs. The name is Dispatch's; the
# number can be as large as an AMQP long.
CONNECTION_NUMBER = Symbol("qd.conn-id")
LARGEST_NUMBER = 2**63 - 1

# The property of an open that is sent only because a close needs an open before it: the peer
# refuses the connection. No specification defines the property, but many brokers send it.
ESTABLISHMENT_FAILED = Symbol("amqp:connection-establishment-failed")

# Descriptions of a connection that the peer has not closed in order.
SOCKET_CLOSED = "the socket was closed"
NO_MECHANISM = (
    "the server closed the socket before it offered a SASL mechanism: it may have none to offer "
    "without TLS or a certificate; its log says more"
)

# Our close has been sent, and the handler knows that the connection is over.
CLOSED_STATES = (
    ConnectionState.OC_PIPE,
    ConnectionState.CLOSE_PIPE,
    ConnectionState.CLOSE_SENT,
    ConnectionState.DISCARDING,
    ConnectionState.END,
)


def move(connection: Connection, act: Act) -> None:
    """Move the connection to the state that follows an action in the state table."""
    connection.state = int(next_connection_state(connection.state, act))


def write(connection: Connection, data: bytes) -> None:
    """Append a whole frame or header to the output, which is sent at the end of this turn."""
    connection.outbox.output.append(data)
    connection.outbox.touch()


def write_frame(connection: Connection, channel: int, performative: Composite) -> None:
    """Encode and append one AMQP frame."""
    write(connection, encode_frame(channel, performative))


def start(connection: Connection) -> None:
    """Send the first header, as the side that opened the connection."""
    if connection.settings.sasl_mechanisms:
        write(connection, SASL_HEADER)
    else:
        move(connection, Act.SEND_HEADER)
        write(connection, AMQP_HEADER)
        send_open(connection)


# Open and close.


def send_open(connection: Connection) -> None:
    """Send our open.

    Until the peer's open is received, a frame may have at most 512 octets (section 2.4.1). If the
    open is too large for the peer, a server omits its properties. A client gives up, because its
    peer may need the properties.
    """
    opened = own_open(connection.settings, connection.number)
    limit = connection.remote_max_frame_size
    octets = encode_frame(0, opened)
    if len(octets) > limit and not connection.is_client:
        opened = attrs.evolve(opened, properties={})
        octets = encode_frame(0, opened)
    if len(octets) > limit:
        problem = (
            f"container-id, host name and properties make an open of {len(octets)} octets; {limit} "
            "are allowed"
        )
        give_up(connection, AmqpError(Condition.FRAME_SIZE_TOO_SMALL, problem))
        return
    connection.local_open = opened
    move(connection, Act.SEND_OPEN)
    write(connection, octets)


def own_open(settings: ConnectionSettings, number: int = 0) -> Open:
    """Return the open that an endpoint with these settings sends, with the connection's number."""
    properties = {Symbol(k): v for k, v in settings.properties.items()}
    if number:
        properties[CONNECTION_NUMBER] = number
    idle_ms = int(settings.idle_timeout_s * 1000 / 2) or None
    return Open(
        container_id=settings.container_id,
        hostname=settings.hostname,
        max_frame_size=settings.max_frame_size,
        channel_max=settings.channel_max,
        idle_time_out=idle_ms,
        offered_capabilities=tuple(Symbol(c) for c in settings.offered_capabilities),
        desired_capabilities=tuple(Symbol(c) for c in settings.desired_capabilities),
        properties=properties,
    )


def change_settings(connection: Connection, settings: ConnectionSettings) -> None:
    """Change the settings of a connection after its peer's open, before that is answered."""
    connection.settings = settings
    connection.max_frame_size = settings.max_frame_size
    connection.channel_max = min(settings.channel_max, int(connection.remote_open.channel_max))


def frame_received(connection: Connection, channel: int, performative: Composite | None) -> None:
    """Process any frame except transfer, flow and disposition."""
    state = ConnectionState(connection.state)
    if isinstance(performative, Open):
        if channel:
            raise AmqpError(
                Condition.NOT_ALLOWED, f"open on channel {channel}; only channel 0 is allowed"
            )
        _open_received(connection, performative)
    elif isinstance(performative, Close):
        if channel > connection.settings.channel_max and state is ConnectionState.OPENED:
            raise beginning.unmapped(connection, channel)
        _close_received(connection, performative)
    elif state in (ConnectionState.DISCARDING, ConnectionState.CLOSE_SENT):
        # these were under way when our close was sent
        return
    elif state is not ConnectionState.OPENED:
        raise AmqpError(
            Condition.ILLEGAL_STATE,
            f"{type(performative).__name__} received while the connection is {state.name}",
        )
    elif isinstance(performative, Begin):
        beginning.begin_received(connection, channel, performative)
    elif isinstance(performative, Attach):
        attaching.attach_received(connection, channel, performative)
    elif isinstance(performative, Detach):
        attaching.detach_received(connection, channel, performative)
    elif isinstance(performative, End):
        beginning.end_received(connection, channel, performative)
    else:
        raise AmqpError(
            Condition.NOT_ALLOWED, f"{type(performative).__name__} is not an AMQP performative"
        )


def _open_received(connection: Connection, remote: Open) -> None:
    move(connection, Act.RECV_OPEN)
    if remote.max_frame_size < MIN_MAX_FRAME_SIZE:
        raise AmqpError(
            Condition.INVALID_FIELD,
            f"max-frame-size {remote.max_frame_size} is below the minimum, {MIN_MAX_FRAME_SIZE}",
        )
    if 0 < (remote.idle_time_out or 0) < LEAST_IDLE_MS:
        raise AmqpError(
            Condition.NOT_IMPLEMENTED,
            f"idle-time-out {remote.idle_time_out} ms is below the minimum, {LEAST_IDLE_MS} ms",
        )
    # these are not read later
    remote = attrs.evolve(
        remote,
        outgoing_locales=(),
        incoming_locales=(),
        offered_capabilities=(),
        desired_capabilities=(),
    )
    connection.remote_open = remote
    octets = open_bytes(remote)
    refusal = connection.account.refusal(CONNECTION_BYTES + octets, Scope.CONNECTION)
    connection.account.opened(octets)
    # a connection that we dialled is charged, but not refused
    if refusal is not None and not connection.is_client:
        raise refusal
    # Not larger than we accept ourselves: a huge frame would delay the other links of the peer.
    connection.remote_max_frame_size = min(int(remote.max_frame_size), 1 << 20)
    connection.channel_max = min(connection.settings.channel_max, int(remote.channel_max))
    connection.remote_idle_s = (remote.idle_time_out or 0) / 1000
    if connection.state == ConnectionState.OPEN_RCVD:
        connection.handler.event_received(connection, OpenReceived(remote))
    # unless it was refused, or is to be answered later
    if not connection.paused:
        _answer_open(connection, remote)


def hold_open(connection: Connection) -> None:
    """Hold back the answer to a peer's open; call this while `OpenReceived` is handled.

    Nothing else is read from the peer until `release_open` or `refuse` is called.
    """
    connection.paused = True


def release_open(connection: Connection) -> None:
    """Answer a peer's open that was held back."""
    if connection.state == ConnectionState.OPEN_RCVD:
        _answer_open(connection, connection.remote_open)
    connection.resume()


def _answer_open(connection: Connection, remote: Open) -> None:
    if connection.state == ConnectionState.OPEN_RCVD:
        send_open(connection)
    if connection.state == ConnectionState.OPENED:
        is_refused = connection.is_client and (remote.properties or {}).get(ESTABLISHMENT_FAILED)
        event = OpenRefused(remote) if is_refused else ConnectionOpened(remote)
        connection.handler.event_received(connection, event)


def _close_received(connection: Connection, remote: Close) -> None:
    move(connection, Act.RECV_CLOSE)
    if connection.state == ConnectionState.CLOSE_RCVD:

        def answer() -> None:
            move(connection, Act.SEND_CLOSE)
            write_frame(connection, 0, Close())

        closed = ConnectionClosed(remote.error, True)
        beginning.lose_sessions(connection, remote.error, by_peer=True, end=answer, closed=closed)
    connection.phase = OVER_PHASE
    connection.finished = True
    connection.outbox.touch()


def refuse(connection: Connection, error: AmqpError) -> None:
    """Refuse a peer's open: answer with ours, then close with the error (section 2.4.3)."""
    refused = ConnectionRefused(connection.remote_open, error)
    connection.handler.event_received(connection, refused)
    close(connection, error)


def close(connection: Connection, error: AmqpError | None) -> None:
    """Send a close, with an error or None; if no open can be sent before it, close the socket."""
    state = ConnectionState(connection.state)
    if connection.phase == OVER_PHASE:
        return
    if state in CLOSED_STATES:
        if error is not None and state is ConnectionState.CLOSE_PIPE:
            # the peer's frame was not an open, and our close has been sent already
            give_up(connection, error)
        return
    if state is ConnectionState.OPEN_RCVD or state is ConnectionState.HDR_EXCH:
        # Closing needs an open before it (section 2.4.3).
        if state is ConnectionState.HDR_EXCH and error is None:
            give_up(connection, None)
            return
        if state is ConnectionState.HDR_EXCH:
            # as if the peer's open had come, so that after our close only the peer's is awaited
            connection.state = int(ConnectionState.OPEN_RCVD)
        send_open(connection)
        if connection.phase == OVER_PHASE:
            return
        state = ConnectionState.OPENED
    if state not in (ConnectionState.OPENED, ConnectionState.OPEN_SENT, ConnectionState.OPEN_PIPE):
        give_up(connection, error)
        return
    wire_error = beginning.wire_error(error)

    def say_close() -> None:
        move(connection, Act.SEND_CLOSE if error is None else Act.SEND_CLOSE_ERROR)
        connection.closed_at = connection.turn.now
        limit = connection.remote_max_frame_size
        write(connection, beginning.encode_fitting(limit, 0, Close(error=wire_error)))

    closed = ConnectionClosed(wire_error, False)
    beginning.lose_sessions(connection, wire_error, by_peer=False, end=say_close, closed=closed)
    if error is not None:
        # What follows may not even be frames; the shell reads and discards it.
        connection.phase = OVER_PHASE
        connection.finished = True


def give_up(connection: Connection, error: AmqpError | None) -> None:
    """End a connection that was never open, or whose peer does not answer our close."""
    was_over = connection.phase == OVER_PHASE or connection.state in CLOSED_STATES
    connection.phase = OVER_PHASE
    connection.state = int(ConnectionState.END)
    connection.finished = True
    connection.outbox.touch()
    if not was_over:
        wire_error = beginning.wire_error(error)
        connection.handler.event_received(connection, ConnectionClosed(wire_error, False))


def lose(connection: Connection) -> None:
    """End a connection whose socket is gone; its sessions and links are lost with it."""
    connection.account.closed()
    connection.outbox.close()
    if connection.phase == OVER_PHASE:
        return
    was_closing = connection.state in CLOSED_STATES
    description = SOCKET_CLOSED
    if connection.is_client and connection.phase == SASL_PHASE and connection.mechanism is None:
        # section 5.3.3.1 allows no empty list of mechanisms, so this is how a server says it
        description = NO_MECHANISM
    lost = Error(condition=Symbol(Condition.CONNECTION_FORCED), description=description)

    def end() -> None:
        # the lost links may have written something to each other
        connection.outbox.close()
        connection.phase = OVER_PHASE
        connection.state = int(ConnectionState.END)
        connection.finished = True

    closed = None if was_closing else ConnectionClosed(lost, True)
    beginning.lose_sessions(connection, lost, by_peer=True, end=end, closed=closed)


# Time (section 2.4.5).


def tick(connection: Connection) -> None:
    """Send heartbeats; close if the peer is silent; give up on a slow handshake or close."""
    now = connection.turn.now
    settings = connection.settings
    if connection.phase == OVER_PHASE:
        return
    limit = settings.handshake_timeout_s
    if connection.state in CLOSED_STATES:
        # Nothing may follow a close, not even a heartbeat; and the answer to it may never come.
        if limit and now - connection.closed_at > limit:
            give_up(connection, None)
        return
    if connection.remote_open is None or connection.local_open is None:
        if limit and now - connection.started_at > limit:
            give_up(
                connection,
                AmqpError(Condition.CONNECTION_FORCED, f"no open within {limit:g} s"),
            )
        return
    unsent = connection.outbox.output.size()
    if not unsent and connection.remote_idle_s:
        # unsent output needs no heartbeat: the socket is full, and the peer has octets to read
        if now - connection.last_sent >= connection.remote_idle_s / 2:
            write(connection, encode_frame(0))
    if connection.outbox.congested:
        # Reading may wait until the peer reads. If it takes our octets meanwhile, it is alive.
        connection.last_received = max(connection.last_received, connection.last_sent)
    # an incomplete frame is not a sign of life, but each of its octets extends the limit
    patience_s = settings.idle_timeout_s
    if not connection.is_behind:
        patience_s += len(connection.kept) / LEAST_BYTES_PER_S
    if settings.idle_timeout_s and now - connection.last_received > patience_s:
        close(
            connection,
            AmqpError(
                Condition.RESOURCE_LIMIT_EXCEEDED,
                f"no whole frame was received for {patience_s:.3g} s",
            ),
        )
