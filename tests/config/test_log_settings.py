"""Log settings: a level for all modules, and levels for single ones."""

from __future__ import annotations

import pytest

from router.config.log_levels import bit
from router.config.log_settings import LogSettings, with_levels


def test_the_level_is_that_of_modules_without_their_own() -> None:
    settings = LogSettings(level="error", levels={"AGENT": "debug"})
    assert settings.mask("AGENT") == bit("debug")
    assert settings.mask("HTTP") == bit("error") | bit("critical")
    assert settings.default_levels() == "error+"


def test_default_goes_before_level() -> None:
    settings = LogSettings(level="error", levels={"DEFAULT": "none"})
    assert settings.default_levels() == "none"
    assert settings.mask("HTTP") == 0


def test_levels_are_changed_in_a_copy() -> None:
    settings = LogSettings(levels={"AGENT": "debug"})
    other = with_levels(settings, "HTTP", "none")
    assert other.levels == {"AGENT": "debug", "HTTP": "none"}
    assert with_levels(other, "AGENT", None).levels == {"HTTP": "none"}
    assert settings.levels == {"AGENT": "debug"}


@pytest.mark.parametrize(("module", "enabled"), [("AGENT", "loud"), ("NOSUCH", "info")])
def test_what_is_not_allowed_is_said(module: str, enabled: str) -> None:
    with pytest.raises(ValueError, match=r"levels: .* is not allowed"):
        with_levels(LogSettings(), module, enabled)
