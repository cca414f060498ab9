"""Client of TLS 1.3 by OpenSSL's own library, which changes its keys as often as it likes.

Python's `ssl` cannot do that. The client works over memory, so a test passes the octets on.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import cache
from typing import Any, Final

from support.missing_peers import skip_without

# Kinds of a change of keys (RFC 8446 section 4.6.3): whether the other side has to do so, too.
NOT_REQUESTED: Final = 0
REQUESTED: Final = 1
UPDATE_BYTES: Final = 27
"""Octets of a record that changes the keys."""

_POINTER: Final = ctypes.c_void_p
_INT: Final = ctypes.c_int
_FUNCTIONS: Final[dict[str, tuple[Any, list[Any]]]] = {
    "TLS_client_method": (_POINTER, []),
    "SSL_CTX_new": (_POINTER, [_POINTER]),
    "SSL_CTX_free": (None, [_POINTER]),
    "SSL_new": (_POINTER, [_POINTER]),
    "SSL_free": (None, [_POINTER]),
    "SSL_set_bio": (None, [_POINTER, _POINTER, _POINTER]),
    "SSL_set_connect_state": (None, [_POINTER]),
    "SSL_do_handshake": (_INT, [_POINTER]),
    "SSL_key_update": (_INT, [_POINTER, _INT]),
    "SSL_write": (_INT, [_POINTER, ctypes.c_char_p, _INT]),
    "SSL_read": (_INT, [_POINTER, ctypes.c_char_p, _INT]),
    "BIO_s_mem": (_POINTER, []),
    "BIO_new": (_POINTER, [_POINTER]),
    "BIO_read": (_INT, [_POINTER, ctypes.c_char_p, _INT]),
    "BIO_write": (_INT, [_POINTER, ctypes.c_char_p, _INT]),
}


@cache
def _library() -> ctypes.CDLL:
    name = ctypes.util.find_library("ssl")
    if name is None:
        skip_without("the library of OpenSSL is not installed")
    found = ctypes.CDLL(name)
    for function, (result, arguments) in _FUNCTIONS.items():
        getattr(found, function).restype = result
        getattr(found, function).argtypes = arguments
    return found


class KeyUpdater:
    """Client of TLS over memory, which trusts everybody."""

    def __init__(self) -> None:
        self._lib = lib = _library()
        self._context = lib.SSL_CTX_new(lib.TLS_client_method())
        self._tls = lib.SSL_new(self._context)
        self._incoming, self._outgoing = (lib.BIO_new(lib.BIO_s_mem()) for _ in range(2))
        lib.SSL_set_bio(self._tls, self._incoming, self._outgoing)
        lib.SSL_set_connect_state(self._tls)

    def close(self) -> None:
        """Free the memory."""
        self._lib.SSL_free(self._tls)
        self._lib.SSL_CTX_free(self._context)

    def shake_hands(self, octets: bytes = b"") -> bool:
        """Go on with the handshake; return whether it is complete."""
        self.receive(octets)
        return bool(self._lib.SSL_do_handshake(self._tls) == 1)

    def receive(self, octets: bytes) -> None:
        """Receive octets from the other side, for `read`."""
        if octets:
            assert self._lib.BIO_write(self._incoming, octets, len(octets)) == len(octets)

    def read(self) -> bytes:
        """Return the next decrypted octets, possibly none."""
        into = ctypes.create_string_buffer(65536)
        return into.raw[: max(0, self._lib.SSL_read(self._tls, into, len(into)))]

    def write(self, octets: bytes) -> None:
        """Encrypt octets."""
        assert self._lib.SSL_write(self._tls, octets, len(octets)) == len(octets)

    def update(self, count: int = 1, kind: int = NOT_REQUESTED) -> None:
        """Change the keys so many times."""
        for _ in range(count):
            assert self._lib.SSL_key_update(self._tls, kind) == 1
            assert self._lib.SSL_do_handshake(self._tls) == 1

    def take(self) -> bytes:
        """Return the octets for the other side."""
        found = b""
        into = ctypes.create_string_buffer(1 << 20)
        while (count := self._lib.BIO_read(self._outgoing, into, len(into))) > 0:
            found += into.raw[:count]
        return found
