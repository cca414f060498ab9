"""What a link is called wherever operators meet it: in the log, in traces and in management."""

from __future__ import annotations

from typing import Any


def link_identity(link: Any) -> str:
    """The number of its connection, the channel of its session and its handle, with dots between.

    No two links that are attached at a time have the same.
    """
    session = link.session
    return f"{session.connection.number}.{session.channel}.{link.handle}"
