"""Names, treatments, and how long an address is remembered."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from router.core.addresses import table as table_module
from router.core.addresses.rules import TREATMENT_NAMES, TREATMENTS, AddressRule, Rules
from router.core.addresses.table import AddressTable, address_name
from router.core.model.address import BALANCED, CLOSEST, MULTICAST, UNAVAILABLE, Consumer, Producer
from router.engine.delivery import Delivery
from router.engine.link import IncomingLink, OutgoingLink

NO_SESSION: Any = None


@pytest.fixture(autouse=True, params=[table_module.MOST_IN_A_TABLE, 1])
def _sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses are in one table, or each in its own."""
    monkeypatch.setattr(table_module, "MOST_IN_A_TABLE", request.param)


def table(*rules: tuple[Any, ...], default: str = "balanced") -> AddressTable:
    made = iter(range(100))
    of_table = [AddressRule(*rule) for rule in rules]
    return AddressTable(of_table, default, lambda maker: f"amqp:/temp/{next(made)}.{maker}")


def test_a_node_of_the_router_s_own_has_several_names() -> None:
    made = table((True, "$closed", "unavailable"), default="unavailable")
    assert made.enter("$service") is None
    made.add_own_node("$service", "_local/$service")
    made.add_own_node("$closed")
    assert made.find("_local/$service") is made.unused
    address = made.enter("_local/$service")
    assert address is not None
    assert (address.name, address.treatment) == ("$service", CLOSEST)
    for text in ("$service", "/_local/$service", "amqp://here/_local/$service"):
        assert made.enter(text) is made.find(text) is address
        assert made.is_own_node(text)
    assert list(made.addresses()) == [address]
    assert not made.is_own_node("service")
    # a rule for its name is stronger
    assert made.enter("$closed") is None
    assert made.find("$closed") is None


def test_what_matches_every_name_means_no_node_of_the_router_s_own() -> None:
    for is_prefix, pattern in ((False, "#"), (False, "*"), (False, "*/$service"), (True, "_local")):
        made = table((is_prefix, pattern, "unavailable"))
        made.add_own_node("$service", "_local/$service")
        for text in ("$service", "_local/$service"):
            address = made.enter(text)
            assert address is not None
            assert address.treatment == CLOSEST
    for pattern in ("$service", "$service/"):
        made = table((False, pattern, "unavailable"))
        made.add_own_node("$service", "_local/$service")
        assert made.enter("_local/$service") is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("orders", "orders"),
        ("/orders", "orders"),
        ("//orders", "orders"),
        ("orders/", "orders"),
        ("orders.", "orders"),
        ("orders/./", "orders"),
        ("amqp://host:5672/orders", "orders"),
        ("amqps://user@host/orders/x", "orders/x"),
        ("AMQP://HOST/Orders", "Orders"),
        ("amqp:///orders", "orders"),
        ("amqp:/orders", "orders"),
        ("amqp:orders", "orders"),
        ("amqp://host", ""),
        ("amqp://host/", ""),
        ("http://host/orders", "http://host/orders"),
        ("q/amqp://host/x", "q/amqp://host/x"),
        ("$management", "$management"),
        ("a b", "a b"),
        ("", ""),
        ("///", ""),
        ("é", "é"),
    ],
)
def test_what_an_address_text_means(text: str, name: str) -> None:
    assert address_name(text) == name


def test_long_texts_take_bounded_time() -> None:
    for text in ("/" * 10**6, "amqp:" * 10**5, "amqp://" + "a" * 10**6, "./" * 10**5):
        address_name(text)


def test_treatments_have_names() -> None:
    assert TREATMENT_NAMES[TREATMENTS["multicast"]] == "multicast"
    assert set(TREATMENTS.values()) == {CLOSEST, BALANCED, MULTICAST, UNAVAILABLE}


def test_rules_decide_the_treatment() -> None:
    made = table(
        (True, "news", "multicast"), (False, "news/local", "closest"), (False, "x/*", "unavailable")
    )
    found = {name: made.treatment(name) for name in ("news", "news/a", "news/local", "x/y", "z")}
    assert list(found.values()) == [MULTICAST, MULTICAST, CLOSEST, UNAVAILABLE, BALANCED]
    assert table(default="closest").treatment("z") == CLOSEST


def test_rules_decide_whether_what_is_given_back_is_offered_to_another() -> None:
    made = table((True, "a", "closest", False), (False, "a/b", "closest"))
    entered = [made.enter(name) for name in ("a", "a/b", "a/c", "b")]
    assert [each is not None and each.redelivers for each in entered] == [False, True, False, True]


def test_rules_decide_the_dead_letter_address() -> None:
    made = table(
        AddressRule(True, "a", "balanced", dead_letter="x"),
        AddressRule(False, "a/*/c", "balanced"),
        AddressRule(False, "a/b", "balanced", dead_letter="y"),
        AddressRule(False, "#", "balanced", dead_letter="x"),
    )
    names = ["a", "a/b", "a/b/c", "a/b/d", "other", "x", "y"]
    found = [made.dead_letter_of(name) for name in names]
    assert found == ["x", "y", None, "x", "x", None, None]
    assert table().dead_letter_of("a") is None


@pytest.mark.spec("B2.1-1")
def test_texts_of_one_name_are_one_address() -> None:
    made = table()
    assert made.enter("/q") is made.enter("amqp://host/q/") is made.find("q")
    assert len(made) == 1


def test_an_unavailable_name_is_no_address() -> None:
    made = table(default="unavailable")
    assert made.enter("q") is None
    assert made.find("q") is None
    assert len(made) == 0


def test_a_name_that_nobody_uses_leads_nowhere() -> None:
    made = table()
    assert made.find("q") is made.unused
    assert len(made) == 0
    made.leave(made.unused)


def test_an_address_goes_when_nothing_hangs_on_it() -> None:
    made = table()
    address = made.enter("q")
    assert address is not None
    consumer = Consumer(OutgoingLink(NO_SESSION, "l", 0), address)
    delivery = Delivery.__new__(Delivery)
    things: list[Any] = [
        (address.consumers, consumer),
        (address.producers, Producer(IncomingLink(NO_SESSION, "l", 0), address, 1)),
        (address.waiting, delivery),
    ]
    for things_there, thing in things:
        things_there.append(thing)
        made.leave(address)
        assert list(made.addresses()) == [address]
        things_there.remove(thing)
    made.leave(address)
    assert len(made) == 0
    # another of that name is not taken for it
    again = made.enter("q")
    made.leave(address)
    assert list(made.addresses()) == [again]


def test_what_was_counted_stays() -> None:
    made = table()
    for name, count in (("a", 1), ("b", 2)):
        address = made.enter(name)
        assert address is not None
        address.counters.ingress = count
        if name == "a":
            made.leave(address)
    made.unused.counters.ingress = 4
    assert made.total().ingress == 7


def test_dynamic_addresses_are_new_each_time() -> None:
    made = table()
    (text, address), (other, _) = made.create_dynamic("c", "a"), made.create_dynamic("c", "a")
    assert text == "amqp:/temp/0.c.a" != other
    assert made.find(text) is address
    assert made.find("temp/0.c.a") is address
    assert address.is_dynamic


@pytest.mark.spec("3.5.3-3", "3.5.4-3")
@pytest.mark.parametrize(
    ("container", "link", "ending"),
    [
        ("client-1", "reply_to", "client-1.reply_to"),
        ("a.b/c d", "r\u00e9ponse#*", "a-b-c-d.r-ponse-"),
        ("x" * 100, "y" * 33, f"{'x' * 32}.{'y' * 32}"),
        ("", "", "."),
    ],
)
def test_a_dynamic_address_says_whom_it_was_made_for(
    container: str, link: str, ending: str
) -> None:
    text, _ = table().create_dynamic(container, link)
    assert text == f"amqp:/temp/0.{ending}"


def test_claims_make_names_available_and_open_what_was_closed() -> None:
    made = table()
    made.rules = Rules([AddressRule(False, "q", "unavailable")], "balanced")
    assert made.enter("q") is None
    made.set_auto_links(Counter(["q"]))
    address = made.enter("q", 3)
    assert address is not None
    made.set_auto_links(Counter())
    made.auto_links_changed("q")
    assert made.enter("q", 3) is None
    made.set_auto_links(Counter(["q"]))
    assert made.enter("q", 3) is None
    made.auto_links_changed("q")
    assert made.enter("q", 3) is address


def test_addresses_that_come_and_go_leave_few_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """One in ten stays, so that no table is ever empty."""
    monkeypatch.setattr(table_module, "MOST_IN_A_TABLE", 10)
    addresses, stay = table(), []
    for number in range(1000):
        address = addresses.enter(f"q{number}")
        assert address is not None
        if number % 10:
            addresses.leave(address)
        else:
            stay.append(address)
            for other in range(9):
                assert addresses.enter(f"brief{number}.{other}") is not None
            for other in range(9):
                brief = addresses.in_use(f"brief{number}.{other}")
                assert brief is not None
                addresses.leave(brief)
    assert list(addresses.addresses()) == stay
    assert len(addresses._tables()) <= 2 * len(stay) / 10 + 2
    assert all(addresses.in_use(each.name) is each for each in stay)


def test_no_table_of_addresses_grows_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "MOST_IN_A_TABLE", 10)
    addresses = table()
    made = [addresses.enter(f"q{number}") for number in range(35)]
    assert [len(each) for each in addresses._tables()] == [10, 10, 10, 5]
    assert list(addresses.addresses()) == addresses.all_addresses() == made
    assert len(addresses) == 35
    for number, address in enumerate(made):
        assert address is not None
        assert address is addresses.find(f"q{number}") is addresses.enter(f"q{number}")
        assert addresses.is_in_use(address)
        addresses.leave(address)
        assert addresses.in_use(f"q{number}") is None
    assert len(addresses) == 0
    assert len(addresses._tables()) == 1
