"""Send each protocol header as a WebSocket message of its own.

The binding demands this for the headers of SASL and AMQP (sections 2.2.1 and 2.3). The frames that
follow may be divided among messages in any way (section 2.4).
"""

from __future__ import annotations

from typing import Final

from router.amqp.framing import AMQP_HEADER

_MARK: Final = AMQP_HEADER[:4]
_SIZE: Final = len(AMQP_HEADER)
_FIRST_OCTETS: Final = 4


class HeaderSplitter:
    """Splitter of a connection's octets into WebSocket messages, one for each protocol header.

    After the AMQP header, which is the last one, `is_done` is True, and nothing is split any more.
    """

    def __init__(self) -> None:
        self.is_done = False
        # the start of a header or frame, if it is too short to tell which
        self._kept = b""
        # octets of the current frame that are still to come
        self._left = 0

    def split(self, octets: bytes) -> list[bytes]:
        """Return the messages for the next octets; an incomplete header is kept for later."""
        if self.is_done:
            return [octets]
        messages: list[bytes] = []
        octets, frames = self._kept + octets, b""
        self._kept = b""
        while octets and not self.is_done:
            if self._left:
                frames += octets[: self._left]
                passed = min(self._left, len(octets))
                self._left -= passed
                octets = octets[passed:]
            elif len(octets) < _FIRST_OCTETS or (octets.startswith(_MARK) and len(octets) < _SIZE):
                self._kept, octets = octets, b""
            elif octets.startswith(_MARK):
                if frames:
                    messages.append(frames)
                    frames = b""
                messages.append(octets[:_SIZE])
                # the protocol id differs for SASL
                self.is_done = octets[_FIRST_OCTETS] == AMQP_HEADER[_FIRST_OCTETS]
                octets = octets[_SIZE:]
            else:
                self._left = max(_FIRST_OCTETS, int.from_bytes(octets[:_FIRST_OCTETS], "big"))
        if frames or octets:
            messages.append(frames + octets)
        return messages
