"""What a link is called wherever operators meet it: in the log, in traces and in management."""

from __future__ import annotations

from typing import Any

from router.engine.link import OutgoingLink


def link_identity(link: Any) -> str:
    """The number of its connection, the channel of its session and its handle, with dots between.

    No two links that are attached at a time have the same.
    """
    session = link.session
    return f"{session.connection.number}.{session.channel}.{link.handle}"


def link_address(link: Any) -> str | None:
    """Return the address of a link as we granted it, which names dynamic nodes, or else as it was
    asked for; None for an anonymous sender.
    """
    is_outgoing = isinstance(link, OutgoingLink)
    for attach in (link.attach, link.remote_attach):
        terminus = None if attach is None else attach.source if is_outgoing else attach.target
        address = getattr(terminus, "address", None)
        if address is not None:
            return str(address)
    return None
