"""Heads of requests: what they tell, and that half-requests are bounded in number and time."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock, memory_stream_pair

from router.metrics.request_heads import (
    GRACE_S,
    MAX_HEAD_BYTES,
    MAX_HEAD_LINES,
    IncompleteReason,
    PendingHeads,
    RequestHead,
    RequestKind,
)

GET = b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n"


async def read(octets: bytes) -> RequestHead | IncompleteReason:
    """Read a request head from these octets, followed by the end of the stream."""
    client, server = memory_stream_pair()
    await client.send_all(octets)
    await client.send_eof()
    return await PendingHeads(1).read(server, 1.0, "a")


@pytest.mark.parametrize(
    ("octets", "kind"),
    [
        (GET, RequestKind.PLAIN),
        (b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", RequestKind.PROBE),
        (b"GET /healthz?verbose HTTP/1.0\n\n", RequestKind.PROBE),
        (b"HEAD /readyz HTTP/1.1\r\nhost: x\r\n\r\n", RequestKind.PROBE),
        (b"GET /healthz/x HTTP/1.1\r\nhost: x\r\n\r\n", RequestKind.PLAIN),
        (b"GET /healthz HTTP/1.1\r\nhost: x\r\nUpgrade: h2c\r\n\r\n", RequestKind.OTHER),
        (b"GET /healthz HTTP/1.1\r\nhost: x\r\nexpect : 100-continue\r\n\r\n", RequestKind.OTHER),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", RequestKind.OTHER),
        # what no request begins with is not waited for
        (b"\x16\x03\x01", RequestKind.OTHER),
    ],
)
async def test_a_head_tells_what_is_asked_for(octets: bytes, kind: RequestKind) -> None:
    head = await read(octets)
    assert isinstance(head, RequestHead)
    assert head.kind is kind
    assert octets.startswith(head.octets)
    assert head.is_head == octets.startswith(b"HEAD")


BEGUN = b"GET /healthz HTTP/1.1\r\n"
FIELD = b"a: b\r\n"


@pytest.mark.parametrize(
    ("octets", "is_large"),
    [
        (b"GET /" + b"x" * MAX_HEAD_BYTES, True),
        (b"GET /" + b"x" * MAX_HEAD_BYTES + b" HTTP/1.1\r\n\r\n", True),
        (BEGUN + FIELD * (MAX_HEAD_LINES - 1) + b"\r\n", True),
        (BEGUN + FIELD * (MAX_HEAD_LINES - 2) + b"\r\n", False),
        # what is behind it is not of it
        (BEGUN + b"\r\n" + b"\n" * MAX_HEAD_LINES, False),
    ],
)
async def test_a_head_has_so_many_octets_and_lines(octets: bytes, is_large: bool) -> None:
    head = await read(octets)
    assert (head is IncompleteReason.LARGE) is is_large


async def test_what_comes_behind_a_head_is_kept_apart() -> None:
    head = await read(GET + b"upgrade: x\r\n")
    assert head == RequestHead(GET, RequestKind.PLAIN, is_head=False, behind=b"upgrade: x\r\n")


@pytest.mark.parametrize("octets", [b"", b"GET /met"])
async def test_a_client_that_is_gone_has_no_head(octets: bytes) -> None:
    assert await read(octets) is IncompleteReason.GONE


async def test_a_head_may_come_octet_by_octet() -> None:
    client, server = memory_stream_pair()
    found: list[RequestHead | IncompleteReason] = []

    async def receive() -> None:
        found.append(await PendingHeads(1).read(server, 1.0, "a"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        for octet in GET:
            await trio.testing.wait_all_tasks_blocked()
            assert not found
            await client.send_all(bytes([octet]))
    assert found == [RequestHead(GET, RequestKind.PLAIN, is_head=False)]


async def test_a_head_has_so_much_time_however_it_drips(mock_clock: MockClock) -> None:
    client, server = memory_stream_pair()
    found: list[RequestHead | IncompleteReason] = []

    async def receive() -> None:
        found.append(await PendingHeads(1).read(server, 5.0, "a"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        for _ in range(5):
            await trio.testing.wait_all_tasks_blocked()
            assert not found
            await client.send_all(b"G")
            mock_clock.jump(1.0)
        await trio.testing.wait_all_tasks_blocked()
        assert found == [IncompleteReason.SLOW]


async def test_the_oldest_makes_room_and_is_told_so() -> None:
    halves = PendingHeads(2)
    ended: list[tuple[int, RequestHead | IncompleteReason]] = []
    pairs = [memory_stream_pair() for _ in range(3)]

    async def receive(number: int) -> None:
        ended.append((number, await halves.read(pairs[number][1], 60.0, "a")))

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(receive, number)
            await trio.testing.wait_all_tasks_blocked()
        assert ended == [(0, IncompleteReason.EVICTED)]
        halves.close()
    assert sorted(ended[1:]) == [(1, IncompleteReason.GONE), (2, IncompleteReason.GONE)]


async def test_the_host_with_most_makes_room_for_another() -> None:
    halves = PendingHeads(3)
    ended: list[str] = []

    async def receive(name: str) -> None:
        _, server = memory_stream_pair()
        assert await halves.read(server, 60.0, name[0]) is IncompleteReason.EVICTED
        ended.append(name)

    async with trio.open_nursery() as nursery:
        for name in ("a1", "b1", "b2", "b3", "c1"):
            nursery.start_soon(receive, name)
            await trio.testing.wait_all_tasks_blocked()
        # the oldest of all is there still
        assert ended == ["b1", "b2"]
        nursery.cancel_scope.cancel()


async def test_there_is_room_once_the_oldest_has_had_its_moment(autojump_clock: MockClock) -> None:
    halves = PendingHeads(1)
    _, server = memory_stream_pair()
    assert await halves.room() == 1
    assert trio.current_time() == 0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(halves.read, server, 60.0, "a")
        await trio.testing.wait_all_tasks_blocked()
        assert await halves.room() == 1
        assert trio.current_time() == GRACE_S
        nursery.cancel_scope.cancel()


async def test_it_is_quiet_when_no_connections_come() -> None:
    halves = PendingHeads(10)
    client, server = memory_stream_pair()
    await client.send_all(GET)
    rounds = 0

    async def keep_coming() -> None:
        nonlocal rounds
        for _ in range(20):
            rounds += 1
            await client.send_all(GET)
            await halves.read(server, 60.0, "a")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_coming)
        await trio.testing.wait_all_tasks_blocked()
        with trio.fail_after(5):
            await halves.quiet()
    assert rounds == 20
