"""What a changed configuration is made ready for, and what is left of it if it is not taken up."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from router.changes import RuleChange, enter, give_up, pieces, prepare
from router.config.auto_links import AutoLinkSettings
from router.config.exchanges import BindingSettings, ExchangeSettings
from router.config.link_routes import LinkRouteSettings
from router.config.model import AddressSettings, Configuration
from router.config.reload import find_differences
from router.core.rules import MANY_RULES, Rules
from router.node import Node
from router.settings import take_up

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
    node.exchange.begin_turn()
    take_up(node, changes)
    node.exchange.finish_turn()
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
    link_routes = node.exchange.forwarder.link_routes
    changes = prepared(node, attrs.evolve(EXCHANGES, link_routes=routes[1:]))
    for _ in enter(node, changes):
        pass
    assert [way.rule.pattern for way in link_routes.ways()] == ["x"]
    assert link_routes.find("y", is_sender=True) is None
    assert node.exchange.forwarder.exchanges.by_name == {}
    assert {each.key for each in node.table.addresses()} == {"e", "q"}
    give_up(node, changes)
    while node.exchange.turn.deferred.step():
        pass
    assert [way.rule.pattern for way in link_routes.ways()] == ["x"]
    assert list(node.table.addresses()) == []
    again = prepared(node, attrs.evolve(EXCHANGES, link_routes=routes[1:]))
    for _ in enter(node, again):
        pass
    node.exchange.begin_turn()
    take_up(node, again)
    node.exchange.finish_turn()
    assert [way.rule.pattern for way in link_routes.ways()] == ["y"]
    assert link_routes.find("x", is_sender=True) is None
    (binding,) = node.exchange.forwarder.exchanges.by_name["e"].bindings
    assert binding.hop is node.table.in_use("q")


def test_very_many_link_routes_change_at_once() -> None:
    node = Node(Configuration())
    routes = tuple(
        LinkRouteSettings(prefix=f"r{number}", direction="in", container_id="c")
        for number in range(1000)
    )
    changes = prepared(node, Configuration(link_routes=routes))
    for _ in enter(node, changes):
        pass
    link_routes = node.exchange.forwarder.link_routes
    assert len(link_routes) == 0
    node.exchange.begin_turn()
    take_up(node, changes)
    assert len(link_routes) == 1000
    node.exchange.finish_turn()


def test_a_configuration_is_taken_apart_and_what_others_have_stays() -> None:
    one = Configuration(addresses=rules(3))
    other = attrs.evolve(one, addresses=(*one.addresses, AddressSettings(prefix="more")))
    assert len(list(pieces(other))) == 4
    assert [each.prefix for each in one.addresses] == ["rule0", "rule1", "rule2"]
