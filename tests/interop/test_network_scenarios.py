"""Networks of real routers under load, while routers are killed, paused, cut off, and come and go.

What was accepted has come, once; nobody who sends waits for ever. How long a network took to find
together again is printed (`pytest -rP`).
"""

from __future__ import annotations

from collections import deque
from functools import partial

import pytest
from proton import Message

from support.proton_peers import ProtonPeers, ProtonSender, Sent
from support.router_networks import Line, Load, RouterNetwork, StartNetwork, run

LINE = [Line("a", "b"), Line("b", "c"), Line("c", "d")]
TRIANGLE = [Line("a", "b"), Line("b", "c"), Line("a", "c", cost=5)]
RING = [Line("a", "b"), Line("b", "c"), Line("c", "d", cost=2), Line("d", "a", cost=2)]


# many processes: a busy machine takes its time
pytestmark = pytest.mark.timeout(300)


def found_together(load: Load, network: RouterNetwork, what: str) -> None:
    """Wait until all routers that run know each other, and print how long that took."""
    print(f"{what}: after {load.during(network.until_whole):.2f} s")


@pytest.mark.parametrize("address", ["closest", "balanced"])
def test_a_router_on_the_way_is_killed_and_comes_back(
    proton: ProtonPeers, networks: StartNetwork, address: str
) -> None:
    network = networks(TRIANGLE)
    load = Load(proton, network)
    load.receive("c", address)
    load.receive("a", f"{address}/back")
    load.send("a", address, 1000)
    load.send("c", f"{address}/back", 1000)
    proton.until(lambda: load.have_accepted(150), "the first are accepted")
    network.kill("b")
    found_together(load, network, "without b")
    proton.until(lambda: load.have_accepted(500), "others are accepted")
    load.during(partial(network.start, "b"))
    run(proton, load, 60)


def test_the_router_of_the_clients_is_killed_and_comes_back(
    proton: ProtonPeers, networks: StartNetwork
) -> None:
    network = networks(LINE[:2])
    load = Load(proton, network)
    load.receive("c", "closest")
    load.receive("a", "closest/back")
    load.send("a", "closest", 1000)
    load.send("c", "closest/back", 1000)
    proton.until(lambda: load.have_accepted(200), "the first are accepted")
    network.kill("c")
    load.during(partial(network.start, "c"))
    run(proton, load, 60)


def test_lines_are_cut_and_mended_and_come_and_go(
    proton: ProtonPeers, networks: StartNetwork
) -> None:
    network = networks(LINE)
    load = Load(proton, network)
    for at, to in (("a", "d"), ("d", "a"), ("b", "d")):
        load.receive(to, f"closest/{at}{to}")
        load.send(at, f"closest/{at}{to}", 600)
    for number in range(4):
        proton.until(partial(load.have_accepted, 80 * (number + 1)), "some are accepted")
        wire = network.wire("b", "c") if number % 2 else network.wire("c", "d")
        wire.cut()
        proton.run_for(0.2)
        wire.mend()
    found_together(load, network, "whole again")
    run(proton, load, 60)


@pytest.mark.parametrize("how", ["there", "back"])
def test_a_line_that_lets_through_in_one_direction_only(
    proton: ProtonPeers, networks: StartNetwork, how: str
) -> None:
    network = networks(TRIANGLE)
    load = Load(proton, network)
    load.receive("c", "closest")
    load.receive("a", "closest/back")
    load.send("a", "closest", 1000)
    load.send("c", "closest/back", 1000)
    proton.until(lambda: load.have_accepted(200), "the first are accepted")
    network.wire("b", "c").freeze(there=how == "there", back=how == "back")
    proton.until(lambda: load.have_accepted(600), "others are accepted, by the other way")
    network.wire("b", "c").mend()
    run(proton, load, 60)
    network.until_whole()


def test_a_ring_whose_shorter_way_stands_still(proton: ProtonPeers, networks: StartNetwork) -> None:
    network = networks(RING)
    network.until_costs("a", {"b": 1, "c": 2, "d": 2})
    load = Load(proton, network)
    load.receive("c", "balanced")
    load.send("a", "balanced", 1000)
    load.receive("b", "closest/mine")
    load.receive("d", "closest/mine")
    load.send("a", "closest/mine", 500)
    proton.until(lambda: load.has_accepted(200), "the first are accepted")
    network.pause("b")
    found_together(load, network, "without b")
    assert network.reached("a") == {"c": 4, "d": 2}
    proton.until(lambda: load.has_accepted(700), "others are accepted")
    network.resume("b")
    found_together(load, network, "with b")
    run(proton, load, 60)


def test_routers_join_and_leave_while_messages_pass(
    proton: ProtonPeers, networks: StartNetwork
) -> None:
    network = networks(RING)
    load = Load(proton, network)
    for each in "abcd":
        load.receive(each, f"balanced/{each}")
    for at, to in ("ac", "ca", "bd", "db"):
        load.send(at, f"balanced/{to}", 400)
    proton.until(lambda: load.have_accepted(100), "the first are accepted")
    for each in "bd":
        network.leave(each)
        found_together(load, network, f"without {each}")
        load.during(partial(network.start, each))
    run(proton, load, 60)


def test_edges_of_a_star_whose_middle_is_lost(proton: ProtonPeers, networks: StartNetwork) -> None:
    network = networks([Line("a", "b")], edges={"e": "ab", "f": "ba"})
    load = Load(proton, network)
    for at, to in ("ef", "fe", "ea"):
        load.receive(to, f"closest/{at}{to}")
        load.send(at, f"closest/{at}{to}", 600)
    proton.until(lambda: load.have_accepted(200), "the first are accepted")
    network.wire("e", "a").cut()
    proton.until(lambda: load.have_accepted(400), "others are accepted, by the other uplink")
    network.wire("e", "a").mend()
    network.kill("b")
    proton.until(lambda: load.have_accepted(500), "others are accepted, without the router")
    load.during(partial(network.start, "b"))
    run(proton, load, 60)


class Persistent:
    """Sends each message until it is accepted."""

    def __init__(self, sender: ProtonSender) -> None:
        self.sender = sender
        self.todo: deque[Message] = deque()
        self.open: list[tuple[Message, Sent]] = []

    def step(self) -> None:
        """Send what can be sent, and again what was not accepted."""
        over = [each for each in self.open if each[1].is_settled]
        self.open = [each for each in self.open if not each[1].is_settled]
        self.todo.extend(message for message, sent in over if sent.outcome != "accepted")
        while self.todo and self.sender.link.credit > 0 and len(self.open) < 50:
            message = self.todo.popleft()
            self.open.append((message, self.sender.send(message, wait=False)))


def test_every_request_is_answered_while_a_router_is_killed(
    proton: ProtonPeers, networks: StartNetwork
) -> None:
    network = networks(TRIANGLE)
    serving = proton.connect(network.url("c"))
    requests = serving.receiver("closest/service", 50)
    requests.renews = True
    answers = Persistent(serving.sender(None))
    client = proton.connect(network.url("a"))
    inbox = client.receiver(None, 50, dynamic=True)
    inbox.renews = True
    reply_to = inbox.link.remote_source.address
    assert reply_to.startswith("amqp:/_topo/0/a/")
    asking = Persistent(client.sender("closest/service"))
    asking.todo.extend(Message(number, reply_to=reply_to) for number in range(500))
    served = 0

    def has_answers(count: int) -> bool:
        nonlocal served
        for request in requests.received[served:]:
            message = request.message
            answers.todo.append(Message(message.body, address=message.reply_to))
        served = len(requests.received)
        answers.step()
        asking.step()
        return len(set(inbox.bodies())) >= count

    proton.until(partial(has_answers, 100), "the first are answered")
    network.kill("b")
    proton.until(partial(has_answers, 500), "all are answered")
    assert not asking.todo
