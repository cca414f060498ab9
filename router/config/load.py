"""From a TOML file to a `Configuration`, or to every mistake in it at once.

The way: tomllib reads the text, cattrs structures the data into the model and collects what each
kind refused, and the cross checks look at what is left. A value that was refused is taken out
before they run, so that they neither stop at it nor repeat it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Any, Final

import attrs

from router.config.checks import Check, find_contradictions, users_file_mistakes
from router.config.mistakes import (
    Finding,
    InvalidConfiguration,
    Mistake,
    Path as DataPath,
    format_path,
)
from router.config.model import Configuration
from router.config.positions import line_of, locate
from router.config.structure import structure, value_at

DEFAULT_SOURCE: Final = "the default configuration"

_TOML_PLACE: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def load_configuration(path: Path, further: Iterable[Check] = ()) -> Configuration:
    """Read the configuration file at `path`; files that it names are relative to its folder.

    `further` finds what is wrong by what this part of the router does not know. Raises
    InvalidConfiguration with every mistake found, also when the file cannot be read.
    """
    source = str(path)
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidConfiguration(
            [Mistake(source, 0, 0, "", "", f"cannot be read: {reason}")]
        ) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidConfiguration(
            [Mistake(source, line, 0, "", "", "is not UTF-8 text, as TOML has to be")]
        ) from None
    return parse_configuration(text, source=source, folder=path.parent, further=further)


def parse_configuration(
    text: str, *, source: str, folder: Path | None = None, further: Iterable[Check] = ()
) -> Configuration:
    """Read a configuration from TOML text. `source` is what mistakes call it.

    Paths in it are relative to `folder`, or to the working folder if there is none. The users files
    that it names are read to see that they can be. Raises InvalidConfiguration with every mistake
    found.
    """
    data, lines = _read_toml(text, source)
    refused = structure(data).findings
    usable = _without(data, {finding.path for finding in refused})
    configuration = _anchored(structure(usable).configuration, folder or Path())
    wrong = {finding.path for finding in refused}
    # An attribute that is not known was probably meant to be the one it is nearest to.
    wrong |= {(*one.path[:-1], one.nearest) for one in refused if one.nearest and one.path[1:]}
    # One a path is enough: a port is taken whether once or three times.
    contradictions: dict[DataPath, Finding] = {}
    checks = (find_contradictions, *further)
    for finding in chain.from_iterable(check(configuration, usable) for check in checks):
        if not any(_touches(path, wrong) for path in (finding.path, *finding.concerns)):
            contradictions.setdefault(finding.path, finding)
    findings = (*refused, *contradictions.values())
    mistakes = [_mistake(finding, data, lines, source) for finding in findings]
    mistakes.sort(key=lambda mistake: mistake.line)
    mistakes += users_file_mistakes(configuration)
    if mistakes:
        raise InvalidConfiguration(mistakes)
    return configuration


def default_configuration() -> Configuration:
    """What the router runs with when it is given no file: `default_text`, read."""
    return parse_configuration(default_text(), source=DEFAULT_SOURCE)


def default_text() -> str:
    """The commented default configuration that comes with the package."""
    return (resources.files("router.config") / "default.toml").read_text(encoding="utf-8")


def _read_toml(text: str, source: str) -> tuple[dict[str, Any], Mapping[DataPath, int]]:
    try:
        return tomllib.loads(text), locate(text)
    except RecursionError:
        raise InvalidConfiguration(
            [Mistake(source, 0, 0, "", "", "has lists or tables nested too deeply")]
        ) from None
    except tomllib.TOMLDecodeError as error:
        problem = str(error)
        line = column = 0
        if place := _TOML_PLACE.search(problem):
            problem = problem[: place.start()]
            # An end of the document is the end of its last line that says anything.
            last = text.rstrip()
            line = int(place[1] or last.count("\n") + 1)
            column = int(place[2] or len(last) - last.rfind("\n"))
        problem = f"is not TOML: {problem}"
        raise InvalidConfiguration([Mistake(source, line, column, "", "", problem)]) from None
    except ValueError:
        # Python's own limit, which tomllib does not speak of.
        problem = "has a number of too many digits"
        raise InvalidConfiguration([Mistake(source, 0, 0, "", "", problem)]) from None


def _without(data: dict[str, Any], gone: set[DataPath]) -> dict[str, Any]:
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


def _touches(path: DataPath, wrong: set[DataPath]) -> bool:
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
    )


def _mistake(
    finding: Finding, data: dict[str, Any], lines: Mapping[DataPath, int], source: str
) -> Mistake:
    return Mistake(
        source=source,
        line=line_of(lines, finding.path),
        column=0,
        path=format_path(finding.path),
        value=value_at(data, finding),
        problem=finding.problem,
        allowed=finding.allowed,
        nearest=finding.nearest,
    )
