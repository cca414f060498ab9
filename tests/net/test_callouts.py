"""The time that a callout gets."""

from __future__ import annotations

import pytest

from router.amqp.constants import SaslCode
from router.net.callouts import LONGEST_S, Attempt, CalloutFailed, time_left_s

from support.transcripts import Talk


@pytest.mark.parametrize(
    ("limit_s", "age_s", "left_s"),
    [
        (10.0, 0.0, 8.0),
        (10.0, 3.0, 5.0),
        (10.0, 9.0, 0.0),
        (60.0, 0.0, LONGEST_S),
        (0.0, 99.0, 8.0),
    ],
)
def test_it_ends_before_the_handshake_time_out(limit_s: float, age_s: float, left_s: float) -> None:
    connection = Talk(handshake_timeout_s=limit_s).connection
    assert time_left_s(connection, connection.started_at + age_s) == pytest.approx(left_s)


def test_nothing_secret_is_shown() -> None:
    assert "s3cret" not in repr(Attempt("PLAIN", b"\0ada\0s3cret", None, "h:1"))
    failed = CalloutFailed(SaslCode.SYS, "asking", "it raised ValueError")
    assert str(failed) == "plugin asking: it raised ValueError"
