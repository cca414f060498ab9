"""Placeholders for the pump of a connection that has ended."""

from __future__ import annotations

from typing import Final, Protocol

from router.engine import events
from router.engine.connection import Connection


class EndingPump(Protocol):
    """Interface of a pump that handles the last events of its connection."""

    connection: Connection

    def event_received(self, event: object) -> None:
        """Handle an event of the connection."""


class Gone:
    """Placeholder for the pump of a connection that has ended."""

    def send(self) -> None:
        """Do nothing: nothing can be sent any more."""

    def read_again(self) -> None:
        """Do nothing: nothing will be read any more."""

    def event_received(self, event: object) -> None:
        """Do nothing: no pump is left to log the event."""


GONE: Final = Gone()


class Ending(Gone):
    """Placeholder for the pump of an ended connection, while its last links are being ended."""

    def __init__(self, pump: EndingPump) -> None:
        self._pump = pump

    def event_received(self, event: object) -> None:
        """Pass the event to the pump; the last event is the close of the connection."""
        self._pump.event_received(event)
        if isinstance(event, events.ConnectionClosed):
            # break the cycle
            self._pump.connection.owner = GONE
