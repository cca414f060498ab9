"""Load a `Configuration` from a file, or find every mistake in it at once.

The file is TOML or a Dispatch file; its content shows which (`router.config.qdrouterd.syntax`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Final

import attrs

from router.config.building import build
from router.config.checks import Check
from router.config.mistakes import Data, InvalidConfiguration, Mistake, Path as DataPath
from router.config.model import Configuration
from router.config.positions import find_lines
from router.config.qdrouterd.reading import parse_dispatch
from router.config.qdrouterd.report import Report
from router.config.qdrouterd.syntax import detect_syntax

DEFAULT_SOURCE: Final = "the default configuration"

_TOML_PLACE: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@attrs.frozen
class Loaded:
    """Configuration that was read from a file.

    `report` is the report on a Dispatch file; for TOML it is None.
    """

    configuration: Configuration
    report: Report | None = None


def load_configuration(path: Path, extra_checks: Iterable[Check] = ()) -> Configuration:
    """Read the configuration file at `path`; see `load_file`."""
    return load_file(path, extra_checks).configuration


def load_file(
    path: Path, extra_checks: Iterable[Check] = (), *, weaker_security: bool = False
) -> Loaded:
    """Read the configuration file at `path`; files that it names are relative to its folder.

    `extra_checks` are checks that other parts of the router add. With `weaker_security`, a Dispatch
    file is accepted even if not all of its security settings are supported. Raises
    InvalidConfiguration with every mistake found, or if the file cannot be read.
    """
    text, source = read_text(path), str(path)
    syntax = detect_syntax(text, path.suffix)
    if syntax == "toml":
        configuration = parse_configuration(
            text, source=source, folder=path.parent, extra_checks=extra_checks
        )
        return Loaded(configuration)
    moved = parse_dispatch(
        text,
        syntax,
        source=source,
        folder=path.parent,
        extra_checks=extra_checks,
        weaker_security=weaker_security,
    )
    return Loaded(moved.configuration, moved.report)


def read_text(path: Path) -> str:
    """Return the text of a configuration file.

    Raises InvalidConfiguration if the file cannot be read or is not UTF-8 text.
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
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidConfiguration(
            [Mistake(source, line, 0, "", "", "is not UTF-8 text")]
        ) from None


def parse_configuration(
    text: str, *, source: str, folder: Path | None = None, extra_checks: Iterable[Check] = ()
) -> Configuration:
    """Read a configuration from TOML text; `source` is the name of the file in mistakes.

    File paths in the text are relative to `folder` or, if that is None, to the working folder. The
    users files that the text names are checked as well. Raises InvalidConfiguration with every
    mistake found.
    """
    data, lines = read_toml(text, source)
    built = build(data, folder, extra_checks)
    mistakes = built.mistakes(data, lines, source)
    if mistakes:
        raise InvalidConfiguration(mistakes)
    return built.configuration


def default_configuration() -> Configuration:
    """Return the configuration that a router runs if no file is given."""
    return parse_configuration(default_text(), source=DEFAULT_SOURCE)


def default_text() -> str:
    """Return the commented default configuration that comes with the package."""
    return (resources.files("router.config") / "default.toml").read_text(encoding="utf-8")


def read_toml(text: str, source: str) -> tuple[Data, Mapping[DataPath, int]]:
    """Parse TOML text; return its data, and the lines of the data's parts.

    Raises InvalidConfiguration if the text is not TOML.
    """
    try:
        return tomllib.loads(text), find_lines(text)
    except RecursionError:
        raise InvalidConfiguration(
            [Mistake(source, 0, 0, "", "", "has lists or tables nested too deeply")]
        ) from None
    except tomllib.TOMLDecodeError as error:
        problem = str(error)
        line = column = 0
        if place := _TOML_PLACE.search(problem):
            problem = problem[: place.start()]
            # For the end of the document, give the end of its last line that is not blank.
            last = text.rstrip()
            line = int(place[1] or last.count("\n") + 1)
            column = int(place[2] or len(last) - last.rfind("\n"))
        problem = f"is not TOML: {problem}"
        raise InvalidConfiguration([Mistake(source, line, column, "", "", problem)]) from None
    except ValueError:
        # Python's limit on the digits of a number, which tomllib does not report itself.
        problem = "has a number with too many digits"
        raise InvalidConfiguration([Mistake(source, 0, 0, "", "", problem)]) from None
