"""A message of any size crosses a router that hardly grows, and it holds up nobody."""

from __future__ import annotations

import itertools

import pytest
from proton import Message

from support.memory import MIB, resident_bytes
from support.proton_peers import ProtonPeers
from support.proton_streams import Stream, Taking
from support.routers import StartRouter

pytestmark = pytest.mark.both_builds

# What a router may grow by, whatever the size of the message.
GROWTH_BYTES = 16 * MIB


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("mib", "sessions"), [(1024, 1), (128, 2)])
def test_a_message_of_1_gib_grows_nothing_and_holds_up_nobody(
    routers: StartRouter, proton: ProtonPeers, address: str, mib: int, sessions: int
) -> None:
    """The receiving links share a session, or have one each.

    The sending ones never share theirs: proton lets a stream take all of its session's window.
    """
    size = mib * MIB
    router = routers()
    receiving, sending = proton.connect(router.url()), proton.connect(router.url())
    session = receiving.session() if sessions == 2 else None
    big = receiving.receiver(f"{address}/big", 1, session=session)
    taking = Taking()
    big.on_part = taking.take
    small = receiving.receiver(f"{address}/small", 100)
    small.renews = True
    to_big = sending.sender(f"{address}/big", session=sending.session())
    to_small = sending.sender(f"{address}/small")
    assert to_small.outcome(Message(0)).outcome == "accepted"
    before = resident_bytes(router.pid)
    most = before
    # how much of the big message had come when each of the small ones did
    seen: list[int] = []
    stream = Stream(to_big, size)
    under_way = to_small.send(Message(len(seen)))

    def is_over() -> bool:
        nonlocal most, under_way
        stream.step()
        if under_way.is_settled:
            assert under_way.outcome == "accepted"
            seen.append(taking.octets)
            most = max(most, resident_bytes(router.pid))
            if not big.received:
                under_way = to_small.send(Message(len(seen)), wait=False)
        return bool(big.received) and stream.sent.is_settled

    proton.until(is_over, "the big message is there", 500)
    assert stream.sent.outcome == "accepted"
    assert taking.digest.digest() == stream.digest.digest()
    assert most - before < GROWTH_BYTES
    # Small ones came all the time, and none of them had to wait for a large part of the big one.
    waits = [later - earlier for earlier, later in itertools.pairwise(seen)]
    assert len(seen) > size // (32 * MIB)
    assert max(waits) < 32 * MIB
    print(
        f"{size // MIB} MiB: grew by {(most - before) / MIB:.1f} MiB, {len(seen)} small messages, "
        f"at most {max(waits) / MIB:.1f} MiB between two"
    )


def test_a_stream_that_nobody_takes_fills_nothing(
    routers: StartRouter, proton: ProtonPeers, address: str
) -> None:
    """The receiver does not read on: its sender stops, and others go on."""
    router = routers()
    receiving, sending = proton.connect(router.url()), proton.connect(router.url())
    stuck_session = receiving.session()
    stuck_session.incoming_capacity = MIB
    stuck = receiving.receiver(f"{address}/stuck", 1, session=stuck_session)
    stuck.reads = False
    quick = receiving.receiver(f"{address}/quick", 100)
    quick.renews = True
    to_stuck = sending.sender(f"{address}/stuck", session=sending.session())
    to_quick = sending.sender(f"{address}/quick")
    before = resident_bytes(router.pid)
    stream = Stream(to_stuck, 100 * MIB)
    rest: list[int] = []
    while rest[-20:-19] != [stream.left]:
        # twenty round trips during which nothing more is taken from the stream
        stream.step()
        rest.append(stream.left)
        assert to_quick.outcome(Message("x")).outcome == "accepted"
    assert stream.left > 50 * MIB
    assert resident_bytes(router.pid) - before < GROWTH_BYTES
    # It goes on when the receiver does.
    taking = Taking()
    stuck.on_part = taking.take
    stuck.reads = True
    stuck.read()

    def is_over() -> bool:
        stream.step()
        stuck.read()
        return bool(stuck.received)

    proton.until(is_over, "the big message is there", 100)
    assert taking.digest.digest() == stream.digest.digest()
