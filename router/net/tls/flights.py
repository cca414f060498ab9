"""Collect the octets of a TLS handshake into whole records.

Only whole records make a peer compute anything, and only those of the handshake itself may take
long. Octets of an incomplete record are held back, which costs next to nothing.
"""

from __future__ import annotations

from typing import Final

import attrs

from router.net.tls.channel import RECORD_BYTES, RECORD_OVERHEAD_BYTES, TLS_HEADER

# Octets before the content of a record, and the content types (RFC 8446, section 5.1).
RECORD_HEADER_BYTES: Final = 5
_CONTENT_TYPES: Final = range(20, 24)
_HANDSHAKE: Final = 22


@attrs.frozen
class Flight:
    """Octets to process next, and whether that may take long, as computations of a handshake do."""

    octets: bytes
    is_long: bool


class Flights:
    """Octets that are received during a TLS handshake.

    Octets that cannot be part of a record are passed on immediately, for OpenSSL to refuse them, or
    because the peer uses no TLS.
    """

    def __init__(self) -> None:
        # an incomplete record, or an incomplete protocol header; at most as long as a record
        self._held = b""
        # whether the protocol header that may precede the first record has been passed on
        self._is_begun = False

    def add(self, octets: bytes) -> Flight:
        """Add received octets; return those that can be processed now, possibly none."""
        octets = self._held + octets
        at, is_long = 0, False
        if not self._is_begun:
            if len(octets) < len(TLS_HEADER) and TLS_HEADER.startswith(octets):
                self._held = octets
                return Flight(b"", is_long=False)
            self._is_begun = True
            if octets.startswith(TLS_HEADER):
                at = len(TLS_HEADER)
        while at < len(octets):
            size = _record_size(octets, at)
            if size is None:
                at = len(octets)
            elif at + size > len(octets):
                break
            else:
                is_long = is_long or octets[at] == _HANDSHAKE
                at += size
        self._held = octets[at:]
        return Flight(octets[:at], is_long)

    def take_rest(self) -> bytes:
        """Remove and return the octets that are held back."""
        held, self._held = self._held, b""
        return held


def _record_size(octets: bytes, at: int) -> int | None:
    """Return the octets that a record has or, if that is not known yet, at least has.

    Return None if there is no record at `at`, or one that is longer than allowed.
    """
    if octets[at] not in _CONTENT_TYPES:
        return None
    content = octets[at + 3 : at + RECORD_HEADER_BYTES]
    if len(content) < 2:
        return RECORD_HEADER_BYTES
    size = RECORD_HEADER_BYTES + int.from_bytes(content)
    return size if size <= RECORD_BYTES + RECORD_OVERHEAD_BYTES else None
