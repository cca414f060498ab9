"""TLS layer of one connection, over memory (section 5.2).

    octets of the socket -> receive -> octets of AMQP
    octets of AMQP -> encrypt -> take_output -> octets for the socket

Nothing here reads or writes a socket. A server decides by the first octets whether the peer begins
with TLS, asks for TLS by the protocol header with id 2, or uses no TLS.
"""

from __future__ import annotations

import ssl
from enum import Enum
from typing import Final, cast

import attrs

TLS_HEADER: Final = b"AMQP\x02\x01\x00\x00"
"""Protocol header that asks for TLS, and with which a server agrees (section 5.2.1)."""

# The first octet of TLS: a handshake record.
_HANDSHAKE: Final = 0x16
# A TLS record: its payload, and the most that encryption adds.
RECORD_BYTES: Final = 16 * 1024
RECORD_OVERHEAD_BYTES: Final = 2048 + 5
# How many octets are passed to OpenSSL at a time: at most a record. Its memory grows to this and is
# not given back. After many octets without data, it is the lower number: a record that changes the
# keys has 27 octets, and takes 10 microseconds.
PIECE_BYTES: Final = RECORD_BYTES + RECORD_OVERHEAD_BYTES
LEAN_PIECE_BYTES: Final = 256
# One octet in so many may be overhead of the records with data.
OVERHEAD_PART: Final = 16
# How many octets of output are encrypted before they are sent, and how many may be unsent before
# nothing is received any more: OpenSSL answers changes of keys whether or not the peer reads.
OUTPUT_BYTES: Final = 4 * RECORD_BYTES
CONGESTED_BYTES: Final = 2 * OUTPUT_BYTES
# Pairs of errors of OpenSSL, as parts of their texts, and what they mean for an operator.
_REASONS: Final = (
    ("WRONG_VERSION_NUMBER", "the peer does not speak TLS"),
    ("HTTP_REQUEST", "the peer does not speak TLS, but HTTP"),
    ("NO_SHARED_CIPHER", "the peer supports none of the allowed ciphers"),
    ("UNSUPPORTED_PROTOCOL", "the peer supports none of the allowed TLS versions"),
    ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "the peer sent no certificate, which is required"),
    ("UNKNOWN_CA", "the peer does not trust this side's certificate (alert unknown_ca)"),
    ("BAD_CERTIFICATE", "the peer refuses this side's certificate (alert bad_certificate)"),
    ("CERTIFICATE_REQUIRED", "the peer requires a certificate (alert certificate_required)"),
    ("PROTOCOL_VERSION", "the peer supports none of the allowed TLS versions"),
)
# Codes of OpenSSL for revocation lists that cannot be used; its own texts do not say what to do.
_CRL_REASONS: Final = {
    3: "crlFile has no revocation list of the authority that signed it (unable to get certificate "
    "CRL)",
    11: "the revocation list of its authority in crlFile is not valid yet (CRL is not yet valid)",
    12: "the revocation list of its authority in crlFile has expired, so nobody with such a "
    "certificate is let in until there is a new one (CRL has expired)",
}


class TlsFailed(Exception):
    """Failure of TLS; the text says why, for operators. The connection cannot be used further.

    With `is_refusal`, one side does not accept the other's certificate, or misses it.
    """

    def __init__(self, reason: str, *, is_refusal: bool = False) -> None:
        self.is_refusal = is_refusal
        super().__init__(reason)


class ServerSide(ssl.SSLObject):
    """Server's side of TLS, with the host name that the peer asked for (SNI)."""

    requested_host: str | None = None


class Phase(Enum):
    """Phase of a connection's TLS layer."""

    OPENING = "opening"
    """The first octets are awaited, which decide whether TLS is used."""
    HANDSHAKE = "handshake"
    SECURED = "secured"
    PLAIN = "plain"
    """The peer uses no TLS, which this side allows."""
    FAILED = "failed"


@attrs.frozen
class Security:
    """Security of a connection: the TLS version, and the cipher with the bits of its key."""

    version: str
    cipher: str
    bits: int


class TlsChannel:
    """TLS layer of one connection.

    `context` has the certificates and rules. A client gives the `server_hostname` that it asks for
    (SNI) and, if the context says so, verifies. A server may allow peers that use no TLS
    (`allows_plain`). With `upgrade`, a client asks for TLS by a protocol header first; a server
    always accepts that.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        *,
        server_hostname: str | None = None,
        allows_plain: bool = False,
        upgrade: bool = False,
    ) -> None:
        self._is_server = server_hostname is None
        self._allows_plain = allows_plain
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=self._is_server,
            server_hostname=server_hostname,
        )
        self.phase = Phase.OPENING
        # the first octets, while they are too few to decide
        self._first = b""
        # whether the peer has ended its stream with an alert
        self.is_ended = False
        # octets that were received, and are left to the next call of `receive`
        self._rest = memoryview(b"")
        # octets without data since the last pause or since data outweighed them
        self._idle = 0
        self._piece_bytes = PIECE_BYTES
        # octets for the socket that were taken from OpenSSL, and of which some are unsent
        self.unsent = memoryview(b"")
        if not self._is_server:
            if upgrade:
                self.unsent = memoryview(TLS_HEADER)
            else:
                self._begin_handshake()

    @property
    def is_secured(self) -> bool:
        """Return whether the handshake is complete, so that AMQP octets can be sent."""
        return self.phase is Phase.SECURED

    @property
    def is_plain(self) -> bool:
        """Return whether the peer uses no TLS, so that this layer is not needed."""
        return self.phase is Phase.PLAIN

    @property
    def has_output(self) -> bool:
        """Return whether there are octets for the socket."""
        return bool(self.unsent) or self._outgoing.pending > 0

    @property
    def is_congested(self) -> bool:
        """Return whether nothing should be received until the peer has read more."""
        return len(self.unsent) + self._outgoing.pending > CONGESTED_BYTES

    @property
    def has_rest(self) -> bool:
        """Return whether `receive` has left octets to its next call, which needs no others."""
        return bool(self._rest)

    def security(self) -> Security:
        """Return what TLS has agreed on; call this after the handshake."""
        version, cipher = self._tls.version(), self._tls.cipher()
        assert version is not None
        assert cipher is not None
        return Security(version, cipher[0], cipher[2])

    @property
    def requested_host(self) -> str | None:
        """Return the host name that the peer asked for (SNI), in lower case; None without one."""
        return self._tls.requested_host if isinstance(self._tls, ServerSide) else None

    def peer_certificate(self) -> bytes | None:
        """Return the peer's verified certificate in DER form, or None if it sent none."""
        return self._tls.getpeercert(binary_form=True) if self.is_secured else None

    def receive(self, octets: memoryview, into: memoryview) -> int:
        """Process octets from the socket; write AMQP octets to `into` and return their count.

        `into` must have room for as many octets as were received, and two TLS records more. Raises
        `TlsFailed`; the output then ends with an alert for the peer.

        Records without data, such as changes of keys, cost much more than others. After some of
        them, the rest of the octets is kept for the next call (`has_rest`), so that a peer that
        sends nothing else does not delay others.
        """
        if self.phase is Phase.OPENING:
            octets = self._opened(octets)
        if self.phase is Phase.PLAIN:
            into[: len(octets)] = octets
            return len(octets)
        is_kept = bool(self._rest)
        if is_kept:
            octets = memoryview(bytes(self._rest) + bytes(octets)) if octets else self._rest
            self._rest = memoryview(b"")
        count = at = 0
        while at < len(octets):
            piece = octets[at : at + self._piece_bytes]
            at += len(piece)
            self._incoming.write(piece)
            if self.phase is Phase.HANDSHAKE:
                self._shake_hands()
            if self.phase is Phase.SECURED:
                before = count
                count = self._decrypt(into, count)
                data = count - before
                self._idle = max(0, self._idle + len(piece) - data - data // OVERHEAD_PART)
                self._piece_bytes = min(PIECE_BYTES, self._piece_bytes + data)
                if self._idle >= self._piece_bytes:
                    self._idle = 0
                    self._piece_bytes = LEAN_PIECE_BYTES
                    # copied once, and not again each time that a part is taken
                    self._rest = octets[at:] if is_kept else memoryview(bytes(octets[at:]))
                    break
        return count

    def encrypt(self, octets: memoryview) -> int:
        """Encrypt some of the octets, at least one record; return the count of those encrypted."""
        count = 0
        try:
            while count < len(octets) and self._outgoing.pending < OUTPUT_BYTES:
                count += self._tls.write(octets[count : count + RECORD_BYTES])
        except ssl.SSLError as error:
            raise self._failed(error) from None
        return count

    def take_output(self) -> memoryview:
        """Return the octets to send next; the caller keeps the unsent ones in `unsent`."""
        if not self.unsent:
            self.unsent = memoryview(self._outgoing.read())
        return self.unsent

    def discard(self) -> None:
        """Discard the output, because the socket has failed."""
        self.unsent = memoryview(b"")
        self._outgoing.read()

    def end(self) -> None:
        """Add an alert to the output that ends our stream of octets."""
        if self.is_secured:
            try:
                self._tls.unwrap()
            except ssl.SSLError:
                # the peer has not ended its stream yet, and need not
                return

    # The beginning.

    def _opened(self, octets: memoryview) -> memoryview:
        """Decide by the first octets what the peer uses; return the octets to process next."""
        first = self._first + bytes(octets)
        if self._is_server and first[0] == _HANDSHAKE:
            self._begin_handshake()
        elif TLS_HEADER.startswith(first[: len(TLS_HEADER)]):
            self._first = first
            if len(first) < len(TLS_HEADER):
                return octets[:0]
            self._first = b""
            if self._is_server:
                self.unsent = memoryview(TLS_HEADER)
            self._begin_handshake()
            return memoryview(first)[len(TLS_HEADER) :]
        elif self._is_server and self._allows_plain:
            self.phase = Phase.PLAIN
        else:
            self.phase = Phase.FAILED
            if self._is_server:
                self.unsent = memoryview(TLS_HEADER)
                raise TlsFailed(f"the peer began with {first[:8]!r}, and TLS is required here")
            raise TlsFailed(f"the server answered the TLS header with {first[:8]!r}")
        return memoryview(first)

    def _begin_handshake(self) -> None:
        self.phase = Phase.HANDSHAKE
        if not self._is_server:
            self._shake_hands()

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return
        except ssl.SSLError as error:
            raise self._failed(error) from None
        self.phase = Phase.SECURED

    # Octets.

    def _decrypt(self, into: memoryview, count: int) -> int:
        """Decrypt what was received to `into[count:]`; return the count of octets in `into`."""
        tls = self._tls
        try:
            while True:
                # with a buffer, `read` returns a count, which its annotation does not say
                more = cast(int, tls.read(len(into) - count, into[count:]))
                if not more:
                    self.is_ended = True
                    return count
                count += more
                if not self._incoming.pending and not tls.pending():
                    return count
        except ssl.SSLWantReadError:
            return count
        except ssl.SSLZeroReturnError:
            self.is_ended = True
            return count
        except ssl.SSLError as error:
            raise self._failed(error) from None

    def _failed(self, error: ssl.SSLError) -> TlsFailed:
        self.phase = Phase.FAILED
        is_refusal = isinstance(error, ssl.SSLCertVerificationError) or any(
            part in _reason(error) for part in ("CERTIFICATE", "UNKNOWN_CA")
        )
        return TlsFailed(reason_of(error), is_refusal=is_refusal)


def reason_of(error: ssl.SSLError) -> str:
    """Return a reason for operators, from an error of OpenSSL."""
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = _CRL_REASONS.get(error.verify_code, error.verify_message)
        return f"the peer's certificate is refused: {reason}"
    text = _reason(error)
    for part, meaning in _REASONS:
        if part in text:
            return meaning
    return text.lower().replace("_", " ")


def _reason(error: ssl.SSLError) -> str:
    # an error of Python itself has no reason
    return getattr(error, "reason", None) or str(error)
