"""Which container an auto-link or a link route is for can be said wrong."""

from __future__ import annotations

import pytest

from router.config.load import parse_configuration
from router.config.mistakes import InvalidConfiguration

WHOLE = {
    "autoLink": '[[autoLink]]\naddress = "q"\ndirection = "in"\n',
    "linkRoute": '[[linkRoute]]\nprefix = "q"\ndirection = "in"\n',
}
ENDPOINTS = ("listener", "connector")


def mistakes(text: str) -> list[tuple[str, str]]:
    """Return the mistakes in a configuration, each as its path and its problem."""
    with pytest.raises(InvalidConfiguration) as raised:
        parse_configuration(text, source="f")
    return [(each.path, each.problem) for each in raised.value.mistakes]


@pytest.mark.parametrize("entity", WHOLE)
def test_one_way_to_name_it_is_enough(entity: str) -> None:
    text = f'{WHOLE[entity]}containerId = "a"\nconnection = "b"\n'
    assert mistakes(text) == [(f"{entity}[0].connection", "cannot be combined with a containerId")]


@pytest.mark.parametrize("entity", WHOLE)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_clients_are_no_container(entity: str, endpoint: str) -> None:
    text = f'{WHOLE[entity]}connection = "clients"\n[[{endpoint}]]\nname = "clients"\n'
    problem = "leads to clients, not to a container"
    assert mistakes(text) == [(f"{entity}[0].connection", problem)]


@pytest.mark.parametrize("entity", WHOLE)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_the_connection_may_come_later(entity: str, endpoint: str) -> None:
    text = f'{WHOLE[entity]}connection = "brokers"\n'
    parse_configuration(text, source="f")
    text += f'[[{endpoint}]]\nname = "brokers"\nrole = "route-container"\n'
    parse_configuration(text, source="f")
