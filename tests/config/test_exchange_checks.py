"""Exchanges and bindings that do not fit together."""

from __future__ import annotations

import itertools

import pytest

from router.config.exchange_checks import EXCHANGE_CHECKS
from router.config.exchanges import BindingSettings, ExchangeSettings
from router.config.load import parse_configuration
from router.config.mistakes import InvalidConfiguration
from router.config.model import Configuration


def found(
    exchanges: list[ExchangeSettings], bindings: list[BindingSettings]
) -> list[tuple[object, ...]]:
    """Where something was found."""
    configuration = Configuration(exchanges=tuple(exchanges), bindings=tuple(bindings))
    return [finding.path for check in EXCHANGE_CHECKS for finding in check(configuration, {})]


def exchange(name: str, **fields: object) -> ExchangeSettings:
    return ExchangeSettings(name=name, **{"address": name, **fields})  # type: ignore[arg-type]


def binding(name: str, hop: str, key: str | None = None, phase: int = 0) -> BindingSettings:
    return BindingSettings(
        exchange_name=name, next_hop_address=hop, binding_key=key, next_hop_phase=phase
    )


def test_what_is_right() -> None:
    exchanges = [exchange("a"), exchange("b", phase=1), exchange("c", address="c/")]
    bindings = [
        binding("a", "x"),
        binding("a", "x", "#"),
        binding("a", "x", "#", 1),
        binding("a", "y", "a/#/b"),
        binding("b", "x"),
        # two ways to one exchange are no loop
        binding("a", "c"),
        binding("b", "c"),
        # another phase than that of the exchange
        binding("c", "c", phase=1),
    ]
    assert found(exchanges, bindings) == []


def test_what_is_missing() -> None:
    assert found([ExchangeSettings(name="e")], [BindingSettings(exchange_name="e")]) == [
        ("exchange", 0, "address"),
        ("binding", 0, "nextHopAddress"),
    ]
    assert found([ExchangeSettings(address="a")], [BindingSettings(next_hop_address="a")]) == [
        ("exchange", 0, "name"),
        ("binding", 0, "exchangeName"),
    ]


def test_what_is_there_twice() -> None:
    assert found([exchange("e"), exchange("e", address="other")], []) == [("exchange", 1, "name")]
    assert found([exchange("e"), exchange("f", address="e/")], []) == [("exchange", 1, "address")]
    assert found([exchange("e"), exchange("f", address="e", phase=1)], []) == [
        ("exchange", 1, "address")
    ]
    assert found([exchange("e")], [binding("e", "x", "k"), binding("e", "x/", "k")]) == [
        ("binding", 1, "nextHopAddress")
    ]
    named = [
        BindingSettings(exchange_name="e", next_hop_address=hop, name="n") for hop in ("x", "y")
    ]
    assert found([exchange("e")], named) == [("binding", 1, "name")]


def test_bindings_of_no_exchange_and_keys_that_mqtt_does_not_have() -> None:
    assert found([], [binding("e", "x")]) == [("binding", 0, "exchangeName")]
    mqtt = exchange("e", match_method="mqtt")
    assert found([mqtt], [binding("e", "x", "a/#/b"), binding("e", "x", "a/#")]) == [
        ("binding", 0, "bindingKey")
    ]


@pytest.mark.parametrize(
    ("hops", "where"),
    [
        (["aa"], [0]),
        (["ab", "ba"], [1]),
        (["ab", "bc", "ca", "ax"], [2]),
        (["ab", "bc", "cb"], [2]),
        (["ab", "ba", "bb"], [1, 2]),
        (["ab", "ac", "bd", "cd"], []),
    ],
)
def test_no_exchange_leads_back_to_itself(hops: list[str], where: list[int]) -> None:
    exchanges = [exchange(name) for name in "abcd"]
    bindings = [binding(hop[0], hop[1]) for hop in hops]
    assert found(exchanges, bindings) == [("binding", at, "nextHopAddress") for at in where]


def test_the_alternate_address_may_close_a_loop_too() -> None:
    exchanges = [exchange("a"), exchange("b", alternate_address="a")]
    assert found(exchanges, [binding("a", "b")]) == [("exchange", 1, "alternateAddress")]


def test_a_long_chain_is_walked_once() -> None:
    names = [f"e{number}" for number in range(3000)]
    exchanges = [exchange(name) for name in names]
    bindings = [binding(one, two) for one, two in itertools.pairwise(names)]
    assert found(exchanges, bindings) == []
    assert found(exchanges, [*bindings, binding(names[-1], names[0])]) == [
        ("binding", 2999, "nextHopAddress")
    ]


def test_the_mistake_is_told_with_its_line() -> None:
    text = """
        [[exchange]]
        name = "e"
        address = "a"
        [[binding]]
        exchangeName = "e"
        nextHopAddress = "a"
        """
    with pytest.raises(InvalidConfiguration) as caught:
        parse_configuration(text, source="f")
    assert " ".join(str(caught.value).split()) == (
        "f:7: binding[0].nextHopAddress: \"a\" leads back to the exchange 'e', from which messages "
        "come here; an exchange must not send to itself, not even through other exchanges"
    )
