"""Roles that a router of some mode has not, and what else cannot be meant of a network."""

from __future__ import annotations

import pytest

from router.config.load import parse_configuration
from router.config.mistakes import InvalidConfiguration


def found(text: str) -> str:
    """Return the error text of an invalid configuration."""
    with pytest.raises(InvalidConfiguration) as raised:
        parse_configuration(text, source="f")
    return str(raised.value)


def of_mode(mode: str, *tables: str) -> str:
    """Return the configuration of a router of a mode, with more tables."""
    return "\n".join([f'[router]\nmode = "{mode}"\n', *tables])


@pytest.mark.parametrize(
    ("mode", "entity", "role"),
    [
        ("interior", "listener", "inter-router"),
        ("interior", "connector", "inter-router"),
        ("interior", "listener", "edge"),
        ("edge", "connector", "edge"),
        ("edge", "listener", "normal"),
        ("interior", "connector", "route-container"),
    ],
)
def test_roles_that_there_are(mode: str, entity: str, role: str) -> None:
    parse_configuration(of_mode(mode, f'[[{entity}]]\nrole = "{role}"'), source="f")


@pytest.mark.parametrize(
    ("mode", "entity", "role", "advice"),
    [
        (
            "standalone",
            "listener",
            "inter-router",
            'give the router mode = "interior", or this listener another role',
        ),
        (
            "standalone",
            "connector",
            "edge",
            'give the router mode = "edge", or this connector another role',
        ),
        (
            "edge",
            "connector",
            "inter-router",
            "give one of the roles normal, route-container, edge",
        ),
        (
            "edge",
            "listener",
            "edge",
            "give one of the roles normal, route-container",
        ),
        (
            "interior",
            "connector",
            "edge",
            "give one of the roles normal, route-container, inter-router",
        ),
    ],
)
def test_roles_that_a_mode_has_not(mode: str, entity: str, role: str, advice: str) -> None:
    text = of_mode(mode, f'[[{entity}]]\nrole = "{role}"')
    assert found(text) == (
        f'f:5: {entity}[0].role: "{role}" is not allowed for a router with mode {mode}; {advice}'
    )


def test_a_mode_that_is_wrong_is_found_once() -> None:
    assert "role" not in found(of_mode("inner", '[[listener]]\nrole = "edge"'))


@pytest.mark.parametrize("entity", ["listener", "connector"])
def test_costs_are_for_interior_routers(entity: str) -> None:
    text = of_mode("interior", f"[[{entity}]]\ncost = 5")
    assert found(text) == (
        f"f:5: {entity}[0].cost: 5 has no effect on a {entity} without the role "
        'inter-router; remove it, or give role = "inter-router"'
    )
    parse_configuration(f'{text}\nrole = "inter-router"', source="f")


@pytest.mark.parametrize("cost", [0, -1, 1_000_001, "true", '"1"', 1.5])
def test_costs_that_are_none(cost: object) -> None:
    text = of_mode("interior", f'[[connector]]\nrole = "inter-router"\ncost = {cost}')
    assert "give a cost from 1 to 1000000" in found(text)


def test_silence_is_longer_than_the_time_between_two_words() -> None:
    text = "[router]\nhelloIntervalSeconds = 3\nhelloMaxAgeSeconds = 3\n"
    assert found(text).startswith(
        "f:3: router.helloMaxAgeSeconds: 3 is not more than helloIntervalSeconds, 3; give"
    )
    assert found("[router]\nhelloIntervalSeconds = 3\n").startswith("f:1")


@pytest.mark.parametrize("seconds", [0, 0.2, 3601, "nan", "true"])
def test_times_that_are_none(seconds: object) -> None:
    allowed = "give a number of seconds from 0.25 to 3600"
    for name in ("helloIntervalSeconds", "helloMaxAgeSeconds", "raIntervalSeconds"):
        assert allowed in found(f"[router]\n{name} = {seconds}\n")


@pytest.mark.parametrize("mode", ["interior", "edge"])
def test_an_id_is_a_part_of_addresses(mode: str) -> None:
    assert found(f'{of_mode(mode)}id = "a/b"').startswith('f:3: router.id: "a/b" contains a /, but')
    parse_configuration(f'{of_mode("standalone")}id = "a/b"', source="f")


def test_containers_are_not_behind_other_routers() -> None:
    text = of_mode(
        "interior",
        '[[listener]]\nname = "n"\nrole = "inter-router"',
        '[[autoLink]]\naddress = "a"\ndirection = "in"\nconnection = "n"',
    )
    assert "leads to other routers, not to a container" in found(text)
