"""Edges are told whether the addresses that they watch have consumers elsewhere."""

from __future__ import annotations

import pytest

from router.control.edge import edge_watches
from router.control.edge.edge_watches import EdgeWatches, Watches, key_of_address, split_key
from router.control.edge.messages import (
    UNKNOWN_TREATMENT,
    InteriorAddress,
    Message,
    Reached,
    Watch,
    watches,
)
from router.control.network.steps import do_all
from router.core.model.address import BALANCED, CLOSEST, FALLBACK, FIRST_EDGE, MULTICAST, Address
from router.core.routers.routing_state import Interest, Path
from router.errors import AmqpError

from support.in_memory import Router
from support.turns import most_in_a_turn


class Interior:
    """A router, and what its edges are told."""

    def __init__(self, *rules: tuple[object, ...]) -> None:
        self.router = Router(rules)
        self.reach = self.router.forwarder.reach
        self.watching = Watches(self.router.forwarder)
        self.client = self.router.client()

    def address_changed(self, address: Address) -> None:
        """As the edges of a router hear of it."""
        self.watching.address_changed(address)

    def finish(self) -> None:
        """At the end of a turn."""
        self.watching.send_changes()

    def edge(self, number: int = 0) -> tuple[EdgeWatches, list[Message]]:
        told: list[Message] = []
        return EdgeWatches(FIRST_EDGE + number, told.append), told

    def changed(self, name: str, phase: int = 0) -> None:
        address = self.router.table.in_use(name, phase)
        self.watching.address_changed(address or Address(name, BALANCED, phase=phase))
        self.watching.send_changes()

    def watch(self, watcher: EdgeWatches, *keys: str) -> None:
        do_all(self.watching.receive(watcher, Watch(keys)))
        self.watching.send_changes()


def places(told: list[Message]) -> list[InteriorAddress]:
    """Return what was told since the last call."""
    found = [place for message in told if isinstance(message, Reached) for place in message.places]
    told.clear()
    return found


def test_nobody_is_there_until_somebody_is() -> None:
    interior = Interior()
    edge, told = interior.edge()
    interior.watch(edge, "M0q")
    assert places(told) == [InteriorAddress("M0q", False, UNKNOWN_TREATMENT)]
    receiver = interior.client.receiver("q")
    interior.changed("q")
    assert places(told) == [InteriorAddress("M0q", True, UNKNOWN_TREATMENT)]
    interior.client.receiver("q")
    interior.changed("q")
    assert places(told) == []
    receiver.detach()
    interior.changed("q")
    assert places(told) == []


def test_who_watches_does_not_hear_of_its_own_receivers() -> None:
    interior = Interior()
    edge, told = interior.edge(0)
    other, other_told = interior.edge(1)
    interior.client.receiver("q")
    address = interior.router.table.in_use("q")
    assert address is not None
    address.consumers[0].side = edge.side
    interior.watch(edge, "M0q")
    interior.watch(other, "M0q")
    assert places(told) == [InteriorAddress("M0q", False, UNKNOWN_TREATMENT)]
    assert places(other_told) == [InteriorAddress("M0q", True, UNKNOWN_TREATMENT)]


def test_other_routers_count_with_how_they_treat_the_address() -> None:
    interior = Interior()
    edge, told = interior.edge()
    interior.reach.set_paths({}, {"B": Path("B", 1)}, lambda _: None)
    interior.watch(edge, "M0m")
    told.clear()
    interior.reach.set_interest("B", "M0m", Interest(MULTICAST))
    interior.watching.send_changes()
    assert places(told) == [InteriorAddress("M0m", True, MULTICAST)]
    interior.reach.set_interest("B", "M0m", None)
    interior.watching.send_changes()
    assert places(told) == [InteriorAddress("M0m", False, UNKNOWN_TREATMENT)]


def test_what_is_watched_no_more_is_not_told_of() -> None:
    interior = Interior()
    edge, told = interior.edge()
    interior.watch(edge, "M0q", "M0r")
    do_all(interior.watching.receive(edge, Watch((), ("M0q", "M0unknown"))))
    told.clear()
    interior.client.receiver("q")
    interior.changed("q")
    assert places(told) == []
    interior.watching.left(edge)
    assert interior.watching.by_key == {}


def test_who_names_a_key_anew_hears_of_it_anew() -> None:
    interior = Interior()
    edge, told = interior.edge()
    interior.watch(edge, "M0q")
    interior.watch(edge, "M0q")
    assert places(told) == [InteriorAddress("M0q", False, UNKNOWN_TREATMENT)] * 2


def test_an_address_with_a_fallback_is_reached_by_it() -> None:
    interior = Interior((False, "q", "balanced", True, None, 0, 0, True))
    edge, told = interior.edge()
    interior.watch(edge, "M0q", "MFq")
    told.clear()
    interior.reach.set_paths({}, {"B": Path("B", 1)}, lambda _: None)
    interior.reach.set_interest("B", "MFq", Interest(BALANCED))
    interior.changed("q", FALLBACK)
    assert places(told) == [
        InteriorAddress("MFq", True, BALANCED),
        InteriorAddress("M0q", True, BALANCED),
    ]


def test_names_that_say_where_they_are() -> None:
    interior = Interior()
    edge, told = interior.edge()
    interior.watch(edge, "M0_topo/0/B/temp.1", "M0_edge/E2/temp.1", "M0_edge/E2")
    assert [place.is_reached for place in places(told)] == [False, False, False]
    interior.reach.set_paths({}, {"B": Path("B", 1)}, lambda _: None)
    interior.watching.send_changes()
    assert places(told) == [InteriorAddress("M0_topo/0/B/temp.1", True, UNKNOWN_TREATMENT)]
    interior.reach.set_interest("B", "HE2", Interest(CLOSEST))
    interior.watching.send_changes()
    assert [place.is_reached for place in places(told)] == [True]
    interior.reach.set_paths({}, {}, lambda _: None)
    interior.watching.send_changes()
    assert [place.is_reached for place in places(told)] == [False, False]


@pytest.mark.parametrize("key", ["", "M", "M0", "Hedge", "Mxq", "M²q", "q"])
def test_what_is_no_key_of_an_address_is_refused(key: str) -> None:
    interior = Interior()
    edge, _ = interior.edge()
    with pytest.raises(AmqpError):
        do_all(interior.watching.receive(edge, Watch((key,))))


def test_so_many_are_watched_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_watches, "MOST_WATCHED", 2)
    interior = Interior()
    edge, _ = interior.edge()
    interior.watch(edge, "M0a", "M0b")
    interior.watch(edge, "M0a")
    with pytest.raises(AmqpError, match="more than 2"):
        interior.watch(edge, "M0c")


@pytest.mark.parametrize("phase", [0, 3, FALLBACK])
def test_a_key_says_what_an_address_is(phase: int) -> None:
    address = Address("orders", CLOSEST, phase=phase)
    assert split_key(key_of_address(address)) == ("orders", phase)


MANY = 1000
# So many are looked at in a turn at most.
MOST = 64


def watching_many(start: str) -> tuple[Interior, EdgeWatches, list[Message], list[str]]:
    """Return an interior, an edge that watches very many keys, and the keys looked at."""
    at = Interior()
    at.router.forwarder.network.edges = at
    looked: list[str] = []
    state_of = at.watching.state_of

    def look(key: str, side: int) -> tuple[bool, int]:
        looked.append(key)
        return state_of(key, side)

    at.watching.state_of = look  # type: ignore[method-assign]
    edge, told = at.edge()
    at.router.is_patient = True
    for message in watches((f"M0{start}{number}", True) for number in range(MANY)):
        do_all(at.watching.receive(edge, message))
    return at, edge, told, looked


def test_very_many_are_looked_at_in_later_turns_and_each_is_told() -> None:
    at, edge, told, looked = watching_many("q")
    at.router.is_patient = False
    assert most_in_a_turn(at.router, lambda: len(looked), at.watching.send_changes) <= MOST
    assert {each.key for each in places(told)} == set(edge.sent_states)
    assert len(looked) == MANY
    told.clear()
    at.reach.set_interest("b", "M0q999", Interest(BALANCED))
    at.reach.set_paths({"b": at.client.connection}, {"b": Path("b", 1)}, lambda _: None)
    at.watching.send_changes()
    at.router.finish_turn()
    assert len(looked) == MANY + 1


def test_what_is_not_watched_any_more_is_not_told() -> None:
    at, edge, told, looked = watching_many("q")
    at.watching.send_changes()
    assert 0 < len(looked) < MANY
    do_all(at.watching.receive(edge, Watch((), ("M0q998",))))
    at.watching.left(edge)
    do_all(at.watching.receive(edge, Watch(("M0q999", "M0new"))))
    at.router.catch_up()
    assert set(at.watching.by_key) == set(edge.sent_states) == {"M0q999", "M0new"}
    assert {"M0q999", "M0new"} <= {each.key for each in places(told)}
    assert len(looked) < MANY


def test_an_edge_is_forgotten_in_later_turns() -> None:
    at, edge, _, _ = watching_many("q")
    at.router.catch_up()
    other, _ = at.edge(1)
    at.watch(other, "M0q5")
    count = most_in_a_turn(
        at.router, lambda: len(at.watching.by_key), lambda: at.watching.left(edge)
    )
    assert count <= 128
    assert at.watching.by_key == {"M0q5": {other: None}}


def test_ways_that_change_are_looked_at_in_later_turns() -> None:
    at, edge, told, looked = watching_many("_topo/0/r/")
    at.router.catch_up()
    looked.clear()
    told.clear()
    count = most_in_a_turn(
        at.router,
        lambda: len(looked),
        lambda: at.reach.set_paths(
            {"b": at.client.connection}, {"r": Path("b", 1)}, lambda _: None
        ),
    )
    assert count <= MOST
    assert len(looked) == MANY
    assert {each.key for each in places(told) if each.is_reached} == set(edge.sent_states)


def test_addresses_of_one_message_are_reported_together() -> None:
    """Although the message is processed in steps, between which turns end."""
    interior = Interior()
    edge, told = interior.edge()
    keys = tuple(f"M0q{number}" for number in range(20))
    for _ in interior.watching.receive(edge, Watch(keys)):
        interior.watching.send_changes()
    assert told == []
    interior.watching.send_changes()
    assert len(told) == 1
    assert len(places(told)) == 20
