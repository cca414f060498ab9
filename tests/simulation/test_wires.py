"""Octets on a simulated wire arrive complete, in order and on time, or not at all."""

from __future__ import annotations

from random import Random
from typing import Any

from router.simulation.links import ReceiverPlan, SenderPlan
from router.simulation.network import Network
from router.simulation.virtual_clock import START_S, EventScheduler
from router.simulation.wires import CAPACITY_BYTES, Distance, WireDirection


class Ear:
    """Notes what arrives when, in place of an end."""

    def __init__(self, scheduler: EventScheduler) -> None:
        self.scheduler = scheduler
        self.heard: list[tuple[float, bytes | None]] = []

    def arrived(self, octets: bytes | None) -> None:
        """Note it."""
        self.heard.append((round(self.scheduler.now - START_S, 6), octets))


def way(
    delay_s: float, jitter_s: float = 0.0, octets_per_s: float | None = None
) -> tuple[EventScheduler, WireDirection, Ear]:
    """Create a wire direction that ends at an ear; return them with their scheduler."""
    scheduler = EventScheduler()
    made = WireDirection(scheduler, Distance(delay_s, jitter_s, octets_per_s), Random(7))
    ear: Any = Ear(scheduler)
    made.end = ear
    return scheduler, made, ear


def test_octets_take_their_time() -> None:
    scheduler, made, ear = way(0.5)
    made.carry(b"one")
    scheduler.run(START_S + 1)
    made.carry(b"two")
    made.carry(None)
    scheduler.run(START_S + 2)

    assert ear.heard == [(0.5, b"one"), (1.5, b"two"), (1.5, None)]


def test_chance_does_not_change_the_order() -> None:
    scheduler, made, ear = way(0.1, 1.0)
    sent = [bytes([number]) for number in range(100)]
    for each in sent:
        made.carry(each)
    scheduler.run(START_S + 5)

    assert [octets for _, octets in ear.heard] == sent
    assert ear.heard[-1][0] > 0.9


def test_octets_leave_one_after_the_other_as_fast_as_the_bandwidth_lets_them() -> None:
    scheduler, made, ear = way(0.1, octets_per_s=10)
    made.carry(b"12345")
    made.carry(b"67890")
    scheduler.run(START_S + 3)
    made.carry(b"1")
    made.carry(None)
    scheduler.run(START_S + 4)
    assert ear.heard == [(0.6, b"12345"), (1.1, b"67890"), (3.2, b"1"), (3.2, None)]


def test_a_way_that_is_cut_holds_everything_up_and_one_that_is_dropped_loses_it() -> None:
    scheduler, made, ear = way(0.1)
    made.cut()
    made.carry(b"late")
    scheduler.run(START_S + 1)
    assert ear.heard == []
    made.heal()
    assert ear.heard == [(1.0, b"late")]

    made.carry(b"lost")
    made.drop()
    scheduler.run(START_S + 2)
    assert len(ear.heard) == 1


def test_who_does_not_read_holds_the_sender_back_and_nothing_is_lost() -> None:
    network = Network()
    host = network.add("a")
    sender = network.container("sender", "a")
    receiver = network.container("receiver", "a")
    left = [400]
    got: list[int] = []

    def send() -> None:
        live = plan.sender()
        while live is not None and left[0] and live.has_room():
            left[0] -= 1
            live.send_nowait(b"\x00Su\xb0\x00\x00\x40\x00" + b"." * 16384)

    def take(received: Any) -> None:
        got.append(len(received.payload))
        received.accept()

    plan = SenderPlan("q", send, lambda _: None)
    receiver.add_receiver(ReceiverPlan("q", take, credit=400))
    network.start()
    network.run(1)
    host.pause()
    sender.add_sender(plan)
    network.run(1)
    host.resume()
    network.run(1)
    host.pause()
    left[0] += 400
    send()
    network.run(1)
    ends = [end for end in host.ends if end.connection.name == "sender"]
    way_in: Any = ends[0]._incoming
    assert way_in.under_way <= CAPACITY_BYTES

    host.resume()
    network.run(5)
    assert got == [16392] * 800
