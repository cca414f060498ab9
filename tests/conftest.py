"""Settings of the whole suite: which build it runs on, and how hypothesis searches.

The suite lives in the tree but tests what is installed. Start it as `pytest`, never as `python -m
pytest`, which would put the tree itself on the path and test the interpreted files in every
environment.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import (
    DirectoryBasedExampleDatabase,
    MultiplexedDatabase,
    ReadOnlyDatabase,
)

from router import build

from support import builds

# Fixtures that tests of several rooms share.
pytest_plugins = ["support.routers"]

# Where tests start routers, brokers or commands as processes: rooms of the suite, fixtures, and
# modules whose functions they use.
PROCESS_ROOMS = frozenset({"deploy", "dispatch_suite", "interop"})
PROCESS_FIXTURES = frozenset({"router_process", "start_router"})
PROCESS_MODULES = frozenset({"support.commands", "support.launcher", "support.routers"})

ROOT = Path(__file__).resolve().parents[1]
INSTALLED = Path(build.__file__).resolve().parent

# Two busy cores make time limits on single examples a lottery; the limit on a whole test stands.
_relaxed = [HealthCheck.too_slow, HealthCheck.data_too_large]
# Examples that have failed in `make soak`. Every run begins with them.
_seeds = DirectoryBasedExampleDatabase(ROOT / "tests" / "seeds")
_local = DirectoryBasedExampleDatabase(ROOT / ".hypothesis" / "examples")
settings.register_profile(
    "default",
    deadline=None,
    suppress_health_check=_relaxed,
    print_blob=True,
    database=MultiplexedDatabase(_local, ReadOnlyDatabase(_seeds)),
)
# Repeatable, with `--hypothesis-seed`: what failed before on this machine makes no difference.
settings.register_profile(
    "repeatable", settings.get_profile("default"), database=ReadOnlyDatabase(_seeds)
)
# A small number of examples, for a seed that is new with each commit.
settings.register_profile("new", settings.get_profile("repeatable"), max_examples=25)
settings.register_profile(
    "soak", settings.get_profile("default"), max_examples=2000, database=_seeds
)
settings.register_profile("long", settings.get_profile("default"), max_examples=10_000)
settings.register_profile("fuzz", settings.get_profile("default"), max_examples=100_000)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "default")
settings.load_profile(PROFILE)


def pytest_addoption(parser: pytest.Parser) -> None:
    """See tests/support/golden.py."""
    parser.addoption("--update-golden", action="store_true", help="write golden files anew")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to run on a build that is stale, broken, or not the one that was asked for."""
    wrong = builds.complaint(INSTALLED, ROOT / "router", os.environ)
    if wrong:
        raise pytest.UsageError(wrong)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start processes; they run on both builds only where they ask for it."""
    for item in items:
        room = item.path.relative_to(ROOT / "tests").parts[0]
        origins = {getattr(each, "__module__", "") for each in _names(item)}
        if (
            room in PROCESS_ROOMS
            or not PROCESS_FIXTURES.isdisjoint(_fixtures(item))
            or not PROCESS_MODULES.isdisjoint(origins)
        ):
            item.add_marker(pytest.mark.process)


def pytest_collection_finish() -> None:
    """Keep the tests themselves, hundreds of megabytes, from the garbage collector."""
    gc.collect()
    gc.freeze()


def _fixtures(item: pytest.Item) -> Iterable[str]:
    return getattr(item, "fixturenames", ())


def _names(item: pytest.Item) -> Iterable[object]:
    return vars(getattr(item, "module", object)).values()


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Head the run with the build that it tests, and with how to repeat its random examples."""
    seed = config.getoption("hypothesis_seed", None)
    chosen = "" if seed is None else f" --hypothesis-seed={seed}"
    examples = settings().max_examples
    return [
        builds.header(INSTALLED),
        f"random examples: {examples} a test; HYPOTHESIS_PROFILE={PROFILE} pytest{chosen}",
    ]
