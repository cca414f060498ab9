"""State tables of connections, sessions and links, with every transition that is allowed.

A row has a state, an action (a frame sent or received) and the state that follows. A transition
without a row is not allowed and raises amqp:illegal-state. If the frame was sent, this is our bug;
if it was received, it is the peer's. TRANSFER, FLOW and DISPOSITION change no state; the data plane
checks `MAPPED` and `ATTACHED` directly instead of walking a table for every message.

In the specification's words (part 2, sections 2.4.6, 2.5.5 and 2.6.3): both peers send at the same
time, so each of open, begin and attach passes through "sent" and "received" in either order. After
close, end or detach has been *sent with an error*, the peer may continue to send. That is
DISCARDING, where everything but the answering close, end or detach is ignored.
"""

from __future__ import annotations

import enum

from router.errors import AmqpError, Scope


class ConnectionState(enum.IntEnum):
    """State of a connection endpoint, from the first octet to the last (section 2.4.6)."""

    START = 0
    HDR_RCVD = 1
    HDR_SENT = 2
    HDR_EXCH = 3
    OPEN_PIPE = 4
    OC_PIPE = 5
    OPEN_RCVD = 6
    OPEN_SENT = 7
    CLOSE_PIPE = 8
    OPENED = 9
    CLOSE_RCVD = 10
    CLOSE_SENT = 11
    DISCARDING = 12
    END = 13


class SessionState(enum.IntEnum):
    """State of a session endpoint (section 2.5.5)."""

    UNMAPPED = 0
    BEGIN_SENT = 1
    BEGIN_RCVD = 2
    MAPPED = 3
    END_SENT = 4
    END_RCVD = 5
    DISCARDING = 6


class LinkState(enum.IntEnum):
    """State of a link endpoint between attach and detach (section 2.6.3)."""

    DETACHED = 0
    ATTACH_SENT = 1
    ATTACH_RCVD = 2
    ATTACHED = 3
    DETACH_SENT = 4
    DETACH_RCVD = 5
    DISCARDING = 6


class Settling(enum.IntEnum):
    """Way to settle an unsettled delivery towards its sender (sections 2.7.5 and 2.8.3)."""

    # we settle as soon as there is an outcome
    FIRST = 0
    # the sender settles after receiving the outcome, and we settle after the sender
    SECOND = 1
    # the outcome has been sent to the sender: only its settlement is awaited
    TOLD = 2
    # not by us: the link's other end is a peer, whose dispositions are passed on unchanged
    ROUTED = 3


class Act(enum.Enum):
    """Action on an endpoint: a frame sent or received; `_ERROR` means a frame with an error."""

    SEND_HEADER = enum.auto()
    RECV_HEADER = enum.auto()
    SEND_OPEN = enum.auto()
    RECV_OPEN = enum.auto()
    SEND_CLOSE = enum.auto()
    SEND_CLOSE_ERROR = enum.auto()
    RECV_CLOSE = enum.auto()
    SEND_BEGIN = enum.auto()
    RECV_BEGIN = enum.auto()
    SEND_END = enum.auto()
    SEND_END_ERROR = enum.auto()
    RECV_END = enum.auto()
    SEND_ATTACH = enum.auto()
    RECV_ATTACH = enum.auto()
    SEND_DETACH = enum.auto()
    SEND_DETACH_ERROR = enum.auto()
    RECV_DETACH = enum.auto()


_C, _S, _L = ConnectionState, SessionState, LinkState

CONNECTION_TABLE: dict[tuple[ConnectionState, Act], ConnectionState] = {
    (_C.START, Act.SEND_HEADER): _C.HDR_SENT,
    (_C.START, Act.RECV_HEADER): _C.HDR_RCVD,
    (_C.HDR_RCVD, Act.SEND_HEADER): _C.HDR_EXCH,
    (_C.HDR_SENT, Act.RECV_HEADER): _C.HDR_EXCH,
    (_C.HDR_SENT, Act.SEND_OPEN): _C.OPEN_PIPE,
    (_C.OPEN_PIPE, Act.RECV_HEADER): _C.OPEN_SENT,
    (_C.OPEN_PIPE, Act.SEND_CLOSE): _C.OC_PIPE,
    (_C.OPEN_PIPE, Act.SEND_CLOSE_ERROR): _C.OC_PIPE,
    (_C.OC_PIPE, Act.RECV_HEADER): _C.CLOSE_PIPE,
    (_C.HDR_EXCH, Act.SEND_OPEN): _C.OPEN_SENT,
    (_C.HDR_EXCH, Act.RECV_OPEN): _C.OPEN_RCVD,
    (_C.OPEN_SENT, Act.RECV_OPEN): _C.OPENED,
    (_C.OPEN_SENT, Act.SEND_CLOSE): _C.CLOSE_PIPE,
    (_C.OPEN_SENT, Act.SEND_CLOSE_ERROR): _C.CLOSE_PIPE,
    (_C.CLOSE_PIPE, Act.RECV_OPEN): _C.CLOSE_SENT,
    (_C.CLOSE_PIPE, Act.RECV_CLOSE): _C.END,
    (_C.OPEN_RCVD, Act.SEND_OPEN): _C.OPENED,
    (_C.OPENED, Act.SEND_CLOSE): _C.CLOSE_SENT,
    (_C.OPENED, Act.SEND_CLOSE_ERROR): _C.DISCARDING,
    (_C.OPENED, Act.RECV_CLOSE): _C.CLOSE_RCVD,
    (_C.CLOSE_RCVD, Act.SEND_CLOSE): _C.END,
    (_C.CLOSE_RCVD, Act.SEND_CLOSE_ERROR): _C.END,
    (_C.CLOSE_SENT, Act.RECV_CLOSE): _C.END,
    (_C.DISCARDING, Act.RECV_CLOSE): _C.END,
}

SESSION_TABLE: dict[tuple[SessionState, Act], SessionState] = {
    (_S.UNMAPPED, Act.SEND_BEGIN): _S.BEGIN_SENT,
    (_S.UNMAPPED, Act.RECV_BEGIN): _S.BEGIN_RCVD,
    (_S.BEGIN_SENT, Act.RECV_BEGIN): _S.MAPPED,
    (_S.BEGIN_RCVD, Act.SEND_BEGIN): _S.MAPPED,
    (_S.MAPPED, Act.SEND_END): _S.END_SENT,
    (_S.MAPPED, Act.SEND_END_ERROR): _S.DISCARDING,
    (_S.MAPPED, Act.RECV_END): _S.END_RCVD,
    (_S.END_SENT, Act.RECV_END): _S.UNMAPPED,
    (_S.DISCARDING, Act.RECV_END): _S.UNMAPPED,
    (_S.END_RCVD, Act.SEND_END): _S.UNMAPPED,
    (_S.END_RCVD, Act.SEND_END_ERROR): _S.UNMAPPED,
}

LINK_TABLE: dict[tuple[LinkState, Act], LinkState] = {
    (_L.DETACHED, Act.SEND_ATTACH): _L.ATTACH_SENT,
    (_L.DETACHED, Act.RECV_ATTACH): _L.ATTACH_RCVD,
    (_L.ATTACH_SENT, Act.RECV_ATTACH): _L.ATTACHED,
    (_L.ATTACH_RCVD, Act.SEND_ATTACH): _L.ATTACHED,
    # A peer may detach a link that it attached before our answer left (section 2.6.3).
    (_L.ATTACH_RCVD, Act.RECV_DETACH): _L.DETACH_RCVD,
    (_L.ATTACH_SENT, Act.SEND_DETACH): _L.DETACH_SENT,
    (_L.ATTACH_SENT, Act.SEND_DETACH_ERROR): _L.DISCARDING,
    (_L.ATTACHED, Act.SEND_DETACH): _L.DETACH_SENT,
    (_L.ATTACHED, Act.SEND_DETACH_ERROR): _L.DISCARDING,
    (_L.ATTACHED, Act.RECV_DETACH): _L.DETACH_RCVD,
    # The answer to our attach may cross our detach.
    (_L.DETACH_SENT, Act.RECV_ATTACH): _L.DETACH_SENT,
    (_L.DISCARDING, Act.RECV_ATTACH): _L.DISCARDING,
    (_L.DETACH_SENT, Act.RECV_DETACH): _L.DETACHED,
    (_L.DISCARDING, Act.RECV_DETACH): _L.DETACHED,
    (_L.DETACH_RCVD, Act.SEND_DETACH): _L.DETACHED,
    (_L.DETACH_RCVD, Act.SEND_DETACH_ERROR): _L.DETACHED,
}


def next_connection_state(state: int, act: Act) -> ConnectionState:
    """Return the connection's state after `act`; raise amqp:illegal-state at connection scope."""
    following = CONNECTION_TABLE.get((ConnectionState(state), act))
    if following is None:
        raise _illegal("connection", ConnectionState(state).name, act, Scope.CONNECTION)
    return following


def next_session_state(state: int, act: Act) -> SessionState:
    """Return the session's state after `act`; raise amqp:illegal-state at connection scope.

    A begin or end in the wrong state means that the peers disagree about which channels are in use.
    So the error is the connection's, not the session's.
    """
    following = SESSION_TABLE.get((SessionState(state), act))
    if following is None:
        raise _illegal("session", SessionState(state).name, act, Scope.CONNECTION)
    return following


def next_link_state(state: int, act: Act) -> LinkState:
    """Return the link's state after `act`; raise amqp:illegal-state at session scope."""
    following = LINK_TABLE.get((LinkState(state), act))
    if following is None:
        raise _illegal("link", LinkState(state).name, act, Scope.SESSION)
    return following


def _illegal(what: str, state: str, act: Act, scope: Scope) -> AmqpError:
    happened = act.name.replace("_", " ").lower()
    return AmqpError("amqp:illegal-state", f"{happened} while the {what} is {state}", scope)
