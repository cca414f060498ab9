"""Settings of the whole suite: which build it runs on, and how hypothesis searches.

The suite lives in the tree but tests what is installed. Start it as `pytest`, never as `python -m
pytest`, which would put the tree itself on the path and test the interpreted files in every
environment.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from router import build

from support import builds

# Fixtures that tests of several rooms share.
pytest_plugins = ["support.routers"]

ROOT = Path(__file__).resolve().parents[1]
INSTALLED = Path(build.__file__).resolve().parent

# Two busy cores make time limits on single examples a lottery; the limit on a whole test stands.
_relaxed = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("default", deadline=None, suppress_health_check=_relaxed, print_blob=True)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("long", settings.get_profile("default"), max_examples=10_000)
settings.register_profile("fuzz", settings.get_profile("default"), max_examples=100_000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "default")
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """See tests/support/golden.py."""
    parser.addoption("--update-golden", action="store_true", help="write golden files anew")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to run on a build that is stale, broken, or not the one that was asked for."""
    wrong = builds.complaint(INSTALLED, ROOT / "router", os.environ)
    if wrong:
        raise pytest.UsageError(wrong)


def pytest_report_header(config: pytest.Config) -> str:
    """Head the run with the build that it tests."""
    return builds.header(INSTALLED)
