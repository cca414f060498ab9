"""State that peers create takes little memory, which is freed when they are gone."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack, closing

import pytest
from bench.memory import LOADS, Peer, carry, opened

from support.memory import MIB, most_resident_bytes, resident_bytes
from support.routers import PLAIN, StartRouter

QUIET_LOG = PLAIN + '\n[log]\nlevel = "error"\n'
# A twentieth of the loads of the benchmark: 1.5 to 6 MB each. As values of Python's these took from
# 25 to 200 MiB.
SCALE = 0.05
MOST_BYTES = 14 * MIB
LEFT_PART = 0.2
PATIENCE_LOOKS = 600
CHECK_S = 0.1


@pytest.mark.parametrize("load", [load for load in LOADS if "plain" not in load])
def test_what_peers_say_of_themselves_takes_little(start_router: StartRouter, load: str) -> None:
    router = start_router(QUIET_LOG)
    with ExitStack() as stack:
        # what the first connection of all takes is not the load's
        first = stack.enter_context(closing(Peer(router.port, iter([opened(b"first")]))))
        carry([first])
        fresh = resident_bytes(router.pid)
        peers = [Peer(router.port, talk) for talk in LOADS[load](SCALE)]
        for peer in peers:
            stack.enter_context(closing(peer))
        carry([first, *peers])
        assert [peer.is_over for peer in peers] == [False] * len(peers)
        assert most_resident_bytes(router.pid) - fresh < MOST_BYTES
    looks = PATIENCE_LOOKS
    while looks and resident_bytes(router.pid) > (1 + LEFT_PART) * fresh:
        looks -= 1
        with pytest.raises(subprocess.TimeoutExpired):
            router.process.wait(CHECK_S)
    assert resident_bytes(router.pid) <= (1 + LEFT_PART) * fresh
