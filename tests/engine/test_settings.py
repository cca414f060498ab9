"""The settings of a connection: sensible by themselves, and silent about secrets."""

from __future__ import annotations

from router.amqp.constants import MIN_MAX_FRAME_SIZE
from router.engine.settings import ConnectionSettings


def test_the_defaults_can_be_told_to_a_peer() -> None:
    settings = ConnectionSettings("c")
    assert MIN_MAX_FRAME_SIZE <= settings.max_frame_size < 2**32
    assert 0 <= settings.channel_max <= 0xFFFF
    assert settings.handle_max < 2**32
    assert 0 < settings.window_limit < 2**31
    assert settings.properties is not ConnectionSettings("d").properties


def test_a_password_is_not_shown() -> None:
    assert "hunter2" not in repr(ConnectionSettings("c", sasl_password="hunter2"))
