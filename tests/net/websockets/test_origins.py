"""Origins of requests, as far as clients of WebSockets do not show (test_server.py)."""

from __future__ import annotations

import pytest

from router.net.websockets.origins import origin_objection


@pytest.mark.parametrize(
    ("origin", "host"),
    [(b"http://h", b"H "), (b"https://h:8443", b"h:8443"), (b"http://[::1]:80", b"[::1]:80")],
)
def test_the_same_server(origin: bytes, host: bytes) -> None:
    assert origin_objection([origin], host, ()) is None


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        (b"", b""),
        (b"h", b"h"),
        (b"http://", b""),
        (b"http://h.evil", b"h"),
        (b"http://h", b"h:80"),
        (b"http://\xff", b"\xfe"),
    ],
)
def test_another_server(origin: bytes, host: bytes) -> None:
    said = origin_objection([origin], host, ("http://x",))
    assert said is not None
    assert said.isascii()
    assert "allowedOrigins" in said


def test_a_long_origin_is_cut() -> None:
    said = origin_objection([b"x" * 10_000], b"h", ())
    assert said is not None
    assert len(said) < 400
