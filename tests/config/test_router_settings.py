"""Settings of the router as a whole; `test_load` and `test_model` have more of them."""

from __future__ import annotations

import pytest

from router.config.load import parse_configuration
from router.config.router_settings import LONGEST_TERMINUS_TIMEOUT_S, RouterSettings
from router.errors import ConfigurationError


def test_a_router_needs_to_say_nothing() -> None:
    assert parse_configuration("", source="f").router == RouterSettings()


@pytest.mark.parametrize("seconds", [0, 1, LONGEST_TERMINUS_TIMEOUT_S])
def test_the_longest_timeout_of_a_terminus(seconds: int) -> None:
    text = f"[router]\nterminusTimeoutLimitSeconds = {seconds}\n"
    router = parse_configuration(text, source="f").router
    assert router.terminus_timeout_limit_seconds == seconds


@pytest.mark.parametrize("seconds", ["-1", "1.5", "86401", '"1"'])
def test_a_timeout_that_cannot_be(seconds: str) -> None:
    with pytest.raises(ConfigurationError, match="terminusTimeoutLimitSeconds"):
        parse_configuration(f"[router]\nterminusTimeoutLimitSeconds = {seconds}\n", source="f")
