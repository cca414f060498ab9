"""Names that requests and answers contain, apart from those of entities and attributes."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "org.apache.qpid.dispatch."
"""Prefix of the names of entity types, which are Dispatch's."""

SOURCE: Final = "the configuration"
"""Name, in error messages, of a configuration that a request contains."""


def long_name(name: str) -> str:
    """Return the name of a type with its prefix, whether `name` has it or not."""
    return name if name.startswith((PREFIX, "org.amqp.")) else PREFIX + name
