"""Changes of a configuration are prepared completely, and undone if they are not applied."""

from __future__ import annotations

import gc
from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

from router.changes import GROWN_OLD_EVERY, RuleChange, pieces, prepare, stage, unstage
from router.config.auto_links import AutoLinkSettings
from router.config.differences import find_differences
from router.config.edits import Edit, Edits
from router.config.exchanges import BindingSettings, ExchangeSettings
from router.config.link_routes import LinkRouteSettings
from router.config.model import AddressSettings, Configuration
from router.config.validate import find_mistakes
from router.core.addresses.bindings import Exchange
from router.core.addresses.rules import MANY_RULES, Rules
from router.node import Node
from router.settings import apply_settings

from support.edits import BY_NAME, EXCHANGES as SOME_EXCHANGES, STEP, edited
from support.examples import examples

EXCHANGES = Configuration(
    exchanges=(ExchangeSettings(name="e", address="e"),),
    bindings=(BindingSettings(name="b", exchange_name="e", binding_key="k", next_hop_address="q"),),
)


def rules(count: int) -> tuple[AddressSettings, ...]:
    return tuple(AddressSettings(prefix=f"rule{number}") for number in range(count))


def prepared(node: Node, wanted: Configuration) -> Any:
    old = node.configuration
    return prepare(node, old, wanted, find_differences(old, wanted))


@pytest.mark.parametrize("count", [MANY_RULES, MANY_RULES + 1])
def test_many_rules_are_made_anew_and_few_are_changed(count: int) -> None:
    node = Node(Configuration())
    changes = prepared(node, Configuration(addresses=rules(count)))
    assert isinstance(changes.rules, Rules if count > MANY_RULES else RuleChange)
    assert list(node.table.rules) == []
    node.hub.begin_turn()
    apply_settings(node, changes)
    node.hub.finish_turn()
    assert len(list(node.table.rules)) == count


def test_what_stays_as_it_is_is_not_made_ready() -> None:
    node = Node(EXCHANGES)
    auto_links = (AutoLinkSettings(address="q", direction="in", container_id="c"),)
    changes = prepared(node, attrs.evolve(EXCHANGES, auto_links=auto_links))
    assert changes.fields >= {("autoLink", "address"), ("autoLink", "direction")}
    assert changes.auto_links[1] == [auto_links[0].name]
    assert changes.rules is changes.redirects is changes.exchanges is changes.link_routes is None


def test_what_is_entered_is_not_noticed_and_leaves_nothing_if_it_is_given_up() -> None:
    routes = tuple(
        LinkRouteSettings(prefix=prefix, direction="in", container_id="c") for prefix in "xy"
    )
    node = Node(Configuration(link_routes=routes[:1]))
    link_routes = node.hub.forwarder.link_routes
    changes = prepared(node, attrs.evolve(EXCHANGES, link_routes=routes[1:]))
    for _ in stage(node, changes):
        pass
    assert [way.rule.pattern for way in link_routes.each_link_route()] == ["x"]
    assert link_routes.find("y", is_sender=True) is None
    assert node.hub.forwarder.exchanges.by_name == {}
    assert {each.key for each in node.table.addresses()} == {"e", "q"}
    unstage(node, changes)
    while node.hub.turn.deferred.step():
        pass
    assert [way.rule.pattern for way in link_routes.each_link_route()] == ["x"]
    assert list(node.table.addresses()) == []
    again = prepared(node, attrs.evolve(EXCHANGES, link_routes=routes[1:]))
    for _ in stage(node, again):
        pass
    node.hub.begin_turn()
    apply_settings(node, again)
    node.hub.finish_turn()
    assert [way.rule.pattern for way in link_routes.each_link_route()] == ["y"]
    assert link_routes.find("x", is_sender=True) is None
    (binding,) = node.hub.forwarder.exchanges.by_name["e"].bindings
    assert binding.hop is node.table.in_use("q")


def test_very_many_link_routes_change_at_once() -> None:
    node = Node(Configuration())
    routes = tuple(
        LinkRouteSettings(prefix=f"r{number}", direction="in", container_id="c")
        for number in range(1000)
    )
    changes = prepared(node, Configuration(link_routes=routes))
    for _ in stage(node, changes):
        pass
    link_routes = node.hub.forwarder.link_routes
    assert len(link_routes) == 0
    node.hub.begin_turn()
    apply_settings(node, changes)
    assert len(link_routes) == 1000
    node.hub.finish_turn()


def test_a_configuration_is_taken_apart_and_what_others_have_stays() -> None:
    one = Configuration(addresses=rules(3))
    other = attrs.evolve(one, addresses=(*one.addresses, AddressSettings(prefix="more")))
    assert len(list(pieces(other))) == 4
    assert [each.prefix for each in one.addresses] == ["rule0", "rule1", "rule2"]


# One change beside others.


def state_of(node: Node) -> dict[str, Any]:
    """Return what a router holds of its configuration, in comparable form."""
    exchanges = node.hub.forwarder.exchanges
    control = node.control
    return {
        "rules": set(node.table.rules),
        "auto-links": list(control.auto_links.rules.items()),
        "claims": {name for name in "pqr" if node.table._auto_links[name]},
        "by container": {
            key: set(names) for key, names in control.auto_links._wanted.by_container.items()
        },
        "link routes": sorted(
            map(str, (way.rule for way in control.link_routes._routes.each_link_route()))
        ),
        "configured": {name: way.rule for name, way in control.link_routes._configured.items()},
        "exchanges": {name: bound_of(each) for name, each in exchanges.by_name.items()},
        "in use": {
            each.key: sorted(bound.rule.name for bound in each.related_addresses.fed_by)
            if each.related_addresses
            else []
            for each in node.table.addresses()
        },
    }


def bound_of(exchange: Exchange) -> dict[str, Any]:
    bound = exchange.binding_set
    return {
        "rule": bound.rule,
        # one that has moved to another exchange comes last there
        "bindings": {(each.rule, each.hop and each.hop.key) for each in exchange.bindings},
        "hops": {each.key: count for each, count in bound.hops.items()},
        "matching": {
            subject: sorted(each.rule.name for each in bound.matching(subject) if each is not None)
            for subject in ("k", "j.k", "")
        },
    }


def take_up_some(node: Node, wanted: Configuration, edits: Edits | None) -> None:
    """Take up a change of which it may be known what is other."""
    old = node.configuration
    changes = prepare(node, old, wanted, find_differences(old, wanted, edits), edits)
    for _ in stage(node, changes):
        pass
    node.hub.begin_turn()
    apply_settings(node, changes)
    node.hub.finish_turn()
    node.history.add(wanted, (), "", 0.0)


@examples(150)
@given(st.lists(st.tuples(STEP, st.integers(0, 3)), max_size=20))
def test_what_is_changed_in_place_is_as_if_it_were_made_anew(
    steps: list[tuple[Any, int]],
) -> None:
    node, other = Node(SOME_EXCHANGES), Node(SOME_EXCHANGES)
    for step, turns in steps:
        wanted, edits = edited(node.configuration, step)
        if edits and not find_mistakes(wanted):
            take_up_some(node, wanted, edits)
            take_up_some(other, wanted, None)
        # some of what follows from it is done by the time of the next
        for each in (node, other) * turns:
            each.hub.turn.deferred.step()
    for each in (node, other):
        while each.hub.turn.deferred.step():
            pass
    assert state_of(node) == state_of(other)


def test_an_auto_link_makes_the_address_of_an_exchange_available() -> None:
    closed = AddressSettings(pattern="p", distribution="unavailable")
    binding = BindingSettings(exchange_name="a", next_hop_address="q")
    node = Node(attrs.evolve(SOME_EXCHANGES, addresses=(closed,), bindings=(binding,)))
    (bound,) = node.hub.forwarder.exchanges.by_name["a"].bindings
    assert bound.hop is None
    auto_link = AutoLinkSettings(address="p", direction="in", container_id="c")
    wanted = attrs.evolve(node.configuration, auto_links=(auto_link,))
    take_up_some(node, wanted, [Edit(BY_NAME["autoLink"], None, auto_link)])
    while node.hub.turn.deferred.step():
        pass
    (bound,) = node.hub.forwarder.exchanges.by_name["a"].bindings
    assert bound.hop is node.table.in_use("q")


def test_few_differences_are_those_of_the_two() -> None:
    one = EXCHANGES
    address = AddressSettings(prefix="a")
    other = attrs.evolve(one, addresses=(address,), bindings=())
    edits = [
        Edit(BY_NAME["binding"], one.bindings[0], None),
        Edit(BY_NAME["address"], None, address),
    ]
    assert find_differences(one, other, edits) == find_differences(one, other)


def test_one_binding_of_very_many_is_changed_alone() -> None:
    count = 1000
    rest = tuple(
        BindingSettings(exchange_name="e", binding_key=f"k{number}", next_hop_address=f"h{number}")
        for number in range(count)
    )
    node = Node(attrs.evolve(EXCHANGES, bindings=rest, listeners=()))
    bound = node.hub.forwarder.exchanges.by_name["e"].binding_set
    new = BindingSettings(exchange_name="e", binding_key="k", next_hop_address="q")
    old = node.configuration
    wanted = attrs.evolve(old, bindings=(*rest, new))
    edits = [Edit(BY_NAME["binding"], None, new)]
    changes = prepare(node, old, wanted, find_differences(old, wanted, edits), edits)
    assert len(list(stage(node, changes))) == 0
    node.hub.begin_turn()
    apply_settings(node, changes)
    # all of it is done in that turn, and by nothing but the one
    assert not node.hub.turn.deferred
    node.hub.finish_turn()
    assert node.hub.forwarder.exchanges.by_name["e"].binding_set is bound
    assert len(bound.bindings) == count + 1
    assert [each and each.rule.next_hop for each in bound.matching("k")] == [None, "q"]


def test_what_was_entered_is_out_of_the_collectors_way() -> None:
    many = tuple(
        BindingSettings(exchange_name="e", binding_key=f"k{number}", next_hop_address=f"h{number}")
        for number in range(3 * GROWN_OLD_EVERY)
    )
    node = Node(Configuration())
    changes = prepared(node, attrs.evolve(EXCHANGES, bindings=many))
    gc.collect()
    # so that nothing else moves objects out of the youngest generation
    gc.disable()
    try:
        steps = sum(1 for _ in stage(node, changes))
        sizes = [len(each) for each in gc.get_objects(0) if type(each) in (dict, list)]
    finally:
        gc.enable()
    assert steps > 2 * GROWN_OLD_EVERY
    assert max(sizes) <= GROWN_OLD_EVERY
