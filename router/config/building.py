"""Build a `Configuration` from parsed data in any syntax, or find what is wrong with the data.

cattrs converts the data to the model and collects the values that are not allowed. Then the cross
checks (`router.config.checks`) run on the other values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import attrs

from router.config.checks import Check, find_contradictions, users_file_mistakes
from router.config.claims import ClaimsSettings, SharedAccessKeySettings
from router.config.mistakes import Data, Finding, Mistake, Path as DataPath, format_path
from router.config.model import Configuration
from router.config.plugin_classes import with_absolute_paths
from router.config.positions import line_of
from router.config.secret import Secret
from router.config.ssl_profiles import SslProfileSettings
from router.config.structure import structure, value_at

Anchored = TypeVar("Anchored", SslProfileSettings, SharedAccessKeySettings, ClaimsSettings)
"""Class of settings with paths of files in its attributes."""


@attrs.frozen
class Built:
    """Result of `build`: a configuration and the findings about the data.

    If there are findings, the configuration must not be used.
    """

    configuration: Configuration
    findings: tuple[Finding, ...]

    def mistakes(
        self,
        data: Data,
        lines: Mapping[DataPath, int],
        source: str,
        place: Callable[[DataPath], DataPath] = lambda path: path,
    ) -> list[Mistake]:
        """Return the mistakes in the configuration file, by line, then those in its users files.

        `lines` maps paths in the data to lines. `place` converts a path in the data to the path in
        the file; only in a Dispatch file do the two differ.
        """
        found = [
            Mistake(
                source=source,
                line=line_of(lines, finding.path),
                column=0,
                path=format_path(place(finding.path)),
                value=value_at(data, finding),
                problem=finding.problem,
                allowed=finding.allowed,
                nearest=finding.nearest,
            )
            for finding in self.findings
        ]
        found.sort(key=lambda mistake: mistake.line)
        return [*found, *users_file_mistakes(self.configuration)]


def build(data: Data, folder: Path | None, extra_checks: Iterable[Check] = ()) -> Built:
    """Build a configuration from parsed data.

    File paths in the data are relative to `folder` or, if that is None, to the working folder.
    `extra_checks` are checks that other parts of the router add.
    """
    refused = structure(data).findings
    usable = without_paths(data, {finding.path for finding in refused})
    configuration = _anchored(structure(usable).configuration, folder or Path())
    wrong = {finding.path for finding in refused}
    # An unknown attribute was probably meant to be the one with the nearest name.
    wrong |= {(*one.path[:-1], one.nearest) for one in refused if one.nearest and one.path[1:]}
    # One finding per path is enough, even if a port is taken three times.
    contradictions: dict[DataPath, Finding] = {}
    checks = (find_contradictions, *extra_checks)
    for finding in chain.from_iterable(check(configuration, usable) for check in checks):
        if not any(is_within(path, wrong) for path in (finding.path, *finding.concerns)):
            contradictions.setdefault(finding.path, finding)
    return Built(configuration, (*refused, *contradictions.values()))


def without_paths(data: Data, gone: set[DataPath]) -> Data:
    """Return a copy of `data` without the values at the paths in `gone`.

    An entity that is removed from a list is replaced by an empty table, so that indices stay the
    same.
    """
    return _without(data, (), gone)


def _without(table: Data, here: DataPath, gone: set[DataPath]) -> dict[str, object]:
    def copied(value: object, there: DataPath) -> object:
        if isinstance(value, dict):
            return _without(value, there, gone)
        if isinstance(value, list) and len(there) == 1:
            return [
                {} if (*there, index) in gone else copied(item, (*there, index))
                for index, item in enumerate(value)
            ]
        return value

    return {
        key: copied(item, (*here, key)) for key, item in table.items() if (*here, key) not in gone
    }


def is_within(path: DataPath, wrong: set[DataPath]) -> bool:
    """Return whether `path` is one of the `wrong` paths, or begins with one of them."""
    return any(path[:length] in wrong for length in range(1, len(path) + 1))


def _anchored(configuration: Configuration, folder: Path) -> Configuration:
    """Return the configuration with absolute file paths; relative ones start from `folder`."""
    folder = folder.absolute()
    return attrs.evolve(
        configuration,
        listeners=tuple(
            listener
            if listener.users_file is None
            else attrs.evolve(listener, users_file=folder / listener.users_file)
            for listener in configuration.listeners
        ),
        connectors=tuple(
            connector
            if connector.sasl_password is None
            else attrs.evolve(
                connector, sasl_password=connector.sasl_password.with_absolute_path(folder)
            )
            for connector in configuration.connectors
        ),
        ssl_profiles=tuple(
            _with_absolute_paths(profile, folder) for profile in configuration.ssl_profiles
        ),
        proxy_profiles=tuple(
            proxy
            if proxy.password is None
            else attrs.evolve(proxy, password=proxy.password.with_absolute_path(folder))
            for proxy in configuration.proxy_profiles
        ),
        shared_access_keys=tuple(
            _with_absolute_paths(each, folder) for each in configuration.shared_access_keys
        ),
        claims=tuple(_with_absolute_paths(each, folder) for each in configuration.claims),
        plugins=tuple(with_absolute_paths(plugin, folder) for plugin in configuration.plugins),
    )


def _with_absolute_paths(settings: Anchored, folder: Path) -> Anchored:
    """Return settings whose file paths are absolute; relative ones start from `folder`."""
    found: dict[str, Any] = {}
    for field in attrs.fields(type(settings)):
        value = getattr(settings, field.name)
        if isinstance(value, Path):
            found[field.name] = folder / value
        elif isinstance(value, Secret):
            found[field.name] = value.with_absolute_path(folder)
    return attrs.evolve(settings, **found)
