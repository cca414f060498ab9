"""Names of entity types, with and without their prefix."""

from __future__ import annotations

import pytest

from router.management.names import long_name


@pytest.mark.parametrize(
    ("name", "long"),
    [
        ("listener", "org.apache.qpid.dispatch.listener"),
        ("org.apache.qpid.dispatch.listener", "org.apache.qpid.dispatch.listener"),
        ("org.amqp.management", "org.amqp.management"),
    ],
)
def test_the_prefix_is_added_once(name: str, long: str) -> None:
    assert long_name(name) == long
