"""Names for links, as operators see them in the log, in traces and in management."""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.engine.link import OutgoingLink

if TYPE_CHECKING:
    from router.engine.link import Link


def link_identity(link: Link) -> str:
    """Return a link's connection number, channel and handle, joined by dots.

    No two links that are attached at the same time have the same identity.
    """
    session = link.session
    return f"{session.connection.number}.{session.channel}.{link.handle}"


def link_address(link: Link) -> str | None:
    """Return the address of a link; None if it has none, for example as an anonymous sender.

    An address in our own attach, such as the name of a dynamic node, takes precedence over the
    address in the peer's attach.
    """
    is_outgoing = isinstance(link, OutgoingLink)
    for attach in (link.attach, link.remote_attach):
        terminus = None if attach is None else attach.source if is_outgoing else attach.target
        address = getattr(terminus, "address", None)
        if address is not None:
            return str(address)
    return None
