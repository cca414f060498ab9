"""Mistakes in auto-links are found, and described."""

from __future__ import annotations

import pytest

from router.config.load import parse_configuration
from router.config.mistakes import InvalidConfiguration

WHOLE = 'address = "q"\ndirection = "in"\n'


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("", "autoLink[0].address", "is missing"),
        ("", "autoLink[0].direction", "is missing"),
        (
            f"{WHOLE}[[autoLink]]\n{WHOLE}",
            "autoLink[1].name",
            "is also the name of autoLink[0]",
        ),
        (
            f'{WHOLE}name = "x"\n[[autoLink]]\n{WHOLE}containerId = "b"\nname = "x"',
            "autoLink[1].name",
            "is also the name of autoLink[0]",
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
