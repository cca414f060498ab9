"""Bindings are added to an exchange and taken from it in place."""

from __future__ import annotations

from router.core.addresses.bindings import (
    Binding,
    BindingEdit,
    BindingRule,
    BindingSet,
    ExchangeRule,
    enter_edit,
)


def binding(name: str, key: str | None, exchange: str = "e") -> Binding:
    return Binding(BindingRule(name, exchange, key, f"hop-{name}"))


def found(bound: BindingSet, subject: str) -> list[str]:
    return [each.rule.name for each in bound.matching(subject) if each is not None]


def test_a_binding_is_found_until_it_is_hidden() -> None:
    one, other, every = binding("one", "a"), binding("other", "a"), binding("every", None)
    bound = BindingSet(ExchangeRule("e", "e"), [one, other, every])
    assert found(bound, "a") == ["every", "one", "other"]
    bound.hide(one)
    bound.hide(every)
    assert found(bound, "a") == ["other"]


def test_one_that_takes_the_place_of_another_has_its_place() -> None:
    bound = BindingSet(ExchangeRule("e", "e"), [binding("one", "a"), binding("two", "b")])
    new = binding("one", "c")
    bound.add(new)
    assert [each.rule.name for each in bound.bindings] == ["one", "two"]
    assert next(iter(bound.bindings)) is new


def test_what_is_resolved_anew_has_those_that_come_later() -> None:
    bound = BindingSet(ExchangeRule("e", "e"), [binding("one", "a")])
    other = BindingSet(bound.rule, (), bound)
    bound.add(binding("two", "a"))
    assert found(other, "a") == ["one", "two"]


def test_edits_of_an_exchange_that_is_made_anew_are_made_in_what_it_is_made_of() -> None:
    one, two = binding("one", "a"), binding("two", "b")
    anew = {"e": {"one": one, "two": two}}
    edits: list[BindingEdit] = []
    new, moved = binding("one", "c"), binding("two", "b", "f")
    enter_edit(anew, one, new, edits)
    enter_edit(anew, two, moved, edits)
    assert anew == {"e": {"one": new}}
    assert edits == [(None, moved)]
