"""What is wrong with auto-links that is right by itself."""

from __future__ import annotations

import pytest

from router.config.load import parse_configuration
from router.config.mistakes import InvalidConfiguration

WHOLE = 'address = "q"\ndirection = "in"\n'
LISTENER = '[[listener]]\nname = "clients"\n'


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("", "autoLink[0].address", "is missing"),
        ("", "autoLink[0].direction", "is missing"),
        (
            WHOLE + 'containerId = "a"\nconnection = "b"',
            "autoLink[0].connection",
            "stands beside a containerId",
        ),
        (
            f"{WHOLE}[[autoLink]]\n{WHOLE}",
            "autoLink[1].name",
            "is the name of autoLink[0] too",
        ),
        (
            f'{WHOLE}name = "x"\n[[autoLink]]\n{WHOLE}containerId = "b"\nname = "x"',
            "autoLink[1].name",
            "is the name of autoLink[0] too",
        ),
        (
            f'{WHOLE}connection = "clients"\n{LISTENER}',
            "autoLink[0].connection",
            "leads to clients, not to a container",
        ),
        (WHOLE + "phase = 10", "autoLink[0].phase", "is not allowed"),
        (WHOLE.replace('"in"', '"both"'), "autoLink[0].direction", "is not allowed"),
        (WHOLE.replace('"q"', '"q/#"'), "autoLink[0].address", "is not allowed"),
    ],
)
def test_it_is_told(text: str, place: str, problem: str) -> None:
    with pytest.raises(InvalidConfiguration) as raised:
        parse_configuration(f"[[autoLink]]\n{text}", source="f")
    told = [(each.path, each.problem) for each in raised.value.mistakes]
    assert any(where == place and what.startswith(problem) for where, what in told), told


def test_one_address_may_be_at_several_containers() -> None:
    text = f'[[autoLink]]\n{WHOLE}containerId = "a"\n[[autoLink]]\n{WHOLE}containerId = "b"\n'
    text += f'[[autoLink]]\n{WHOLE}connection = "brokers"\n'
    text += f'[[autoLink]]\n{WHOLE.replace("in", "out")}connection = "brokers"\n'
    assert len(parse_configuration(text, source="f").auto_links) == 4


def test_the_connection_may_come_later() -> None:
    text = f'[[autoLink]]\n{WHOLE}connection = "not there yet"\n'
    assert parse_configuration(text, source="f").auto_links
    text += '[[connector]]\nname = "not there yet"\nrole = "route-container"\n'
    assert parse_configuration(text, source="f").auto_links
