"""Events: what happens rarely on a connection, as the engine reports it to the handler.

Events are passed in the order of the wire, after the engine has changed its own state. Deliveries
are too many for events, and are passed by direct calls instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from router.amqp.performatives import Error, Open
from router.engine.link import Link
from router.errors import AmqpError

if TYPE_CHECKING:
    from router.engine.session import Session


@attrs.frozen
class SaslInitReceived:
    """Event: a client has sent its SASL init.

    Answer with `connection.sasl_outcome` or `sasl.challenge`.
    """

    mechanism: str
    initial_response: bytes = attrs.field(repr=False)
    hostname: str | None


@attrs.frozen
class SaslResponseReceived:
    """Event: a client has answered `sasl.challenge`; answer as to its init."""

    response: bytes = attrs.field(repr=False)


@attrs.frozen
class SaslInitDue:
    """Event: as a client, SCRAM is to be used; answer with `sasl.send_init`."""

    mechanism: str


@attrs.frozen
class SaslChallengeReceived:
    """Event: a server has sent a challenge; answer with `sasl.respond`."""

    challenge: bytes = attrs.field(repr=False)


@attrs.frozen
class SaslSuccessReceived:
    """Event: a server has accepted a login by SCRAM; check its proof, then `sasl.proceed`."""

    proof: bytes = attrs.field(repr=False)


LoginEvent = SaslInitDue | SaslChallengeReceived | SaslSuccessReceived
"""Events of this side's login by SCRAM at a server."""
LOGIN_EVENTS = (SaslInitDue, SaslChallengeReceived, SaslSuccessReceived)


@attrs.frozen
class OpenReceived:
    """Event: a peer that connected to us has sent its open; `opening.refuse` can refuse it."""

    remote_open: Open


@attrs.frozen
class ConnectionRefused:
    """Event: we have refused a peer's open with an error, which is sent to the peer.

    A `ConnectionClosed` event follows.
    """

    remote_open: Open
    error: AmqpError


@attrs.frozen
class OpenRefused:
    """Event: a peer that we connected to announces in its open that it refuses the connection.

    No `ConnectionOpened` event follows. The peer gives the reason in its close.
    """

    remote_open: Open


@attrs.frozen
class ConnectionOpened:
    """Event: the connection is open, because both opens have been exchanged."""

    remote_open: Open


@attrs.frozen
class ConnectionClosed:
    """Event: the connection has ended: it was closed by either side, failed, or lost its socket.

    `error` is None for an orderly close. `by_peer` says whether the peer ended the connection.
    """

    error: Error | None
    by_peer: bool


@attrs.frozen
class SessionBegun:
    """Event: a session has begun; both begins have been exchanged."""

    session: Session


@attrs.frozen
class SessionEnded:
    """Event: a session has ended; `LinkDetached` events for its links came before.

    `by_peer` says whether the peer ended the session or its connection. If the connection ended,
    the error is only in `ConnectionClosed`.
    """

    session: Session
    error: Error | None
    by_peer: bool = False


@attrs.frozen
class LinkAttachReceived:
    """Event: the peer has sent an attach; answer with `attaching.accept` or `attaching.refuse`."""

    link: Link


@attrs.frozen
class LinkRefused:
    """Event: we have refused a peer's attach with an error, which is sent to the peer."""

    link: Link
    error: AmqpError


@attrs.frozen
class LinkStolen:
    """Event: `link` steals the name of the link `previous`, which is about to be closed.

    A `LinkDetached` event for `previous` follows, on its connection.
    """

    link: Link
    previous: Link


@attrs.frozen
class LinkStealingRefused:
    """Event: `link` is refused because its name belongs to `holder`, which the peer may not steal.

    A `LinkRefused` event follows.
    """

    link: Link
    holder: Link


@attrs.frozen
class LinkSuspended:
    """Event: a link is suspended; our terminus is kept, with its unsettled deliveries.

    `unsettled` is how many they are. A `LinkDetached` event follows.
    """

    link: Link
    unsettled: int


@attrs.frozen
class LinkResumed:
    """Event: an attach resumes the link `previous`, which was suspended or stolen.

    `unsettled` is how many deliveries are in doubt. A `LinkAttachReceived` event follows.
    """

    link: Link
    previous: Link
    unsettled: int


@attrs.frozen
class FlowIgnored:
    """Event: a flow was ignored because the peer had already detached its link, `link_id`.

    The flow is a late answer to a drain of ours.
    """

    session: Session
    link_id: str


@attrs.frozen
class LinkAttached:
    """Event: the peer has answered our attach; if the answer lacks a terminus, a detach follows."""

    link: Link


@attrs.frozen
class LinkDetached:
    """Event: a link was detached or closed, or was lost with its session or connection.

    `closed` distinguishes a close from a detach. `lost` says that there was neither; `error` is
    then the reason why the session or connection ended. `by_peer` says whether the peer ended the
    link, session or connection.
    """

    link: Link
    closed: bool
    error: Error | None
    lost: bool = False
    by_peer: bool = False


Event = (
    SaslInitReceived
    | SaslResponseReceived
    | SaslInitDue
    | SaslChallengeReceived
    | SaslSuccessReceived
    | OpenReceived
    | ConnectionRefused
    | OpenRefused
    | ConnectionOpened
    | ConnectionClosed
    | SessionBegun
    | SessionEnded
    | LinkAttachReceived
    | LinkRefused
    | LinkStolen
    | LinkStealingRefused
    | LinkSuspended
    | LinkResumed
    | FlowIgnored
    | LinkAttached
    | LinkDetached
)
"""Any event of a connection."""
