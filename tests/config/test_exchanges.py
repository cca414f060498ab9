"""Settings of exchanges and bindings, and their defaults."""

from __future__ import annotations

import pytest

from router.config.exchanges import BindingSettings, ExchangeSettings


def test_defaults() -> None:
    exchange = ExchangeSettings(name="e", address="a")
    assert (exchange.phase, exchange.alternate_address, exchange.alternate_phase) == (0, None, 0)
    assert exchange.match_method == "amqp"
    binding = BindingSettings(exchange_name="e", next_hop_address="h")
    assert (binding.binding_key, binding.next_hop_phase) == (None, 0)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({}, "binding/e//h"),
        ({"binding_key": "a.*"}, "binding/e/a.*/h"),
        ({"next_hop_phase": 2}, "binding/e//h/2"),
        ({"name": "mine"}, "mine"),
    ],
)
def test_a_binding_without_a_name_is_called_by_what_it_does(
    fields: dict[str, object], name: str
) -> None:
    assert BindingSettings(exchange_name="e", next_hop_address="h", **fields).name == name  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["AMQP", "topic", "", 1])
def test_there_are_two_methods(method: object) -> None:
    with pytest.raises(ValueError, match="match_method"):
        ExchangeSettings(name="e", address="a", match_method=method)  # type: ignore[arg-type]
