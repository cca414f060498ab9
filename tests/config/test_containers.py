"""Auto-links and link routes by the names of their containers."""

from __future__ import annotations

import pytest

from router.config.containers import name_with_container


@pytest.mark.parametrize(
    ("container_id", "connection", "name"),
    [
        (None, None, "autoLink/in/q"),
        ("artemis", None, "autoLink/in/q/artemis"),
        (None, "west", "autoLink/in/q/west"),
        ("artemis", "west", "autoLink/in/q/artemis"),
    ],
)
def test_the_container_comes_last(
    container_id: str | None, connection: str | None, name: str
) -> None:
    assert name_with_container("autoLink/in/q", container_id, connection) == name
