"""Clients of two libraries, Proton and rhea, at a network of routers of which some are lost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from proton import Message

from support.configuring import entity
from support.proton_containers import ProtonContainer
from support.proton_peers import ProtonPeers, ProtonReceiver, ProtonSender
from support.rhea_peers import RheaPeer
from support.router_networks import Line, Load, RouterNetwork, StartNetwork, during, run

TRIANGLE = [Line("a", "b"), Line("b", "c"), Line("a", "c", cost=5)]
pytestmark = pytest.mark.timeout(300)


def test_either_library_sends_to_the_other_while_a_router_between_is_lost(
    proton: ProtonPeers, rhea: RheaPeer, networks: StartNetwork
) -> None:
    network = networks(TRIANGLE)
    load = Load(proton, network)
    load.receive("c", "closest/to-proton")
    load.receive("c", "balanced/to-rhea", rhea=rhea)
    load.receive("a", "closest/back", rhea=rhea)
    load.send("a", "closest/to-proton", 600, rhea=rhea)
    load.send("a", "balanced/to-rhea", 600)
    load.send("c", "closest/back", 600, rhea=rhea)
    proton.until(partial(load.have_accepted, 100), "the first are accepted", 60)
    network.kill("b")
    proton.until(partial(load.have_accepted, 300), "others are accepted, by the other way", 60)
    load.during(partial(network.start, "b"))
    run(proton, load, 90)


@pytest.mark.parametrize("how", ["kill", "leave"])
def test_clients_of_either_library_come_back_to_their_router(
    proton: ProtonPeers, rhea: RheaPeer, networks: StartNetwork, how: str
) -> None:
    network = networks(TRIANGLE[:2])
    load = Load(proton, network)
    load.receive("c", "closest", rhea=rhea)
    load.receive("a", "closest/back", rhea=rhea)
    load.receive("a", "closest/other")
    load.send("a", "closest", 500)
    load.send("c", "closest/back", 500)
    load.send("c", "closest/other", 500, rhea=rhea)
    proton.until(partial(load.have_accepted, 100), "the first are accepted", 60)
    getattr(network, how)("c")
    load.during(partial(network.start, "c"))
    run(proton, load, 90)
    assert load.consumers[0].attached >= 2


def test_the_cheapest_side_of_a_triangle_fails_and_comes_back_time_and_again(
    proton: ProtonPeers, rhea: RheaPeer, networks: StartNetwork
) -> None:
    network = networks(TRIANGLE)
    network.until_costs("a", {"b": 1, "c": 2})
    load = Load(proton, network)
    load.receive("c", "closest")
    load.receive("a", "balanced/back", rhea=rhea)
    load.send("a", "closest", 1000, rhea=rhea)
    load.send("c", "balanced/back", 1000)
    for number in range(4):
        proton.until(partial(load.have_accepted, 200 * number + 50), "some are accepted", 60)
        network.wire("a", "b").cut()
        proton.until(partial(load.have_accepted, 200 * number + 150), "others, too", 60)
        network.wire("a", "b").mend()
        if number % 2:
            load.during(partial(network.until_costs, "a", {"b": 1, "c": 2}))
    run(proton, load, 90)


@pytest.mark.parametrize("how", ["there", "back"])
def test_an_uplink_that_lets_through_in_one_direction_only(
    proton: ProtonPeers, rhea: RheaPeer, networks: StartNetwork, how: str
) -> None:
    network = networks([Line("a", "b")], edges={"e": "ab"})
    load = Load(proton, network)
    load.receive("b", "closest")
    load.receive("e", "closest/back", rhea=rhea)
    load.send("e", "closest", 800, rhea=rhea)
    load.send("b", "closest/back", 800)
    proton.until(partial(load.have_accepted, 100), "the first are accepted", 60)
    network.wire("e", "a").freeze(there=how == "there", back=how == "back")
    proton.until(partial(load.have_accepted, 500), "others are accepted, by the other uplink", 60)
    network.wire("e", "a").mend()
    run(proton, load, 90)


def test_an_edge_with_two_active_uplinks_of_which_one_is_killed(
    proton: ProtonPeers, rhea: RheaPeer, networks: StartNetwork
) -> None:
    lines = [Line("a", "b"), Line("a", "c"), Line("b", "c")]
    network = networks(lines, edges={"e": "ab"}, active_uplinks=2)
    load = Load(proton, network)
    load.receive("c", "balanced")
    load.receive("e", "closest/back", rhea=rhea)
    load.receive("e", "balanced/mine")
    load.send("e", "balanced", 800, rhea=rhea)
    load.send("c", "closest/back", 800)
    load.send("b", "balanced/mine", 800)
    proton.until(partial(load.have_accepted, 100), "the first are accepted", 60)
    network.kill("a")
    proton.until(partial(load.have_accepted, 500), "others are accepted", 60)
    load.during(partial(network.start, "a"))
    run(proton, load, 90)


def test_rhea_asks_and_proton_answers_while_a_router_between_is_lost(
    proton: ProtonPeers, rhea: RheaPeer, networks: StartNetwork
) -> None:
    network = networks(TRIANGLE)
    service = proton.connect(network.url("c"))
    requests = service.receiver("closest/service", 50)
    requests.renews = True
    answers = service.sender(None)
    rhea.connect(network.port("a"))
    rhea.receiver({"dynamic": True}, name="inbox", credit_window=100)
    rhea.sender("closest/service", name="asking", treat_modified_as_released=False)
    (opened,) = rhea.find("receiver_open", link="inbox")
    reply_to = opened["address"]
    assert reply_to.startswith("amqp:/_topo/0/a/")
    asked = 0
    served = 0

    def are_answered(count: int) -> bool:
        nonlocal asked, served
        done = {each["number"] for each in rhea.find("accepted", link="asking")}
        over = [
            each["number"]
            for outcome in ("released", "modified")
            for each in rhea.find(outcome, link="asking")
        ]
        # what was given back is asked once more
        while asked < count + len(over) and asked < len(done) + len(over) + 20:
            ask(rhea, asked, reply_to)
            asked += 1
        for request in requests.received[served:]:
            served += 1
            message = request.message
            answers.send(Message(message.body, address=message.reply_to), wait=False)
        heard = {each["octets"] for each in rhea.find("message", link="inbox")}
        return len(heard) >= count

    proton.until(partial(are_answered, 50), "the first are answered", 60)
    network.kill("b")
    during(proton, network.until_whole)
    proton.until(partial(are_answered, 200), "others are answered", 60)


def ask(rhea: RheaPeer, number: int, reply_to: str) -> None:
    """Have rhea send a request."""
    rhea.send(bytes(Message(number, reply_to=reply_to).encode()), "asking")


def test_proton_asks_and_rhea_answers(
    proton: ProtonPeers, rhea: RheaPeer, networks: StartNetwork
) -> None:
    network = networks(TRIANGLE)
    rhea.connect(network.port("c"))
    rhea.receiver("closest/service", name="service", credit_window=100)
    rhea.tell("sender", connection="connection", link="answers", options={"target": {}})
    rhea.wait("sender_open", link="answers")
    client = proton.connect(network.url("a"))
    inbox = client.receiver(None, 100, dynamic=True)
    inbox.renews = True
    asking = client.sender("closest/service")
    reply_to = inbox.link.remote_source.address
    served = 0

    def are_answered(count: int) -> bool:
        nonlocal served
        if asking.link.credit > 0 and not any(not each.is_settled for each in asking.sent):
            asking.send(Message("ask", reply_to=reply_to), wait=False)
        for request in rhea.find("message", link="service")[served:]:
            served += 1
            answer = Message(f"answer {served}", address=request["reply_to"])
            rhea.send(bytes(answer.encode()), "answers")
        return len(inbox.received) >= count

    proton.until(partial(are_answered, 20), "the first are answered", 60)
    network.kill("b")
    during(proton, network.until_whole)
    before = len(inbox.received)
    proton.until(partial(are_answered, before + 20), "others are answered", 60)
    bodies = inbox.bodies()
    assert len(bodies) == len(set(bodies))


def has_credit(sender: ProtonSender, wanted: bool) -> bool:
    """Whether a sender may send as it likes, or else is asked to give back what it has."""
    return bool(sender.link.credit > 0 and not sender.link.drain_mode) is wanted


def test_a_client_that_has_sent_gets_credit_again_after_an_outage(
    proton: ProtonPeers, networks: StartNetwork
) -> None:
    network = networks([Line("a", "b"), Line("b", "c")])
    proton.connect(network.url("c")).receiver("closest", 10).renews = True
    sender = proton.connect(network.url("a")).sender("closest")
    for number in range(25):
        assert sender.outcome(Message(number)).outcome == "accepted"
    for _ in range(2):
        network.wire("b", "c").cut()
        proton.until(partial(has_credit, sender, False), "credit is gone")
        network.wire("b", "c").mend()
        proton.until(partial(has_credit, sender, True), "it is back", 60)
        for number in range(25):
            assert sender.outcome(Message(number)).outcome == "accepted"
    assert sender.is_attached


def multicast_receivers(
    proton: ProtonPeers, network: RouterNetwork, names: str
) -> list[ProtonReceiver]:
    """Somebody who receives the news at each of these routers, once all senders reach them."""
    receivers = []
    for name in names:
        receiver = proton.connect(network.url(name)).receiver("multicast/news", 1000)
        receiver.renews = True
        receivers.append(receiver)
    return receivers


def have_heard(receivers: list[ProtonReceiver], wanted: list[int]) -> bool:
    """Whether receivers have had so many messages each."""
    return all(len(each.received) >= count for each, count in zip(receivers, wanted, strict=True))


def test_a_multicast_while_routers_and_an_uplink_are_lost(
    proton: ProtonPeers, networks: StartNetwork
) -> None:
    network = networks(TRIANGLE, edges={"e": "cb"})
    receivers = multicast_receivers(proton, network, "ace")
    sender = proton.connect(network.url("a")).sender("multicast/news")
    number = 0

    def send_until(holds: Callable[[], bool], what: str) -> None:
        def step() -> bool:
            nonlocal number
            if sender.link.credit > 0 and sum(not each.is_settled for each in sender.sent) < 20:
                sender.send(Message(number), wait=False)
                number += 1
            return holds()

        proton.until(step, what, 60)

    send_until(lambda: all(each.received for each in receivers), "all hear the news")
    begun = len(sender.sent)
    for happen in (
        partial(network.kill, "b"),
        partial(network.start, "b"),
        network.wire("e", "c").cut,
        network.wire("e", "c").mend,
    ):
        during(proton, happen)
        wanted = [len(each.received) + 20 for each in receivers]
        send_until(partial(have_heard, receivers, wanted), "all hear more")
    proton.until(sender.all_settled, "everything is settled", 60)
    accepted = {
        number
        for number, each in enumerate(sender.sent)
        if number >= begun and each.outcome == "accepted"
    }
    assert set(sender.outcomes) <= {"accepted", "modified", "released"}
    for receiver in receivers[:2]:
        bodies = receiver.bodies()
        assert len(bodies) == len(set(bodies))
        assert accepted <= set(bodies)
    at_edge = [each for each in receivers[2].bodies() if each in accepted]
    assert len(at_edge) == len(set(at_edge))


def test_what_goes_to_a_container_while_routers_between_are_lost(
    proton: ProtonPeers, networks: StartNetwork
) -> None:
    routes = entity("linkRoute", prefix="queue", direction="in", containerId="broker")
    # where the container comes in
    more = entity("listener", host="127.0.0.1", port=0, role="route-container")
    network = networks(TRIANGLE, more=routes + more)
    url = network["c"].url(listener=3)
    broker = ProtonContainer(proton, url, "broker", credit=1000)
    load = Load(proton, network)
    load.send("a", "queue/x", 600)
    load.send("b", "queue/y", 600)
    proton.until(partial(load.have_accepted, 100), "the first are accepted", 60)
    network.wire("a", "b").cut()
    proton.until(partial(load.have_accepted, 300), "others are accepted, by the other way", 60)
    network.wire("a", "b").mend()
    network.kill("b")
    load.during(partial(network.start, "b"))
    proton.until(load.step_producers, "all is accepted", 60)
    for receiver in broker.receivers:
        for received in receiver.received:
            load.ledger.arrive(received.message.subject or "")
    load.ledger.check_once()
