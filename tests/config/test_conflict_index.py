"""A new entity is checked only against those that share something with it."""

from __future__ import annotations

from typing import Any

import attrs

from router.config.conflict_index import ConflictIndex
from router.config.edits import Edit
from router.config.exchanges import BindingSettings, ExchangeSettings
from router.config.link_routes import LinkRouteSettings
from router.config.model import Configuration

from support.edits import BY_NAME

EXCHANGES = Configuration(
    exchanges=tuple(ExchangeSettings(name=name, address=name) for name in "abc"),
    bindings=tuple(
        BindingSettings(name=f"{name}{number}", exchange_name=name, next_hop_address=f"h{number}")
        for name in "ab"
        for number in range(3)
    ),
    link_routes=tuple(
        LinkRouteSettings(prefix=f"r{number}", direction="in", container_id="c")
        for number in range(3)
    ),
)


def around(*edits: Edit, is_right: bool = True) -> dict[str, list[Any]]:
    """Return the names of the entities that are checked after some edits of EXCHANGES."""
    seen: list[Configuration] = []

    def look(configuration: Configuration) -> bool:
        seen.append(configuration)
        return is_right

    neighbours = ConflictIndex(EXCHANGES)
    wanted = EXCHANGES
    for edit in edits:
        every = [each for each in getattr(wanted, edit.entity.attribute) if each is not edit.old]
        every += [] if edit.new is None else [edit.new]
        values: dict[str, Any] = {edit.entity.attribute: tuple(every)}
        wanted = attrs.evolve(wanted, **values)
    assert neighbours.change(wanted, edits, look) is is_right
    assert neighbours.holds(wanted if is_right else EXCHANGES)
    (found,) = seen
    kinds = ("exchanges", "bindings", "link_routes")
    return {kind: sorted(each.name for each in getattr(found, kind)) for kind in kinds}


def test_a_binding_is_looked_at_with_its_exchange() -> None:
    new = BindingSettings(name="new", exchange_name="a", next_hop_address="h9")
    found = around(Edit(BY_NAME["binding"], None, new))
    assert found == {"exchanges": ["a"], "bindings": ["new"], "link_routes": []}


def test_a_binding_is_looked_at_with_those_that_say_the_same_or_have_the_same_name() -> None:
    new = BindingSettings(name="b0", exchange_name="a", next_hop_address="h1")
    found = around(Edit(BY_NAME["binding"], None, new), is_right=False)
    assert found["bindings"] == ["a1", "b0", "b0"]
    assert found["exchanges"] == ["a", "b"]


def test_an_exchange_that_goes_is_looked_at_by_the_bindings_that_it_leaves() -> None:
    gone = Edit(BY_NAME["exchange"], EXCHANGES.exchanges[0], None)
    assert around(gone, is_right=False)["bindings"] == ["a0", "a1", "a2"]
    also = [Edit(BY_NAME["binding"], each, None) for each in EXCHANGES.bindings[:3]]
    assert around(gone, *also)["bindings"] == []


def test_an_exchange_that_matches_otherwise_is_looked_at_with_its_bindings() -> None:
    old = EXCHANGES.exchanges[1]
    other = Edit(BY_NAME["exchange"], old, attrs.evolve(old, match_method="mqtt"))
    assert around(other)["bindings"] == ["b0", "b1", "b2"]
    moved = Edit(BY_NAME["exchange"], old, attrs.evolve(old, address="z"))
    assert around(moved)["bindings"] == []


def test_a_link_route_is_looked_at_with_that_of_the_same_links() -> None:
    new = LinkRouteSettings(pattern="r1/#", direction="in", container_id="c")
    found = around(Edit(BY_NAME["linkRoute"], None, new), is_right=False)
    assert found["link_routes"] == sorted([new.name, EXCHANGES.link_routes[1].name])


def test_what_would_close_a_loop_is_left_to_the_whole() -> None:
    neighbours = ConflictIndex(EXCHANGES)
    one = BindingSettings(exchange_name="a", next_hop_address="b")
    wanted = attrs.evolve(EXCHANGES, bindings=(*EXCHANGES.bindings, one))
    assert neighbours.change(wanted, [Edit(BY_NAME["binding"], None, one)], lambda _: True)
    other = BindingSettings(exchange_name="b", next_hop_address="a")
    more = attrs.evolve(wanted, bindings=(*wanted.bindings, other))
    assert not neighbours.change(more, [Edit(BY_NAME["binding"], None, other)], lambda _: True)
    assert neighbours.holds(wanted)


def test_taken_apart_nothing_is_left() -> None:
    neighbours = ConflictIndex(EXCHANGES)
    assert list(neighbours.pieces())
    assert not list(neighbours.pieces())
