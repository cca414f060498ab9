"""Slow receivers in a network of routers: they slow those who send to them, and fill no memory."""

from __future__ import annotations

from functools import partial

import pytest
from proton import Message

from support.management_tool import Tool
from support.proton_peers import ProtonPeers
from support.router_networks import Line, RouterNetwork, StartNetwork, during

LINE = [Line("a", "b"), Line("b", "c"), Line("c", "d")]

pytestmark = pytest.mark.timeout(300)


def waiting(network: RouterNetwork) -> dict[str, int]:
    """The octets of messages that wait at each router."""
    found = {}
    for name in network.running():
        tool = Tool(network[name])
        (router,) = tool.query("router", "memoryWaiting")
        tool.close()
        found[name] = router["memoryWaiting"]
    return found


def test_a_slow_receiver_far_away_slows_who_sends(
    proton: ProtonPeers, networks: StartNetwork
) -> None:
    network = networks(LINE)
    slow = proton.connect(network.url("d")).receiver("closest/slow", 10, accept=False)
    quick = proton.connect(network.url("d")).receiver("closest/quick", 100)
    quick.renews = True
    client = proton.connect(network.url("a"))
    to_slow = client.sender("closest/slow")
    to_quick = client.sender("closest/quick")
    message = Message("x" * 100_000)
    taken = 0

    def send() -> None:
        while to_slow.link.credit > 0:
            to_slow.send(message, wait=False)

    def is_stuck() -> bool:
        # no more comes for as long as two hundred others take, one after the other
        send()
        return len(slow.received) == taken + 10

    # one ahead at each of the four routers, and not all of that at once
    most = 0
    for _ in range(5):
        proton.until(is_stuck, "it has had as much as it wants")
        for number in range(40):
            send()
            assert to_quick.outcome(Message(number)).outcome == "accepted"
        assert len(slow.received) == taken + 10
        most = max(most, len(to_slow.sent) - len(slow.received))
        assert most <= 4
        assert sum(during(proton, partial(waiting, network)).values()) <= 4 * 110_000
        for each in slow.received[taken:]:
            each.accept()
        taken = len(slow.received)
        slow.link.flow(10)
    print(f"at most {most} under way that nobody had room for")
