"""Which links an edge attaches for its clients: what goes up, and what comes down."""

from __future__ import annotations

from functools import partial

import pytest

from router.amqp.performatives import Target
from router.amqp.types import Symbol
from router.client.receiver import ReceivedMessage
from router.config.model import AddressSettings
from router.control.edge.messages import InteriorAddress, Reached
from router.control.link_supervisor import Status
from router.core.model.address import CLOSEST, MULTICAST
from router.core.network.proxy_links import Proxy
from router.simulation.links import ReceiverPlan

from support.edges import World, one_interior
from support.mesh import Mesh
from support.turns import longest, turns_of
from support.waypoints import message, texts


def test_an_edge_receives_what_is_sent_at_its_interior() -> None:
    world = one_interior("E")
    inbox = world.receiver("E", "q")
    sender = world.sender("I", "q")
    world.run(1)
    world.offer(sender, 250)
    assert sender.count() == {"accepted": 250}
    assert len(world.received[inbox]) == 250
    world.check()


def test_what_is_sent_at_an_edge_is_received_at_the_interior() -> None:
    world = one_interior("E")
    sender = world.sender("E", "q")
    world.run(1)
    assert sender.credit == 0
    inbox = world.receiver("I", "q")
    world.run(1)
    world.offer(sender, 250)
    assert sender.count() == {"accepted": 250}
    assert len(world.received[inbox]) == 250
    world.check()


def test_one_edge_sends_to_another() -> None:
    world = one_interior("E1", "E2")
    inbox = world.receiver("E2", "q")
    sender = world.sender("E1", "q")
    world.run(1)
    world.offer(sender, 100)
    assert sender.count() == {"accepted": 100}
    assert len(world.received[inbox]) == 100
    world.check()


def test_local_traffic_stays_local() -> None:
    world = one_interior("E", default_distribution="closest")
    world.receiver("E", "q")
    far = world.receiver("I", "q")
    sender = world.sender("E", "q")
    world.run(1)
    world.offer(sender, 100)
    assert sender.count() == {"accepted": 100}
    assert world.received[far] == []
    world.check()


def test_one_link_serves_all_clients_of_an_address() -> None:
    world = one_interior("E")
    for _ in range(5):
        world.receiver("E", "q")
        world.sender("E", "r")
    world.receiver("I", "r")
    world.run(1)
    proxies = [line.proxy for line in world.edge_at("E").proxies.lines.every()]
    assert sorted((each.name, each.receives) for each in proxies) == [("q", True), ("r", False)]


def test_links_go_when_nobody_needs_them() -> None:
    world = one_interior("E")
    world.receiver("E", "q", "one")
    world.sender("E", "r")
    world.receiver("I", "r")
    world.run(1)
    for container in world.network.containers.values():
        if container.host.name == "E":
            container.close()
    world.run(2)
    edge = world.edge_at("E")
    assert [line.proxy.name for line in edge.proxies.lines.every()] == ["r"]
    world.run(15)
    assert list(edge.proxies.lines.every()) == []
    assert not edge.proxies.lines.leaving
    assert not edge.proxies.watched
    assert not world.edges_of("I").watching.by_key
    assert len(world.host("E").forwarder.table) == 0


def test_what_an_anonymous_sender_sends_goes_up() -> None:
    world = one_interior("E")
    inbox = world.receiver("I", "q")
    sender = world.sender("E", None, to="q")
    world.run(1)
    world.offer(sender, 20)
    assert sender.count() == {"accepted": 20}
    assert len(world.received[inbox]) == 20
    world.run(30)
    assert list(world.edge_at("E").proxies.lines.every()) == []
    assert len(world.host("E").forwarder.table) == 0
    world.check()


def test_edges_that_only_receive_hold_no_credit() -> None:
    world = one_interior("E1", "E2", "E3")
    inboxes = [world.receiver(edge, "q", credit=10) for edge in ("E1", "E2")]
    sender = world.sender("E3", "q")
    world.run(1)
    # all that the receivers have granted, where somebody sends
    assert sender.credit == 20
    senders = {
        edge: [line.proxy for line in world.edge_at(edge).proxies.lines.every()]
        for edge in ("E1", "E2", "E3")
    }
    assert senders == {
        "E1": [Proxy("q", 0, True)],
        "E2": [Proxy("q", 0, True)],
        "E3": [Proxy("q", 0, False)],
    }
    world.offer(sender, 100)
    assert [len(world.received[inbox]) for inbox in inboxes] == [50, 50]
    world.check()


def two_edges_of_multicasts() -> World:
    """Return an interior and two edges, where addresses that begin with m are multicast."""
    rule = AddressSettings(prefix="m", distribution="multicast")
    world = World()
    world.interior("I", addresses=(rule,))
    for edge in ("E1", "E2"):
        world.edge(edge, "I", addresses=(rule,))
    world.start()
    return world


def test_single_messages_to_all_get_to_those_beyond_who_receives_here_as_well() -> None:
    world = two_edges_of_multicasts()
    inboxes = [world.receiver(edge, "m", credit=10) for edge in ("E1", "E2")]
    sender = world.sender("E1", None, to="m")
    world.run(1)
    lines = world.edge_at("E1").proxies.lines
    assert [line.proxy for line in lines.every()] == [Proxy("m", 0, True)]
    for times in (1, 2):
        world.offer(sender, 20)
        assert [len(world.received[inbox]) for inbox in inboxes] == [20 * times] * 2
        assert Proxy("m", 0, False) in [line.proxy for line in lines.every()]
        # once nobody has sent for a while, the link goes
        world.run(15)
        assert [line.proxy for line in lines.every()] == [Proxy("m", 0, True)]


def test_copies_for_those_beyond_wait_as_long_as_it_takes() -> None:
    world = two_edges_of_multicasts()
    inbox = world.receiver("E1", "m")
    late: list[bytes] = []

    def take(received: ReceivedMessage) -> None:
        late.append(received.payload)
        received.accept()

    plan = ReceiverPlan("m", take, credit=0)
    container = world.network.container("late", "E2")
    container.add_receiver(plan)
    container.start()
    sender = world.sender("E1", None, to="m")
    world.run(1)
    world.offer(sender, 3)
    assert len(world.received[inbox]) == 3
    # far longer than a link is kept by which nothing goes
    world.run(25)
    assert sender.count() == {}
    assert plan.live is not None
    plan.live.session.grant(plan.live.link, 10, False)
    plan.live.client.schedule_output()
    world.run(1)
    assert len(late) == 3
    assert sender.count() == {"accepted": 3}


@pytest.mark.parametrize("sender_at", ["I", "J", "E2", "E"])
@pytest.mark.parametrize(
    ("receiver_at", "capability"),
    [
        ("E", "qd.waypoint"),
        ("I", "qd.fallback"),
        ("J", "qd.fallback"),
        ("E", "qd.fallback"),
    ],
)
def test_who_receives_at_another_phase_is_found(
    sender_at: str, receiver_at: str, capability: str
) -> None:
    rules = (
        AddressSettings(prefix="queue", ingress_phase=0, egress_phase=1),
        AddressSettings(prefix="left", enable_fallback=True),
    )
    world = World()
    world.interior("I", addresses=rules)
    world.interior("J", addresses=rules)
    world.between("I", "J")
    world.edge("E", "I", addresses=rules)
    world.edge("E2", "J", addresses=rules)
    world.start()
    address = "queue.a" if capability == "qd.waypoint" else "left.a"
    # the sender comes first, and waits
    sender = world.sender(sender_at, address)
    world.run(2)
    inbox = world.receiver(receiver_at, address, credit=10, capability=capability)
    world.run(2)
    world.offer(sender, 20)
    assert sender.count() == {"accepted": 20}
    assert len(world.received[inbox]) == 20
    world.check()


def test_what_is_for_nobody_is_released() -> None:
    world = one_interior("E")
    sender = world.sender("E", None, to="nobody")
    world.run(1)
    for total in (20, 40):
        world.offer(sender, 20)
        assert sender.count() == {"released": total}
    assert world.edge_at("E").uplinks.losses == 0
    world.run(30)
    assert len(world.host("E").forwarder.table) == 0


def test_a_multicast_comes_once_however_many_uplinks_are_active() -> None:
    world = World()
    rule = AddressSettings(prefix="m", distribution="multicast")
    world.interior("I1", addresses=(rule,))
    world.interior("I2", addresses=(rule,))
    world.edge("E", "I1", "I2", active_uplinks=2, addresses=(rule,))
    world.start()
    inbox = world.receiver("E", "m")
    beyond = world.receiver("I1", "m")
    far = world.receiver("I2", "m")
    sender = world.sender("E", "m")
    world.run(1)
    world.offer(sender, 10)
    assert len(world.received[inbox]) == 10
    # without a way between them, only what the primary leads to
    assert sorted(len(world.received[each]) for each in (beyond, far)) == [0, 10]


def test_who_is_multicast_to_hears_no_echo() -> None:
    world = World()
    rule = AddressSettings(prefix="m", distribution="multicast")
    world.interior("I", addresses=(rule,))
    for edge in ("E1", "E2"):
        world.edge(edge, "I", addresses=(rule,))
    world.start()
    inboxes = [world.receiver(router, "m") for router in ("E1", "E1", "E2", "I")]
    senders = [world.sender(router, "m") for router in ("E1", "E2", "I")]
    world.run(1)
    for sender in senders:
        world.offer(sender, 10)
    assert [len(world.received[each]) for each in inboxes] == [30] * 4


def test_an_edge_treats_an_address_as_its_interior_does_where_it_has_no_rule() -> None:
    world = World()
    world.interior("I", addresses=(AddressSettings(prefix="m", distribution="multicast"),))
    world.edge("E", "I")
    world.start()
    inboxes = [world.receiver("E", "m") for _ in range(3)]
    sender = world.sender("I", "m")
    world.run(1)
    world.offer(sender, 10)
    assert [len(world.received[each]) for each in inboxes] == [10] * 3
    near = world.sender("E", "m")
    world.run(1)
    world.offer(near, 10)
    assert [len(world.received[each]) for each in inboxes] == [20] * 3


@pytest.mark.parametrize("name", ["/", "x" * 8001])
def test_names_that_cannot_be_told_are_this_edges_own(name: str) -> None:
    world = one_interior("E")
    world.sender("E", name)
    inbox = world.receiver("E", name)
    sender = world.sender("E", None, to=name)
    world.run(1)
    world.offer(sender, 3)
    assert len(world.received[inbox]) == 3
    assert list(world.edge_at("E").proxies.lines.every()) == []
    assert world.edge_at("E").uplinks.losses == 0


# Topics that were made for one link.


@pytest.mark.parametrize("at", ["a", "e"])
def test_a_topic_has_senders_at_edges_and_at_their_interior(at: str) -> None:
    mesh = Mesh("a", "e", "f")
    mesh["a"].forwarder.network.turn_on()
    for edge in "ef":
        mesh.uplink(edge, "a")
    place = "_edge/e" if at == "e" else "_topo/0/a"
    mesh[at].table._new_name = f"amqp:/{place}/temp.{{}}".format
    target = Target(dynamic=True, capabilities=(Symbol("temporary-topic"),))
    maker = mesh[at].client().sender(None, target=target)
    assert maker.attach is not None
    assert isinstance(maker.attach.target, Target)
    topic = maker.attach.target.address
    assert topic is not None
    receivers = [mesh[at].client().receiver(topic, 10) for _ in range(2)]
    mesh.settle()
    senders = [mesh[name].client().sender(topic) for name in "aef"]
    senders += [mesh[name].client().sender(None) for name in "aef"]
    mesh.settle()
    bodies = [f"from {number}" for number in range(len(senders))]
    for sender, body in zip(senders, bodies, strict=True):
        sender.send(message(body, topic))
        mesh.settle()
    for receiver in receivers:
        assert sorted(texts(receiver)) == bodies


# So many addresses are in use at an edge, and so many of them are looked at in a turn at most.
MANY = 300
MOST = 80


def sending_up(count: int) -> World:
    """Return an edge with senders to `count` addresses that have receivers at its interior."""
    world = one_interior("E")
    for number in range(count):
        world.sender("E", f"q{number}")
        world.receiver("I", f"q{number}")
    world.run(5)
    assert active(world) == count
    return world


def active(world: World) -> int:
    """How many links lead up."""
    lines = world.edge_at("E").proxies.lines.every()
    return sum(line.status is Status.ACTIVE for line in lines)


def seen(world: World) -> list[str]:
    """Record the addresses that the proxies look at from now on."""
    found: list[str] = []
    proxies = world.edge_at("E").proxies
    see_to = proxies._update_links

    def see(key: str) -> None:
        found.append(key)
        see_to(key)

    proxies._update_links = see  # type: ignore[method-assign]
    return found


def test_an_uplink_is_lost_and_comes_back_in_several_turns() -> None:
    world = sending_up(MANY)
    found = seen(world)
    with turns_of(world.host("E"), lambda: len(found)) as counts:
        world.host("I").kill()
        world.run(1)
        assert len(set(found)) == MANY
        found_before = len(found)
        world.host("I").start()
        world.run(15)
    assert longest(counts) <= MOST
    assert len(found) > found_before + MANY
    assert active(world) == MANY
    for sender in world.offerings:
        world.offer(sender, 1, 0)
    world.run(2)
    assert all(sender.count() == {"accepted": 1} for sender in world.offerings)
    world.check()


def test_what_is_watched_is_told_to_an_uplink_in_several_turns() -> None:
    world = sending_up(MANY)
    proxies = world.edge_at("E").proxies
    host = world.host("E")
    (connection,) = proxies.reported_states
    said: list[tuple[str, bool]] = []
    proxies._watch = lambda _, changes: said.extend(changes)
    proxies._telling._deferred.left = 0
    host.turn(lambda: proxies.use([]))
    host.turn(lambda: proxies.use([connection]))
    assert len(said) < MANY
    world.run(0.1)
    last = dict(said)
    assert last == dict.fromkeys(proxies.watched, True)


def test_very_many_that_are_idle_are_given_up_in_later_turns() -> None:
    world = one_interior("E")
    sender = world.sender("E", None, to="q")
    world.run(1)
    proxies = world.edge_at("E").proxies
    host = world.host("E")

    def watch() -> None:
        for number in range(1000):
            proxies._update_watching(f"M0idle{number}", True)
            proxies._update_watching(f"M0idle{number}", False)

    host.turn(watch)
    assert len(proxies.idle) == 1000
    with turns_of(host, lambda: len(proxies.idle)) as counts:
        world.run(11)
    assert counts[-1] == 0
    assert longest(counts) <= 160
    assert not proxies.watched
    world.offer(sender, 1)
    assert sender.count() == {"released": 1}


def test_what_is_treated_otherwise_beyond_is_treated_so_here() -> None:
    world = one_interior("E")
    world.sender("E", "q")
    world.run(1)
    host, proxies = world.host("E"), world.edge_at("E").proxies
    (connection,) = proxies.reported_states
    address = host.forwarder.table.in_use("q")
    assert address is not None
    for treatment in (CLOSEST, MULTICAST, CLOSEST):
        message = Reached((InteriorAddress("M0q", True, treatment),))
        host.turn(partial(proxies.reached, connection, message))
        host.turn(proxies.finish)
        world.run(0.1)
        assert address.treatment == treatment
