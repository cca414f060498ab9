"""Labels go to the busiest, are never taken back, and no count ever changes its series."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, strategies as st

from router.core.addresses.table import AddressTable
from router.metrics import reading
from router.metrics.address_labels import LONGEST_LABEL, OTHER, AddressLabels, label_of
from router.metrics.connection_labels import ConnectionLabels
from router.metrics.reading import Reading, take_reading
from router.net.router_hub import RouterHub


def new_table() -> AddressTable:
    numbers = iter(range(1000))
    return AddressTable([], "balanced", lambda _: f"amqp:/_topo/0/here/temp.{next(numbers)}")


def deliver(table: AddressTable, name: str, count: int) -> None:
    address = table.enter(name)
    assert address is not None
    address.counters.ingress += count


def forget(table: AddressTable, name: str) -> None:
    address = table.enter(name)
    assert address is not None
    table.leave(address)


def test_the_busiest_get_what_there_is() -> None:
    table = new_table()
    for name, count in {"slow": 1, "busy": 9, "idle": 0, "brisk": 5}.items():
        deliver(table, name, count)
    AddressLabels(table, 2).assign()
    assert set(table.kept) == {"busy", "brisk"}


def test_very_many_addresses_are_looked_at_in_several_steps() -> None:
    table = new_table()
    for number in range(2500):
        deliver(table, f"q{number}", number)
    steps = AddressLabels(table, 2).assign_in_steps()
    next(steps)
    assert table.kept == {}
    # one that goes meanwhile gets no label, however busy it was
    forget(table, "q2499")
    assert len(list(steps)) == 1
    assert set(table.kept) == {"q2497", "q2498"}


def test_a_label_stays_however_busy_others_become() -> None:
    table = new_table()
    labels = AddressLabels(table, 1)
    deliver(table, "first", 1)
    labels.assign()
    deliver(table, "second", 1000)
    forget(table, "first")
    labels.assign()
    assert set(table.kept) == {"first"}


def test_an_idle_address_gets_a_label_while_there_are_any() -> None:
    table = new_table()
    labels = AddressLabels(table, 3)
    deliver(table, "idle", 0)
    labels.assign()
    deliver(table, "later", 0)
    labels.assign()
    assert set(table.kept) == {"idle", "later"}


def test_dynamic_addresses_get_none() -> None:
    table = new_table()
    text, address = table.create_dynamic("c", "a")
    labels = AddressLabels(table, 5)
    labels.assign()
    # somebody still uses the name after its node is gone
    table.leave(address)
    deliver(table, text, 3)
    labels.assign()
    assert table.kept == {}


def test_what_a_labelled_address_counted_is_kept_for_it() -> None:
    table = new_table()
    deliver(table, "orders", 1)
    AddressLabels(table, 1).assign()
    for _ in range(3):
        deliver(table, "orders", 10)
        forget(table, "orders")
    deliver(table, "rest", 5)
    forget(table, "rest")
    assert table.kept["orders"].ingress == 31
    assert table.retired.ingress == 5
    assert table.total().ingress == 36


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("orders", "orders"),
        ("", "/"),
        ("other", "/other"),
        ("others", "others"),
        ("x" * LONGEST_LABEL, "x" * LONGEST_LABEL),
    ],
)
def test_what_an_address_is_called(name: str, label: str) -> None:
    assert label_of(name) == label


def test_long_addresses_are_cut_and_told_apart() -> None:
    names = ["x" * 500 + end for end in "abc"]
    labels = {label_of(name) for name in names}
    assert len(labels) == 3
    assert {len(label) for label in labels} == {LONGEST_LABEL}
    assert all(label.startswith("xxxx") for label in labels)


NAMES = ["a", "b", "c", "d", "other", ""]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("deliver"), st.sampled_from(NAMES), st.integers(0, 9)),
        st.tuples(st.just("forget"), st.sampled_from(NAMES), st.just(0)),
        st.tuples(st.just("dynamic"), st.just(""), st.integers(0, 9)),
        st.tuples(st.just("nowhere"), st.just(""), st.integers(0, 9)),
        st.tuples(st.just("read"), st.just(""), st.just(0)),
    ),
    max_size=40,
)


def change(table: AddressTable, step: str, name: str, count: int) -> None:
    """Let something happen."""
    if step == "deliver":
        deliver(table, name, count)
    elif step == "forget":
        forget(table, name)
    elif step == "dynamic":
        _, address = table.create_dynamic("c", "a")
        address.counters.ingress += count
        table.leave(address)
    elif step == "nowhere":
        table.unused.counters.ingress += count


def ingress(read: Reading) -> dict[str, int]:
    """Return the ingress count of each label in a reading."""
    series = {each.label: each.counters.ingress for each in read.addresses}
    assert len(series) == len(read.addresses)
    assert sum(series.values()) == read.counters.ingress
    return series


def read_after(
    table: AddressTable, limit: int, steps: list[tuple[str, str, int]]
) -> Iterator[dict[str, int]]:
    """Yield the ingress counts by label of each reading that the steps ask for."""
    hub = RouterHub(table, 2**20, 65536)
    labels, none = AddressLabels(table, limit), ConnectionLabels(hub, 0)
    for step, name, count in [*steps, ("read", "", 0)]:
        if step == "read":
            series = ingress(take_reading(hub, labels, none, 0.0))
            assert sum(series.values()) == table.total().ingress
            yield series
        elif step == "limit":
            labels.limit = count
        else:
            change(table, step, name, count)


@given(STEPS, st.integers(0, 4))
def test_no_series_ever_ends_or_falls(steps: list[tuple[str, str, int]], limit: int) -> None:
    table = new_table()
    before: dict[str, int] = {}
    for series in read_after(table, limit, steps):
        assert OTHER in series
        assert len(series) <= limit + 1
        for label, value in before.items():
            assert series[label] >= value
        before = series


@given(st.lists(st.tuples(STEPS, st.integers(0, 9)), max_size=4))
def test_no_series_falls_when_the_limit_changes(
    periods: list[tuple[list[tuple[str, str, int]], int]],
) -> None:
    steps = [
        step
        for before, limit in periods
        for step in (*before, ("read", "", 0), ("limit", "", limit))
    ]
    before: dict[str, int] = {}
    for series in read_after(new_table(), 0, steps):
        for label, value in before.items():
            assert series[label] >= value
        before = series


def test_addresses_get_labels_when_the_limit_is_raised() -> None:
    table = new_table()
    hub = RouterHub(table, 2**20, 65536)
    labels, none = AddressLabels(table, 0), ConnectionLabels(hub, 0)
    deliver(table, "a", 5)
    address = table.in_use("a")
    assert address is not None
    address.counters.count_forwarded(0.1, 2)
    assert ingress(take_reading(hub, labels, none, 0.0)) == {OTHER: 5}
    labels.limit = 1
    assert ingress(take_reading(hub, labels, none, 0.0)) == {"a": 0, OTHER: 5}
    deliver(table, "a", 2)
    address.counters.count_forwarded(0.1, 1)
    read = take_reading(hub, labels, none, 0.0)
    assert ingress(read) == {"a": 2, OTHER: 5}
    latencies = {each.label: each.counters.forward_latency for each in read.addresses}
    counts = {label: sum(each.counts()) for label, each in latencies.items() if each is not None}
    assert counts == {"a": 1, OTHER: 2}


@given(STEPS, st.integers(0, 4))
def test_no_series_falls_that_is_read_while_it_changes(
    steps: list[tuple[str, str, int]], limit: int
) -> None:
    table = new_table()
    hub = RouterHub(table, 2**20, 65536)
    labels, none = AddressLabels(table, limit), ConnectionLabels(hub, 0)
    before: dict[str, int] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "ADDRESSES_AT_ONCE", 1)
        for _ in range(3):
            walk = reading.read_in_steps(hub, labels, none, 0.0)
            next(walk, None)
            for step, name, count in steps:
                if step == "read":
                    next(walk, None)
                else:
                    change(table, step, name, count)
            series = before
            while True:
                try:
                    next(walk)
                except StopIteration as over:
                    if over.value is not None:
                        series = ingress(over.value)
                    break
            for label, value in before.items():
                assert series[label] >= value
            assert sum(series.values()) <= table.total().ingress
            before = series
    series = ingress(take_reading(hub, labels, none, 0.0))
    assert sum(series.values()) == table.total().ingress
    assert all(series[label] >= value for label, value in before.items())
