"""Checks that the router adds to those of the configuration's own package."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.config.load import load_configuration
from router.config.mistakes import InvalidConfiguration
from router.net.extra_checks import EXTRA_CHECKS


def test_files_for_tls_are_checked_with_the_file(tmp_path: Path) -> None:
    file = tmp_path / "router.toml"
    file.write_text('[[sslProfile]]\nname = "p"\ncertFile = "missing.pem"\n', encoding="utf-8")
    load_configuration(file)
    with pytest.raises(InvalidConfiguration) as invalid:
        load_configuration(file, EXTRA_CHECKS)
    [mistake] = invalid.value.mistakes
    assert (mistake.line, mistake.path) == (3, "sslProfile[0].certFile")
