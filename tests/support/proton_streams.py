"""Large messages that Proton sends and receives piece by piece, never many octets at once."""

from __future__ import annotations

import hashlib

from support.proton_peers import ProtonSender

CHUNK = 256 * 1024


class Stream:
    """Large message that is sent piece by piece, never many octets at once."""

    def __init__(self, sender: ProtonSender, size: int) -> None:
        self.sender = sender
        self.left = size
        self.digest = hashlib.blake2b()
        self.sent = sender.begin()
        self.count = 0
        self._put(b"\x00\x53\x75\xb0" + size.to_bytes(4, "big"))

    def _put(self, octets: bytes) -> None:
        self.digest.update(octets)
        self.sender.link.stream(octets)

    def step(self) -> None:
        """Give proton another piece, if the ones before have left."""
        while self.left and self.sender.link.session.outgoing_bytes < 4 * CHUNK:
            # each piece is another one, so that none can be lost or doubled unseen
            piece = (self.count.to_bytes(8, "big") * (CHUNK // 8))[: self.left]
            self.count += 1
            self.left -= len(piece)
            self._put(piece)
            if not self.left:
                self.sender.link.advance()


class Taking:
    """Receiving end of a stream, which keeps only a digest and a few observations."""

    def __init__(self) -> None:
        self.digest = hashlib.blake2b()
        self.octets = 0

    def take(self, part: bytes) -> None:
        """Take in a part."""
        self.digest.update(part)
        self.octets += len(part)
