"""Passwords in the configuration: where they come from, and how they stay out of every log.

The forms are those of Dispatch: `env:VARIABLE`, `file:PATH`, `pass:TEXT` and `literal:TEXT`; text
without such a prefix is the password itself. A file or a variable is read when a connection needs
the password, so that it can be changed without a restart.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Literal

import attrs

from router.errors import ConfigurationError

SecretKind = Literal["literal", "env", "file"]

_FORMS: Final[tuple[tuple[str, SecretKind], ...]] = (
    ("env:", "env"),
    ("file:", "file"),
    ("pass:", "literal"),
    ("literal:", "literal"),
)


class SecretUnavailable(ConfigurationError):
    """Failure to get a password: its variable or file is missing, unreadable or empty."""


@attrs.frozen
class Secret:
    """Password; `reference` is the password itself, a variable's name, or a file's path."""

    kind: SecretKind
    reference: str = attrs.field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Secret:
        """Return the secret for a text such as `env:VARIABLE`, or a password; never raises."""
        for form, kind in _FORMS:
            if text.startswith(form):
                return cls(kind, text.removeprefix(form))
        return cls("literal", text)

    def with_absolute_path(self, folder: Path) -> Secret:
        """Return the secret; if its file has a relative path, the path now starts from `folder`."""
        if self.kind != "file":
            return self
        return attrs.evolve(self, reference=str(folder / self.reference))

    def reveal(self) -> str:
        """Return the password itself.

        Raises SecretUnavailable if the variable or the file cannot be used; the message names it,
        but shows none of its contents.
        """
        if self.kind == "literal":
            return self.reference
        if self.kind == "env":
            found = os.environ.get(self.reference, "")
            if not found:
                raise SecretUnavailable(
                    f"the environment variable {self.reference} is not set, or is empty"
                )
            return found
        try:
            # An editor adds a line end; no password ends with one.
            found = Path(self.reference).read_text(encoding="utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise SecretUnavailable(f"the file {self.reference} is not UTF-8 text") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "not a path"
            raise SecretUnavailable(f"the file {self.reference} cannot be read: {reason}") from None
        if not found:
            raise SecretUnavailable(f"the file {self.reference} is empty")
        return found
