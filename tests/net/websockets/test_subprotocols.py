"""Names of AMQP 1.0 as a subprotocol."""

from __future__ import annotations

import pytest

from router.net.websockets.subprotocols import choose


@pytest.mark.parametrize(
    ("proposed", "chosen"),
    [
        ([], None),
        (["mqtt", "amqp1", "amqp "], None),
        (["mqtt", "amqp", "AMQPWSB10"], "amqp"),
        (["AMQPWSB10", "amqp"], "AMQPWSB10"),
        (["aMqP"], "aMqP"),
        (["binary", "amqp"], "amqp"),
        (["mqtt", "Binary"], "Binary"),
    ],
    ids=str,
)
def test_the_first_known_name_is_chosen(proposed: list[str], chosen: str | None) -> None:
    assert choose(proposed) == chosen
