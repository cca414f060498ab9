"""Edge routers and their interiors as processes: what clients see of uplinks that come and go."""

from __future__ import annotations

import signal
from collections import Counter
from functools import partial

import attrs
from proton import Message

from support.ports import free_port
from support.proton_peers import ProtonPeers, ProtonReceiver, ProtonSender, Sent
from support.routers import RouterProcess, StartRouter


def interior(name: str, edges: int, more: str = "") -> str:
    """Return the configuration of an interior router, with the port of its listener for edges."""
    return f"""\
[router]
id = "{name}"
mode = "interior"

[[listener]]
port = 0
idleTimeoutSeconds = 120

[[listener]]
name = "edges"
port = {edges}
role = "edge"
{more}
"""


def edge(name: str, *uplinks: int, more: str = "") -> str:
    """Return the configuration of an edge router, with the ports of its interior routers."""
    connectors = "".join(
        f'\n[[connector]]\nname = "uplink-{port}"\nport = {port}\nrole = "edge"\n'
        for port in uplinks
    )
    return f"""\
[router]
id = "{name}"
mode = "edge"
edgeHeartbeatSeconds = 0.5
edgeHeartbeatMaxAgeSeconds = 2
{more}
[[listener]]
port = 0
idleTimeoutSeconds = 120
{connectors}
"""


@attrs.define
class Flow:
    """A sender that sends again what it has been told was not accepted."""

    sender: ProtonSender
    receiver: ProtonReceiver
    open: list[tuple[int, Sent]] = attrs.Factory(list)
    accepted: set[int] = attrs.Factory(set)
    # those that were modified, of which the receiver may have had one
    doubtful: set[int] = attrs.Factory(set)
    begun: int = 0

    def step(self, total: int) -> bool:
        """Send what can be sent; whether all is accepted."""
        still = []
        for number, sent in self.open:
            if not sent.is_settled:
                still.append((number, sent))
            elif sent.outcome == "accepted":
                self.accepted.add(number)
            else:
                assert sent.outcome in ("released", "modified")
                if sent.outcome == "modified":
                    self.doubtful.add(number)
                if self.sender.link.credit > 0:
                    still.append((number, self.sender.send(Message(number), wait=False)))
                else:
                    still.append((number, sent))
        self.open = still
        while self.begun < total and self.sender.link.credit > 0 and len(self.open) < 50:
            self.open.append((self.begun, self.sender.send(Message(self.begun), wait=False)))
            self.begun += 1
        return len(self.accepted) == total

    def check(self, total: int) -> None:
        """Check that all messages came, and came once unless the sender was told `modified`."""
        came = Counter(self.receiver.bodies())
        assert set(came) >= set(range(total))
        twice = {number for number, times in came.items() if times > 1}
        assert twice <= self.doubtful


def flow_between(
    proton: ProtonPeers, source: RouterProcess, to: RouterProcess, address: str
) -> Flow:
    receiver = proton.connect(to.url()).receiver(address, 100_000)
    sender = proton.connect(source.url()).sender(address)
    return Flow(sender, receiver)


def test_clients_of_an_edge_and_of_its_interior(
    proton: ProtonPeers, routers: StartRouter, address: str
) -> None:
    port = free_port()
    centre = routers(interior("I", port))
    first, second = routers(edge("E1", port)), routers(edge("E2", port))
    for source, to in ((first, centre), (centre, first), (first, second), (second, first)):
        name = f"{address}/{source.pid}/{to.pid}"
        flow = flow_between(proton, source, to, name)
        proton.until(partial(flow.step, 500), "all is accepted")
        flow.check(500)
        assert not flow.doubtful


def test_replies_find_their_way_to_an_edge_and_from_it(
    proton: ProtonPeers, routers: StartRouter, address: str
) -> None:
    port = free_port()
    centre = routers(interior("I", port))
    first, second = routers(edge("E1", port)), routers(edge("E2", port))
    for server, client in ((centre, first), (first, centre), (first, second)):
        name = f"{address}/{server.pid}/{client.pid}"
        answering = proton.connect(server.url())
        requests = answering.receiver(name, 10)
        answers = answering.sender(None)
        asking = proton.connect(client.url())
        replies = asking.receiver(None, 10, dynamic=True)
        reply_to = replies.link.remote_source.address
        kind = "_topo/0/I/" if client is centre else f"_edge/E{1 if client is first else 2}/"
        assert reply_to.startswith(f"amqp:/{kind}")
        question = asking.sender(name)
        for number in range(5):
            assert question.outcome(Message(number, reply_to=reply_to)).outcome == "accepted"
            request = requests.get(number + 1)[-1].message
            sent = answers.outcome(Message(number * 2, address=request.reply_to))
            assert sent.outcome == "accepted"
        replies.get(5)
        assert replies.bodies() == [0, 2, 4, 6, 8]


def test_an_edge_is_managed_from_its_interior_and_its_interior_from_it(
    proton: ProtonPeers, routers: StartRouter
) -> None:
    port = free_port()
    centre = routers(interior("I", port))
    ship = routers(edge("E", port))
    for at, node, name in ((centre, "_edge/E", "E"), (ship, "_topo/0/I", "I")):
        asking = proton.connect(at.url())
        replies = asking.receiver(None, 10, dynamic=True)
        question = Message(
            [],
            reply_to=replies.link.remote_source.address,
            properties={"operation": "QUERY", "entityType": "router", "name": "self"},
        )
        question.body = {"attributeNames": ["id", "mode"]}
        sender = asking.sender(f"{node}/$management")
        assert sender.outcome(question).outcome == "accepted"
        (answer,) = replies.get(1)
        assert answer.body["results"][0][0] == name


def test_another_uplink_takes_over_when_the_interior_is_killed(
    proton: ProtonPeers, routers: StartRouter, address: str
) -> None:
    ports = [free_port(), free_port(), free_port()]
    mesh = f'[[listener]]\nport = {ports[2]}\nrole = "inter-router"\n'
    dials = f'[[connector]]\nport = {ports[2]}\nrole = "inter-router"\n'
    one = routers(interior("I1", ports[0], mesh))
    two = routers(interior("I2", ports[1], dials))
    ship = routers(edge("E", ports[0], ports[1]))
    up = flow_between(proton, ship, two, f"{address}/up")
    down = flow_between(proton, two, ship, f"{address}/down")
    flows = (up, down)
    proton.until(lambda: all(flow.step(300) for flow in flows), "the first are accepted")
    killed = False
    total = 3000

    def all_done() -> bool:
        nonlocal killed
        if not killed and min(len(flow.accepted) for flow in flows) > 1000:
            one.process.send_signal(signal.SIGKILL)
            killed = True
        return all(flow.step(total) for flow in flows)

    proton.until(all_done, "all is accepted")
    assert killed
    for flow in flows:
        flow.check(total)
    assert "uplink in use" in ship.log_text()


def test_an_interior_that_stands_still_is_given_up_and_nothing_is_lost(
    proton: ProtonPeers, routers: StartRouter, address: str
) -> None:
    ports = [free_port(), free_port()]
    one = routers(interior("I1", ports[0]))
    two = routers(interior("I2", ports[1]))
    ship = routers(edge("E", ports[0], ports[1]))
    flow = flow_between(proton, ship, one, address)
    proton.until(lambda: flow.step(200), "the first are accepted")
    one.process.send_signal(signal.SIGSTOP)
    try:
        other = flow_between(proton, ship, two, address)
        other.sender = flow.sender
        flow.receiver = other.receiver
        proton.until(lambda: flow.step(400), "the others are accepted")
        assert set(other.receiver.bodies()) >= set(range(250, 400))
    finally:
        one.process.send_signal(signal.SIGCONT)
    proton.until(lambda: ship.log_text().count("standby") >= 2, "the first one stands by")
    # in the words that interior routers have for it
    assert "trioute:neighbour-silent" in ship.log_text()


def test_an_edge_that_is_restarted_is_taken_back(
    proton: ProtonPeers, routers: StartRouter, address: str
) -> None:
    port = free_port()
    centre = routers(interior("I", port))
    ship = routers(edge("E", port))
    flow = flow_between(proton, centre, ship, address)
    proton.until(lambda: flow.step(100), "the first are accepted")
    ship.process.send_signal(signal.SIGKILL)
    proton.until(lambda: flow.sender.drains > 0, "the sender is told that nobody receives")
    again = routers(edge("E", port))
    flow.receiver = proton.connect(again.url()).receiver(address, 1000)
    proton.until(lambda: flow.step(200), "the others are accepted")
    assert set(flow.receiver.bodies()) >= set(range(100, 200))


def test_what_is_held_goes_up_when_the_uplink_is_back(
    proton: ProtonPeers, routers: StartRouter, address: str
) -> None:
    port = free_port()
    centre = routers(interior("I", port))
    ship = routers(edge("E", port) + f'[[address]]\nprefix = "{address}"\nholdSeconds = 30\n')
    receiver = proton.connect(centre.url()).receiver(address, 100)
    sender = proton.connect(ship.url()).sender(address)
    assert sender.outcome(Message(0)).outcome == "accepted"
    centre.process.send_signal(signal.SIGKILL)
    proton.until(lambda: "reconnecting" in ship.log_text(), "the uplink is gone")
    for number in range(1, 20):
        sender.send(Message(number))
    proton.run_for(0.5)
    assert not sender.sent[-1].is_settled
    back = routers(interior("I", port))
    receiver = proton.connect(back.url()).receiver(address, 100)
    proton.until(sender.all_settled, "all is settled")
    assert set(sender.outcomes) == {"accepted"}
    assert receiver.bodies() == list(range(1, 20))
