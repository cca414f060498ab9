"""Changes made while a router ran, in a file that it reads at its next start.

The saved file is a whole configuration like any other, with a few lines at the top that say which
configuration file it was made from. If that file has been edited since, the router cannot know
which of the two is meant. It then reports how they differ, and does not start until the user
chooses one of them (docs/decisions/0039-what-is-saved.md).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

import attrs

from router.config.checks import Check
from router.config.difference_text import format_differences
from router.config.differences import Difference, find_differences
from router.config.load import (
    DEFAULT_SOURCE,
    default_text,
    load_configuration,
    load_file,
    parse_configuration,
)
from router.config.mistakes import InvalidConfiguration, Mistake
from router.config.model import Configuration
from router.config.qdrouterd.report import Report
from router.config.replacing import move_file, replace_file
from router.config.write import format_configuration
from router.errors import ConfigurationError

Preference = Literal["saved", "file"]

_HEAD: Final = """\
# The whole configuration, with the changes that were made while the router ran. It is read instead
# of the configuration file when the router starts. Written by trioute, again with each change; it
# may contain passwords.
#: over {source}
#: which was {digest}
#: revision {revision} of {at}

"""
_DIGEST: Final = re.compile(r"^#: which was (sha256:[0-9a-f]{64})$", re.MULTILINE)
_REVISION: Final = re.compile(r"^#: revision (\d{1,9}) of ", re.MULTILINE)


@attrs.frozen
class BaseConfiguration:
    """Configuration as in the configuration file, without changes made while the router runs.

    `file` is None for the embedded default. `report` is the report on a Dispatch file, otherwise
    None. With `weaker_security`, a Dispatch file is accepted regardless of its report.
    """

    configuration: Configuration
    file: Path | None = None
    report: Report | None = None
    weaker_security: bool = False

    @property
    def digest(self) -> str:
        """Return a hash of the values in the configuration; format and comments do not matter."""
        text = format_configuration(self.configuration)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    @property
    def source(self) -> str:
        """Return the path of the file, or the name of the default."""
        return DEFAULT_SOURCE if self.file is None else str(self.file)


@attrs.frozen
class Saved:
    """Configuration saved by an earlier run, and the digest of the file that it was made from."""

    configuration: Configuration
    digest: str
    revision: int


@attrs.frozen
class Start:
    """Configuration to run, and its `differences` from the configuration file."""

    configuration: Configuration
    differences: tuple[Difference, ...] = ()
    revision: int = 0


class BaseEdited(ConfigurationError):
    """Refusal to start, because the configuration file was edited after changes were saved."""


def load_base(
    file: Path | None, extra_checks: Iterable[Check] = (), *, weaker_security: bool = False
) -> BaseConfiguration:
    """Read a configuration file, or the embedded default; see `router.config.load.load_file`.

    Raises `router.config.mistakes.InvalidConfiguration` with every mistake found.
    """
    if file is None:
        text = default_text()
        return BaseConfiguration(
            parse_configuration(text, source=DEFAULT_SOURCE, extra_checks=extra_checks)
        )
    loaded = load_file(file, extra_checks, weaker_security=weaker_security)
    return BaseConfiguration(loaded.configuration, file, loaded.report, weaker_security)


def load_saved(file: Path, extra_checks: Iterable[Check] = ()) -> Saved | None:
    """Return the configuration saved in a file, or None if there is no such file.

    Raises InvalidConfiguration if the file has mistakes, or was not written by a router.
    """
    if not file.exists():
        return None
    configuration = load_configuration(file, extra_checks)
    text = file.read_text(encoding="utf-8")
    digest, revision = _DIGEST.search(text), _REVISION.search(text)
    if digest is None or revision is None:
        problem = "does not say which configuration file it was made from; give another --state"
        raise InvalidConfiguration([Mistake(str(file), 0, 0, "", "", problem)])
    return Saved(configuration, digest[1], int(revision[1]))


def choose_start(
    base: BaseConfiguration, saved: Saved | None, file: Path, prefer: Preference | None
) -> Start:
    """Choose between the configuration file and the configuration saved in `file`, if any.

    Raises BaseEdited if the configuration file was edited after the changes were saved, and
    `prefer` is None.
    """
    if saved is None:
        return Start(base.configuration)
    differences = find_differences(base.configuration, saved.configuration)
    if not differences or prefer == "file":
        return Start(base.configuration, (), saved.revision)
    if prefer != "saved" and saved.digest != base.digest:
        raise BaseEdited(
            f"{base.source} was edited after changes to it were saved in {file}, and does not "
            "contain all of them. The saved configuration differs from the file by:\n"
            f"{format_differences(differences)}\n"
            "Give --prefer saved to run what was saved, or --prefer file to run the file and "
            f"move the saved configuration to {backup_path(file)}"
        )
    return Start(saved.configuration, differences, saved.revision)


def backup_path(file: Path) -> Path:
    """Return the path to which a file of saved changes is moved when it is no longer used."""
    return file.with_name(f"{file.name}.old")


class StateFile:
    """Writer of the file that keeps changes for the next start."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def save(
        self, base: BaseConfiguration, configuration: Configuration, revision: int, at_s: float
    ) -> None:
        """Save a configuration if it differs from `base`; otherwise move the file aside.

        `at_s` is the time of the revision, in seconds since 1970. Raises OSError if the file cannot
        be written or moved.
        """
        if not find_differences(base.configuration, configuration):
            self.put_aside()
            return
        at = datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds")
        head = _HEAD.format(source=base.source, digest=base.digest, revision=revision, at=at)
        replace_file(self.file, head + format_configuration(configuration))

    def put_aside(self) -> None:
        """Move the file to its backup path, so that nothing is saved.

        Raises OSError if the file cannot be moved.
        """
        move_file(self.file, backup_path(self.file))
