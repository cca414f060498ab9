"""Events: rare occurrences on a connection; deliveries are passed by direct calls instead.

Each event is handed to the handler in the order of the wire, after the engine's own state has
changed.
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
    """Mechanism chosen by a client; answer with `connection.sasl_outcome` (section 5.3.2)."""

    mechanism: str
    initial_response: bytes
    hostname: str | None


@attrs.frozen
class OpenReceived:
    """Open of a peer that dialled us; `opening.refuse` refuses it."""

    remote_open: Open


@attrs.frozen
class ConnectionRefused:
    """Refusal of a peer's open, with the error that is sent to the peer.

    `ConnectionClosed` follows.
    """

    remote_open: Open
    error: AmqpError


@attrs.frozen
class OpenRefused:
    """Open of a peer that we dialled, announcing a refusal.

    There is no `ConnectionOpened`. The reason comes with the peer's close.
    """

    remote_open: Open


@attrs.frozen
class ConnectionOpened:
    """Connection that is open: both opens have been exchanged."""

    remote_open: Open


@attrs.frozen
class ConnectionClosed:
    """End of a connection: closed by either side, failed, or its socket lost.

    `error` is None for an orderly close; `by_peer` says whether the peer ended the connection.
    """

    error: Error | None
    by_peer: bool


@attrs.frozen
class SessionBegun:
    """Session that has begun: both begins have been exchanged."""

    session: Session


@attrs.frozen
class SessionEnded:
    """End of a session; its links were reported as detached before.

    `by_peer` says whether the peer ended the session, or the connection with which it was lost. In
    the latter case only `ConnectionClosed` has the error.
    """

    session: Session
    error: Error | None
    by_peer: bool = False


@attrs.frozen
class LinkAttachReceived:
    """Attach from the peer; answer with `attaching.accept` or `attaching.refuse`."""

    link: Link


@attrs.frozen
class LinkRefused:
    """Refusal of a peer's attach, with the error that is sent to the peer."""

    link: Link
    error: AmqpError


@attrs.frozen
class LinkStolen:
    """Attached link that takes its name from `previous`, which is about to be closed.

    `LinkDetached` follows, on the connection of `previous`.
    """

    link: Link
    previous: Link


@attrs.frozen
class LinkStealingRefused:
    """Attach that is refused because its name belongs to `holder`, which the peer may not steal.

    `LinkRefused` follows.
    """

    link: Link
    holder: Link


@attrs.frozen
class LinkSuspended:
    """Suspension of a link that has ended: our terminus stays, with its unsettled deliveries.

    `LinkDetached` follows.
    """

    link: Link
    unsettled: int


@attrs.frozen
class LinkResumed:
    """Attach that resumes the link `previous`, which was suspended or stolen.

    `unsettled` is how many deliveries are in doubt. `LinkAttachReceived` follows.
    """

    link: Link
    previous: Link
    unsettled: int


@attrs.frozen
class FlowIgnored:
    """Flow for a handle whose link, `link_id`, the peer had already detached.

    The flow is a late answer to a drain of ours.
    """

    session: Session
    link_id: str


@attrs.frozen
class LinkAttached:
    """Answer of the peer to our attach; a terminus of None means that a detach follows."""

    link: Link


@attrs.frozen
class LinkDetached:
    """End or suspension of a link: by the peer, by us, or with its session or connection.

    `closed` distinguishes a close from a mere detach. `lost` says that there was no detach: then
    `error` is the reason for which the session or connection ended. `by_peer` says whether the peer
    ended the link, or the session or connection with which it was lost.
    """

    link: Link
    closed: bool
    error: Error | None
    lost: bool = False
    by_peer: bool = False


Event = (
    SaslInitReceived
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
