"""Messages of any size over several routers, and slow receivers.

No router in between keeps a message or completes half of one. A slow receiver slows its senders
and fills the memory of no router.
"""

from __future__ import annotations

from functools import partial

import pytest
from proton import Message

from support.management_tool import Tool
from support.memory import MIB, most_resident_bytes
from support.proton_peers import ProtonPeers
from support.proton_streams import Stream, Taking
from support.router_networks import Line, RouterNetwork, StartNetwork, during

LINE = [Line("a", "b"), Line("b", "c"), Line("c", "d")]
SIZE = 50 * MIB
# What a router may grow by, whatever the size of messages.
GROWTH_BYTES = 16 * MIB

pytestmark = pytest.mark.timeout(300)


def most_memory(network: RouterNetwork) -> dict[str, int]:
    """Return the peak memory of each router."""
    return {name: most_resident_bytes(network[name].pid) for name in network.running()}


def waiting(network: RouterNetwork) -> dict[str, int]:
    """Return the octets of messages that wait at each router."""
    found = {}
    for name in network.running():
        tool = Tool(network[name])
        (router,) = tool.query("router", "memoryWaiting")
        tool.close()
        found[name] = router["memoryWaiting"]
    return found


@pytest.mark.parametrize("how", ["kill", "pause"])
def test_a_large_message_whose_way_is_lost_in_the_middle_of_it(
    proton: ProtonPeers, networks: StartNetwork, how: str
) -> None:
    network = networks(LINE)
    receiver = proton.connect(network.url("d")).receiver("closest", 5)
    taking = Taking()
    receiver.on_part = taking.take
    sender = proton.connect(network.url("a")).sender("closest")
    sender.wait_for_credit()
    before = most_memory(network)
    stream = Stream(sender, SIZE)

    def is_half_there() -> bool:
        stream.step()
        return taking.octets > SIZE // 2

    proton.until(is_half_there, "half of it is there", 120)
    assert not stream.sent.is_settled
    getattr(network, how)("b")

    def is_over() -> bool:
        if not stream.sent.is_settled:
            stream.step()
        return stream.sent.is_settled and bool(receiver.aborted)

    proton.until(is_over, "its sender and its receiver have been told", 120)
    assert stream.sent.outcome == "modified"
    assert stream.sent.failed
    assert not receiver.received
    if how == "pause":
        network.resume("b")
    else:
        during(proton, partial(network.start, "b"))
    during(proton, network.until_whole)
    after = most_memory(network)
    for name in "acd":
        assert after[name] - before[name] < GROWTH_BYTES, name
    # whatever of the first one was under way has gone, and another one comes whole
    receiver.on_part = (taking := Taking()).take
    sender.wait_for_credit()
    again = Stream(sender, SIZE)

    def is_there() -> bool:
        if not again.sent.is_settled:
            again.step()
        return bool(receiver.received) and again.sent.is_settled

    proton.until(is_there, "another one is there", 120)
    assert again.sent.outcome == "accepted"
    assert taking.digest.digest() == again.digest.digest()
    assert set(during(proton, partial(waiting, network)).values()) == {0}


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

    # what the receiver has room for may be shared with a lane that nothing takes any more; besides,
    # one ahead at each of the four routers
    most = 0
    for _ in range(5):
        proton.until(is_stuck, "it has had as much as it wants")
        for number in range(40):
            send()
            assert to_quick.outcome(Message(number)).outcome == "accepted"
        assert len(slow.received) == taken + 10
        most = max(most, len(to_slow.sent) - len(slow.received))
        assert most <= 14
        assert sum(during(proton, partial(waiting, network)).values()) <= 14 * 110_000
        for each in slow.received[taken:]:
            each.accept()
        taken = len(slow.received)
        slow.link.flow(10)
    print(f"at most {most} under way that nobody had room for")
