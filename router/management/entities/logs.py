"""Entity types of the log: the levels of each module, and how many lines there were."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from router.config.log_levels import DEFAULT, LEVELS
from router.logs.journal import Journal, Module
from router.management.entities.attributes import AttributesOf
from router.management.schema import CONFIGURATION, OPERATIONAL, Attribute, EntityType
from router.management.views import RouterView

UNCHANGEABLE: Final = {
    "includeTimestamp": "every line contains its time",
    "includeSource": "lines never contain their place in the source",
    "outputFile": "the log always goes to standard error",
}
"""Attributes that can be changed in Dispatch but not here, with the reasons."""

# Module and journal, from which a `log` entity is read.
ModuleLog = tuple[Module, Journal]


def logs(router: RouterView) -> list[ModuleLog]:
    """Return a pair of log module and journal for each `log` entity, DEFAULT last."""
    return [(module, router.journal) for module in router.journal.modules.values()]


def log_counts(router: RouterView) -> list[Module]:
    """Return the log module of each `logStats` entity, DEFAULT last."""
    return list(router.journal.modules.values())


def module_of(entity: object) -> Module:
    """Return the log module of a `log` entity."""
    module: object = entity[0] if isinstance(entity, tuple) else None
    assert isinstance(module, Module)
    return module


def _enabled(written: ModuleLog) -> str | None:
    module, journal = written
    if module.name == DEFAULT:
        return journal.settings.default_levels()
    return journal.settings.levels.get(module.name)


def _of_default(value: object) -> Callable[[ModuleLog], object]:
    # as in Dispatch: DEFAULT holds the values that are the same for all modules
    return lambda written: value if written[0].name == DEFAULT else None


def _name(written: ModuleLog) -> str:
    return f"log/{written[0].name}"


def _count(level: str, module: Module) -> int:
    return module.counts[level]


def _counts_name(module: Module) -> str:
    return f"logStats/{module.name}"


LOG: Final = EntityType[ModuleLog](
    "log",
    "Log levels of one module.",
    CONFIGURATION,
    (
        *AttributesOf[ModuleLog].identified(_name, _name, "log"),
        Attribute(
            "module",
            "string",
            "The module; DEFAULT stands for all modules without levels of their own.",
            lambda w: w[0].name,
        ),
        Attribute(
            "enable",
            "string",
            "The levels that are written, such as `debug+` or `info, warning+`; null if the "
            "levels of DEFAULT apply.",
            _enabled,
            changes=True,
        ),
        Attribute(
            "includeTimestamp", "boolean", "For DEFAULT: always true.", _of_default(value=True)
        ),
        Attribute(
            "includeSource", "boolean", "For DEFAULT: always false.", _of_default(value=False)
        ),
        Attribute(
            "outputFile", "string", "For DEFAULT: always stderr.", _of_default(value="stderr")
        ),
    ),
    operations=("READ", "UPDATE"),
)


LOG_STATS: Final = EntityType[Module](
    "logStats",
    "Number of log lines of a module, written or not.",
    OPERATIONAL,
    (
        *AttributesOf[Module].identified(_counts_name, _counts_name, "logStats"),
        *AttributesOf[Module].integers(
            (f"{level}Count", f"Lines at level {level}.", partial(_count, level))
            for level in LEVELS
        ),
    ),
)
