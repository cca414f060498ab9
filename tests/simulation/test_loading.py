"""A topology file is read, or every mistake in it is told, by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.config.mistakes import InvalidConfiguration
from router.simulation.loading import load_topology, parse_topology

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "deploy/simulations").glob("*.toml"))

EDGES = """[[router]]
name = "a"
mode = "edge"
[[router]]
name = "b"
mode = "edge"
[[link]]
between = ["a", "b"]
"""


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_the_examples_can_be_read(file: Path) -> None:
    assert load_topology(file).senders


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", "there is no router; add a [[router]], or several with a [[shape]]"),
        ("[[shape]\n", "is not TOML"),
        ("[[shape]]\nrouter = 3", "t:2: shape[0].router: is not a known attribute; did you mean"),
        ('[[shape]]\nlayout = "star"\nrouters = 0', "t:3: shape[0].routers: 0 is not allowed"),
        ("[[router]]", "t:1: router[0].name: is missing"),
        (
            '[[router]]\nname = "a"\n[[router]]\nname = "a"',
            "t:4: router[1].name: makes a second router named a",
        ),
        ('[[shape]]\n[[router]]\nname = "r1"', "t:1: shape: makes a second router named r1"),
        (
            '[[shape]]\n[[link]]\nbetween = ["r1", "x"]',
            "t:3: link[0].between: there is no router x",
        ),
        ('[[shape]]\n[[link]]\nbetween = ["r1", "r2"]', "t:2: link: joins r1 and r2 twice"),
        (
            EDGES,
            'link[0].between: ["a", "b"] links two edge routers',
        ),
        ("[[shape]]\n[[sender]]", "t:2: sender[0].address: is missing"),
        ('[[shape]]\n[[receiver]]\naddress = "q"\nat = "x"', "t:4: receiver[0].at: there is no"),
        (
            "[[shape]]\n[[event]]\nat = 11",
            "t:3: event[0].at: 11 is after the end of the simulation, at 10",
        ),
        (
            '[[shape]]\n[[event]]\naction = "cut"\nlink = ["r1", "r3"]',
            "t:4: event[0].link: there is no link r1 - r3",
        ),
        (
            '[[shape]]\n[[event]]\naction = "kill"\nlink = ["r1", "r2"]',
            "t:4: event[0].link: does not apply to kill",
        ),
        (
            '[[shape]]\n[[event]]\naction = "cut"\nrouters = ["r1"]',
            "t:4: event[0].routers: does not apply to cut",
        ),
        ('[[shape]]\n[[event]]\naction = "partition"', "event[0].routers: is missing"),
        (
            '[[router]]\nname = "a"\n[[event]]\naction = "cut"',
            'event[0].action: "cut" needs a link, but there is none',
        ),
        ("[[shape]]\n[[address]]", "address[0]: must have either a prefix or a pattern"),
        ("[[shape]]\nrouters = 4000\n[[shape]]\nname='s'\nrouters = 4000", "makes 8000 routers"),
    ],
)
def test_mistakes(text: str, mistake: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        parse_topology(text, source="t")

    assert mistake in str(caught.value)
    assert len(caught.value.mistakes) == 1


@pytest.mark.parametrize(
    ("count", "words"),
    [(1, "is r1"), (5, "are r1, r2, r3, r4, r5"), (6, "are r1, r2, r3, r4, r5, ...")],
)
def test_some_routers_are_named_where_one_is_unknown(count: int, words: str) -> None:
    text = f'[[shape]]\nrouters = {count}\n[[sender]]\nat = "x"\naddress = "q"\n'
    with pytest.raises(InvalidConfiguration) as caught:
        parse_topology(text, source="t")
    assert str(caught.value).endswith(f"there is no router x; there {words}")


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    text = '[simulation]\nsed = 1\n[[shape]]\nlayout = 3\n[[sender]]\nat = "nowhere"\n'

    with pytest.raises(InvalidConfiguration) as caught:
        parse_topology(text, source="t")

    lines = [mistake.line for mistake in caught.value.mistakes]
    assert lines == [2, 4, 5, 6]


def test_a_file_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="cannot be read"):
        load_topology(tmp_path / "none.toml")
