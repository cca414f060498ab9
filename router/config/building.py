"""From the data of a file, in whatever syntax it was, to a `Configuration` or to what is wrong.

cattrs structures the data into the model and collects what each kind refused, and the cross checks
look at what is left. A value that was refused is taken out before they run, so that they neither
stop at it nor repeat it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import attrs

from router.config.checks import Check, find_contradictions, users_file_mistakes
from router.config.mistakes import Finding, Mistake, Path as DataPath, format_path
from router.config.model import Configuration
from router.config.plugin_classes import anchored
from router.config.positions import line_of
from router.config.structure import structure, value_at


@attrs.frozen
class Built:
    """A configuration, which means nothing where there are `findings`."""

    configuration: Configuration
    findings: tuple[Finding, ...]

    def mistakes(
        self,
        data: dict[str, Any],
        lines: Mapping[DataPath, int],
        source: str,
        place: Callable[[DataPath], DataPath] = lambda path: path,
    ) -> list[Mistake]:
        """What is wrong, as people read it, in the order of the file, and in the files it names.

        `lines` are where things stand in it, and `place` is what a path in the data is there.
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


def build(data: dict[str, Any], folder: Path | None, further: Iterable[Check] = ()) -> Built:
    """Build a configuration from parsed data. Paths in it are relative to `folder`, or to the
    working folder if there is none; `further` finds what is wrong by what this part of the router
    does not know.
    """
    refused = structure(data).findings
    usable = without(data, {finding.path for finding in refused})
    configuration = _anchored(structure(usable).configuration, folder or Path())
    wrong = {finding.path for finding in refused}
    # An attribute that is not known was probably meant to be the one it is nearest to.
    wrong |= {(*one.path[:-1], one.nearest) for one in refused if one.nearest and one.path[1:]}
    # One a path is enough: a port is taken whether once or three times.
    contradictions: dict[DataPath, Finding] = {}
    checks = (find_contradictions, *further)
    for finding in chain.from_iterable(check(configuration, usable) for check in checks):
        if not any(touches(path, wrong) for path in (finding.path, *finding.concerns)):
            contradictions.setdefault(finding.path, finding)
    return Built(configuration, (*refused, *contradictions.values()))


def without(data: dict[str, Any], gone: set[DataPath]) -> dict[str, Any]:
    """A copy of `data` with the values at `gone` left out; in a list an empty table takes the
    place.
    """

    def copied(value: Any, here: DataPath) -> Any:
        if isinstance(value, dict):
            return {
                key: copied(item, (*here, key))
                for key, item in value.items()
                if (*here, key) not in gone
            }
        if isinstance(value, list) and len(here) == 1:
            return [
                {} if (*here, index) in gone else copied(item, (*here, index))
                for index, item in enumerate(value)
            ]
        return value

    result: dict[str, Any] = copied(data, ())
    return result


def touches(path: DataPath, wrong: set[DataPath]) -> bool:
    """Whether a path leads to, or into, one of those that are wrong."""
    return any(path[:length] in wrong for length in range(1, len(path) + 1))


def _anchored(configuration: Configuration, folder: Path) -> Configuration:
    """The same, with whole paths of files where they were relative to `folder`."""
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
            else attrs.evolve(connector, sasl_password=connector.sasl_password.anchored(folder))
            for connector in configuration.connectors
        ),
        plugins=tuple(anchored(plugin, folder) for plugin in configuration.plugins),
    )
