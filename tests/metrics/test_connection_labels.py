"""Labels go to connections that have lasted, and no series of a connection ever falls."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

from router.amqp.performatives import Open
from router.engine.connection import Connection
from router.metrics import reading
from router.metrics.address_labels import LONGEST_LABEL, AddressLabels
from router.metrics.connection_labels import LABELS, MIN_AGE_S, OTHERS, ConnectionLabels, labels_of
from router.metrics.reading import Reading, take_reading
from router.net.connection_counters import ConnectionCounters
from router.net.router_hub import RouterHub

from support.readings import idle_hub
from support.transcripts import server_settings

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("connect"), st.booleans()),
        st.tuples(st.just("carry"), st.integers(0, 9)),
        st.tuples(st.just("end"), st.integers(0, 9)),
        st.tuples(st.just("wait"), st.sampled_from([0.0, MIN_AGE_S / 2, MIN_AGE_S])),
        st.tuples(st.just("read"), st.just(0)),
    ),
    max_size=50,
)


@attrs.define(eq=False)
class Carried:
    """A connection without a socket."""

    connection: Connection
    counters: ConnectionCounters


class Connections:
    """A hub whose connections come, carry octets and go as a test says."""

    def __init__(self, limit: int) -> None:
        self.hub: Any = idle_hub()
        self.hub.turn.now = 1000.0
        self.endpoints = [self.hub.add_counters("amqp", way, "normal") for way in ("in", "out")]
        self.labels = ConnectionLabels(self.hub, limit)
        self.made = 0
        # octets of all that there were, by endpoint
        self.carried = {"in": 0, "out": 0}

    def connect(self, *, is_client: bool = False, container: str = "peer") -> int:
        """Open a connection and return its number."""
        hub: RouterHub = self.hub
        connection = Connection(server_settings(), hub.forwarder, hub.turn, "peer", is_client)
        connection.remote_open = Open(container)
        connection.user = "someone"
        self.made += 1
        self.hub.pumps[self.made] = Carried(connection, self.endpoints[is_client])
        return self.made

    def carry(self, number: int, count: int) -> None:
        """Let octets in and as many out."""
        pump = self.hub.pumps[number]
        pump.connection.received_bytes += count
        pump.connection.sent_bytes += count
        self.carried[pump.counters.direction] += count

    def wait(self, seconds: float = MIN_AGE_S) -> None:
        """Let time pass."""
        self.hub.turn.now += seconds

    def read(self) -> Reading:
        """Take a reading of the metrics."""
        addresses = AddressLabels(self.hub.table, 0)
        return take_reading(self.hub, addresses, self.labels, 0.0)

    def read_in_steps(self) -> Generator[None, None, Reading]:
        """Take a reading of the metrics, with a step for each connection."""
        addresses = AddressLabels(self.hub.table, 0)
        return reading.read_in_steps(self.hub, addresses, self.labels, 0.0)

    def shown(self) -> set[str]:
        """Return the connections that have labels of their own."""
        return {each.labels[0] for each in self.read().connections if each.labels != OTHERS}


def test_who_has_not_lasted_has_no_label() -> None:
    connections = Connections(10)
    connections.connect()
    assert connections.shown() == set()
    connections.wait(MIN_AGE_S - 1)
    connections.connect()
    assert connections.shown() == set()
    connections.wait(1)
    assert connections.shown() == {"1"}


def test_a_connection_that_is_not_open_has_no_label() -> None:
    connections = Connections(10)
    number = connections.connect()
    connections.hub.pumps[number].connection.remote_open = None
    connections.wait()
    assert connections.shown() == set()


def test_connectors_come_first_and_then_the_busiest() -> None:
    connections = Connections(2)
    for _ in range(4):
        connections.connect()
    connections.connect(is_client=True)
    connections.carry(3, 10)
    connections.wait()
    assert connections.shown() == {"3", "5"}


def test_a_free_label_goes_to_who_came_after() -> None:
    connections = Connections(1)
    connections.connect()
    connections.connect()
    connections.carry(1, 5)
    connections.wait()
    assert connections.shown() == {"1"}
    connections.hub.leave(1)
    connections.connect()
    # the second found none free, and what it carries has been told among the others
    assert connections.shown() == set()
    connections.wait()
    assert connections.shown() == {"3"}


def test_who_was_there_when_nothing_was_shown_may_be_shown_later() -> None:
    connections = Connections(0)
    connections.connect()
    connections.wait()
    assert connections.shown() == set()
    connections.labels.limit = 1
    assert connections.shown() == {"1"}


def test_labels_say_whose_it_is() -> None:
    connections = Connections(1)
    number = connections.connect(container="c" * 1000)
    labels = labels_of(number, connections.hub.pumps[number])
    assert len(labels) == len(LABELS)
    assert (labels[0], labels[1], labels[3]) == ("1", "amqp", "someone")
    assert len(labels[2]) == LONGEST_LABEL


def test_gauges_of_all_add_up_whoever_has_a_label() -> None:
    connections = Connections(1)
    for _ in range(3):
        number = connections.connect()
        connections.hub.pumps[number].connection.held_bytes = 7
    connections.wait()
    connections.connect()
    reading = connections.read()
    assert [each.held_bytes for each in reading.connections] == [7, 14]


@given(STEPS, st.integers(0, 3))
def test_no_series_ever_falls(steps: list[tuple[str, Any]], limit: int) -> None:
    connections = Connections(limit)
    before: dict[str, int] = {}
    endpoints_before = {"in": 0, "out": 0}
    for step, what in [*steps, ("read", 0)]:
        present = list(connections.hub.pumps)
        if step == "connect":
            connections.connect(is_client=what)
        elif step == "wait":
            connections.wait(what)
        elif step == "carry" and present:
            connections.carry(present[what % len(present)], what)
        elif step == "end" and present:
            connections.hub.leave(present[what % len(present)])
        elif step == "read":
            reading = connections.read()
            series = {each.labels[0]: each.traffic.received_bytes for each in reading.connections}
            assert len(series) == len(reading.connections) <= limit + 1
            for number, octets in series.items():
                assert octets >= before.get(number, 0)
            for number in before.keys() - series.keys():
                assert int(number) not in connections.hub.pumps
            before = series
            endpoints = {e.counters.direction: e.traffic.received_bytes for e in reading.endpoints}
            # whatever has ended is in here, and nothing twice
            assert endpoints == connections.carried
            assert all(endpoints[way] >= endpoints_before[way] for way in endpoints)
            endpoints_before = endpoints


@given(STEPS, st.integers(0, 3))
def test_no_series_falls_that_is_read_while_it_changes(
    steps: list[tuple[str, Any]], limit: int
) -> None:
    connections = Connections(limit)
    before: dict[str, int] = {}
    totals_before = {"in": 0, "out": 0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "CONNECTIONS_AT_ONCE", 1)
        for _ in range(3):
            walk = connections.read_in_steps()
            for step, what in steps:
                present = list(connections.hub.pumps)
                if step == "connect":
                    connections.connect(is_client=what)
                elif step == "wait":
                    connections.wait(what)
                elif step == "carry" and present:
                    connections.carry(present[what % len(present)], what)
                elif step == "end" and present:
                    connections.hub.leave(present[what % len(present)])
                elif step == "read":
                    # others have had their turn; one step more
                    with contextlib.suppress(StopIteration):
                        next(walk)
            read = exhausted(walk) or connections.read()
            series = {each.labels[0]: each.traffic.received_bytes for each in read.connections}
            for number in before.keys() & series.keys():
                assert series[number] >= before[number]
            totals = {e.counters.direction: e.traffic.received_bytes for e in read.endpoints}
            for way, total in totals.items():
                assert totals_before[way] <= total <= connections.carried[way]
            before, totals_before = series, totals
    # and when it stands still, all has been counted, once
    after = {e.counters.direction: e.traffic.received_bytes for e in connections.read().endpoints}
    assert after == connections.carried


def exhausted(walk: Generator[None, None, Reading]) -> Reading | None:
    """Run a walk to its end and return its reading, None if it had ended already."""
    while True:
        try:
            next(walk)
        except StopIteration as over:
            found: Reading | None = over.value
            return found


def test_very_many_connections_are_looked_at_in_several_steps() -> None:
    connections = Connections(limit=1)
    for _ in range(2500):
        connections.connect()
    now = connections.hub.turn.now + MIN_AGE_S
    steps = connections.labels.assign_in_steps(now)
    next(steps)
    assert connections.hub.individually_shown == set()
    # one that ends meanwhile gets no label
    del connections.hub.pumps[1]
    assert len(list(steps)) == 1
    assert len(connections.hub.individually_shown) == 1
    assert connections.hub.individually_shown.isdisjoint({1})
    assert len(connections.labels.late) == 2498
