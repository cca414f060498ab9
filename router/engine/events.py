"""What rarely happens on a connection, in the past tense; deliveries are calls, not events.

Each event is handed to the handler in the order of the wire, once the engine's own state says it.
"""

from __future__ import annotations

from typing import Any

import attrs

from router.amqp.performatives import Error, Open
from router.engine.link import Link
from router.errors import AmqpError


@attrs.frozen
class SaslInitReceived:
    """A client chose a mechanism; answer with `connection.sasl_outcome` (section 5.3.2)."""

    mechanism: str
    initial_response: bytes
    hostname: str | None


@attrs.frozen
class OpenReceived:
    """A peer that came to us has sent its open; `opening.refuse` refuses it."""

    remote_open: Open


@attrs.frozen
class ConnectionRefused:
    """The answer to a peer's open is a refusal, for the reason that the peer is told.

    `ConnectionClosed` follows.
    """

    remote_open: Open
    error: AmqpError


@attrs.frozen
class OpenRefused:
    """The open of a peer that we came to says that it lets nobody in; its close follows, with the
    reason, and `ConnectionOpened` does not.
    """

    remote_open: Open


@attrs.frozen
class ConnectionOpened:
    """Both opens have passed."""

    remote_open: Open


@attrs.frozen
class ConnectionClosed:
    """The connection is over: closed by either side, failed, or its socket lost.

    `error` is None for an orderly close; `by_peer` says who began it.
    """

    error: Error | None
    by_peer: bool


@attrs.frozen
class SessionBegun:
    """Both begins have passed."""

    session: Any


@attrs.frozen
class SessionEnded:
    """A session is over; its links were reported as detached before.

    `by_peer` says who ended it, or the connection that it was lost with; of that the error is told
    by `ConnectionClosed`.
    """

    session: Any
    error: Error | None
    by_peer: bool = False


@attrs.frozen
class LinkAttachReceived:
    """The peer attaches a link; answer with `links.accept` or `links.refuse`."""

    link: Link


@attrs.frozen
class LinkRefused:
    """The answer to a peer's attach was a refusal, for the reason that the peer is told."""

    link: Link
    error: AmqpError


@attrs.frozen
class LinkStolen:
    """A peer's link is attached, and takes its name from `previous`, which is about to be closed.

    `LinkDetached` follows, on the connection of `previous`.
    """

    link: Link
    previous: Link


@attrs.frozen
class LinkStealingRefused:
    """A peer's attach has the name of a link, `holder`, that it may not steal; `LinkRefused`
    follows.
    """

    link: Link
    holder: Link


@attrs.frozen
class LinkSuspended:
    """A link goes, and our source or target stays, with so many deliveries that are not settled.

    `LinkDetached` follows.
    """

    link: Link
    unsettled: int


@attrs.frozen
class LinkResumed:
    """The peer attaches a link again that was `previous` before, and is suspended or stolen now.

    So many deliveries are in doubt. `LinkAttachReceived` follows.
    """

    link: Link
    previous: Link
    unsettled: int


@attrs.frozen
class FlowIgnored:
    """A flow has named a handle whose link, `link_id`, the peer had detached already: it answers a
    drain of ours too late.
    """

    session: Any
    link_id: str


@attrs.frozen
class LinkAttached:
    """The peer answered our own attach; a terminus of None means that a detach follows."""

    link: Link


@attrs.frozen
class LinkDetached:
    """A link is over or suspended: by the peer, by us, or with its session or connection.

    `closed` tells a close from a mere detach. `lost` says that no detach came at all: then `error`
    is why its session or connection ended. `by_peer` says who ended the link, or what it was lost
    with.
    """

    link: Link
    closed: bool
    error: Error | None
    lost: bool = False
    by_peer: bool = False
