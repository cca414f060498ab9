"""A router's pump: it counts and logs what happens to its connection."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from router.amqp.performatives import Attach, Detach, Flow
from router.net.failing import MANY

from support.loopback import WIDE, dialled, running_node
from support.transcripts import attach_sender


def window(received: int, frames: int, **fields: Any) -> Flow:
    """Tell how many frames came, and how many more may come."""
    return Flow(
        next_incoming_id=received,
        incoming_window=frames,
        next_outgoing_id=0,
        outgoing_window=WIDE,
        **fields,
    )


async def test_events_are_counted_and_logged_with_the_error() -> None:
    with capture_logs() as logs:
        async with running_node() as running, dialled(running.address) as peer:
            await peer.begin()
            one = await running.pump_of(peer)
            # a handle that nothing is attached to ends the session
            await peer.say(window(0, 1, handle=9, link_credit=1))
            await running.until(lambda: any(line["event"] == "session ended" for line in logs))
            counters = one.counters
            assert counters is not None
            assert (counters.opened, counters.failed) == (1, 0)
            peer.reset()
            await running.until_empty()
            assert (counters.opened, counters.failed) == (1, 1)
    (ended,) = (line for line in logs if line["event"] == "session ended")
    assert ended["condition"] == "amqp:session:unattached-handle"
    assert ended["log_level"] == "warning"
    assert str(ended).count(ended["peer"]) == 1


async def test_a_link_that_is_refused_is_not_said_to_be_attached() -> None:
    with capture_logs() as logs:
        async with running_node() as running, dialled(running.address) as peer:
            await peer.begin()
            await peer.say(attach_sender(0, ""))
            await peer.hear_until(Detach)
    (line,) = (line for line in logs if line["event"].startswith("link"))
    assert (line["event"], line["log_level"]) == ("link refused", "warning")
    assert line["link"] == "sender-0"


@pytest.mark.parametrize("at_once", [1, 4 * MANY])
@pytest.mark.parametrize("is_refused", [True, False])
async def test_a_peer_whose_links_are_refused_rests_before_its_turns(
    is_refused: bool, at_once: int
) -> None:
    """Others are active all the time."""
    rests: list[tuple[str, bool]] = []
    address = "" if is_refused else "q"
    links = [attach_sender(handle, address) for handle in range(4 * MANY)]
    async with running_node() as running, dialled(running.address) as peer:
        hub = running.node.hub
        step = hub.low_priority.step

        async def watched(
            host: str, weight: int = 1, queue: str = "", *, fails: bool = False
        ) -> None:
            rests.append((host, fails))
            await step(host, weight, queue, fails=fails)

        await peer.begin()
        hub.low_priority.others_are_active = lambda: True
        # no event tells when the pump has taken the real step, too
        hub.low_priority.step = watched  # type: ignore[method-assign]
        for begin in range(0, len(links), at_once):
            await peer.say(*links[begin : begin + at_once])
            for _ in range(at_once):
                await peer.hear_until(Attach)
    resting = [each for each in rests if each[1]]
    if is_refused:
        # there are eight attaches in each turn, and the first 32 are too few to tell
        assert len(resting) >= (len(links) - MANY) // 8 - 1
        assert set(resting) == {("127.0.0.1", True)}
    else:
        assert not resting
