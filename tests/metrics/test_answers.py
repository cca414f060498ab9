"""Responses that are sent without Hypercorn."""

from __future__ import annotations

import trio
import trio.testing

from router.metrics.answers import BUSY, READ_TIMEOUT_S, UNFINISHED, say_at_once, text_answer
from router.metrics.request_heads import IncompleteReason


def test_a_response_is_whole() -> None:
    assert text_answer(404, "not found", allow="GET").http_octets(is_head=False) == (
        b"HTTP/1.1 404 Not Found\r\ncontent-type: text/plain; charset=utf-8\r\n"
        b"content-length: 10\r\ncache-control: no-store\r\nallow: GET\r\nconnection: close\r\n"
        b"\r\nnot found\n"
    )


def test_the_answer_to_head_has_no_body() -> None:
    answer = BUSY.http_octets(is_head=True)
    assert answer.endswith(b"\r\n\r\n")
    assert b"content-length: 26\r\n" in answer
    assert b"retry-after: 1\r\n" in answer


def test_only_a_client_that_is_gone_has_no_answer() -> None:
    assert set(IncompleteReason) - set(UNFINISHED) == {IncompleteReason.GONE}


async def test_a_client_that_does_not_read_is_not_waited_for_long(
    autojump_clock: trio.testing.MockClock,
) -> None:
    one, other = trio.socket.socketpair()
    async with trio.SocketStream(one) as near, trio.SocketStream(other):
        await say_at_once(near, text_answer(200, "x" * 10_000_000))
        assert trio.current_time() == READ_TIMEOUT_S


async def test_a_client_that_is_gone_is_no_failure() -> None:
    one, other = trio.socket.socketpair()
    other.close()
    async with trio.SocketStream(one) as near:
        await say_at_once(near, BUSY)
        await near.aclose()
        await say_at_once(near, BUSY)
