"""Mistakes in link routes are found, and described exactly."""

from __future__ import annotations

import pytest

from router.config.load import parse_configuration
from router.config.mistakes import InvalidConfiguration

GOOD = {
    "both directions": [("a", "in", "c"), ("a", "out", "c")],
    "two containers": [("a", "in", "c"), ("a", "in", "d")],
    "one pattern in another": [("a", "in", "c"), ("a/b", "in", "c"), ("#", "in", "c")],
}

BAD = {
    "nothing is said": (
        "[[linkRoute]]",
        """
        f:1: linkRoute[0]: does not say which addresses it covers; give a prefix or a pattern
        f:1: linkRoute[0].direction: is missing; give "in" or "out", or a link route for each
        """,
    ),
    "too much is said": (
        """
        [[linkRoute]]
        prefix = "a"
        pattern = "b"
        direction = "in"
        containerId = "c"
        connection = "d"
        """,
        """
        f:4: linkRoute[0].pattern: "b" cannot be combined with a prefix; give one of the two
        f:7: linkRoute[0].connection: "d" cannot be combined with a containerId; give one of the two
        """,
    ),
    "the same twice": (
        """
        [[linkRoute]]
        prefix = "a/b"
        direction = "in"
        containerId = "c"
        [[linkRoute]]
        pattern = "a.b.#"
        direction = "in"
        containerId = "c"
        """,
        """
        f:7: linkRoute[1].pattern: "a.b.#" forwards the same links as linkRoute[0]; give each \
only once
        """,
    ),
    "one name twice": (
        """
        [[linkRoute]]
        prefix = "a"
        direction = "in"
        name = "n"
        [[linkRoute]]
        prefix = "b"
        direction = "in"
        name = "n"
        """,
        """
        f:9: linkRoute[1].name: "n" is also the name of linkRoute[0]; give each its own name
        """,
    ),
    "what is no direction": (
        """
        [[linkRoute]]
        prefix = "a"
        direction = "both"
        distribution = "closest"
        """,
        """
        f:4: linkRoute[0].direction: "both" is not allowed; give "in" or "out"
        f:5: linkRoute[0].distribution: "closest" is not allowed; give "linkBalanced"
        """,
    ),
}


@pytest.mark.parametrize("routes", GOOD.values(), ids=GOOD)
def test_nothing_is_said_of_what_can_be_meant(routes: list[tuple[str, str, str]]) -> None:
    text = "".join(
        f'[[linkRoute]]\npattern = "{pattern}"\ndirection = "{way}"\ncontainerId = "{container}"\n'
        for pattern, way, container in routes
    )
    assert len(parse_configuration(text, source="f").link_routes) == len(routes)


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD)
def test_what_is_said(text: str, said: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        parse_configuration(text, source="f")
    lines = [line.strip() for line in said.strip().splitlines()]
    assert [str(mistake) for mistake in caught.value.mistakes] == lines
