"""SASL configuration of a Dispatch file: where Cyrus SASL has the users, and what they can use.

qdrouterd leaves passwords to the library Cyrus SASL, with the configuration file
`saslConfigDir/saslConfigName.conf`: lines of `key: value`. The users can be read if they are in a
database of the library (`auxprop_plugin: sasldb`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from router.config.qdrouterd.document import Document, modern_name, modern_section

DEFAULT_FOLDER: Final = "/etc/sasl2"
DEFAULT_NAME: Final = "qdrouterd"
DEFAULT_DATABASE: Final = "/etc/sasldb2"
_LARGEST_BYTES: Final = 2**16


@attrs.frozen
class SaslUsers:
    """Database of users that a SASL configuration names, or the problem why it is not used.

    `mechanisms` are those that the configuration allows; None stands for all. `source` is the file.
    """

    source: str = ""
    database: str = ""
    mechanisms: tuple[str, ...] | None = None
    problem: str = ""

    def admits(self, mechanism: str) -> bool:
        """Return whether users of the database can log in with a mechanism.

        That is PLAIN alone: the database has no keys for SCRAM.
        """
        is_allowed = self.mechanisms is None or mechanism in self.mechanisms
        return bool(self.database) and mechanism == "PLAIN" and is_allowed


def find_sasl_users(document: Document, folder: Path | None) -> SaslUsers:
    """Find the database of users for a Dispatch file; relative paths start from `folder`."""
    place = _place(document, folder or Path())
    try:
        with place.open("rb") as file:
            text = file.read(_LARGEST_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "is not a valid path"
        return SaslUsers(problem=f"{place}: {reason}")
    given = _settings(text)
    methods = given.get("pwcheck_method", "auxprop").split()
    plugins = given.get("auxprop_plugin", "sasldb").split()
    if "auxprop" not in methods or "sasldb" not in plugins:
        return SaslUsers(problem=f"{place} names no database of the type sasldb")
    database = given.get("sasldb_path", DEFAULT_DATABASE)
    if not ((folder or Path()) / database).is_file():
        return SaslUsers(problem=f"{place} names a database that does not exist, {database}")
    allowed = given.get("mech_list")
    mechanisms = None if allowed is None else tuple(allowed.upper().replace(",", " ").split())
    return SaslUsers(str(place), database, mechanisms)


def _place(document: Document, folder: Path) -> Path:
    given: dict[str, str] = {}
    for section in document.sections:
        if modern_section(section.name) in ("router", "container"):
            given |= {modern_name(key): str(each.value) for key, each in section.given.items()}
    inside = given.get("saslConfigDir") or given.get("saslConfigPath") or DEFAULT_FOLDER
    return folder / inside / f"{given.get('saslConfigName') or DEFAULT_NAME}.conf"


def _settings(text: str) -> Mapping[str, str]:
    """Return the settings of a SASL configuration; the library skips what is no setting."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and not line.lstrip().startswith("#"):
            found.setdefault(key.strip().lower(), value.strip())
    return found
