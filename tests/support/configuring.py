"""Configuration of a router, put together entity by entity for tests."""

from __future__ import annotations

import json

LISTENER = "[[listener]]\nport = 0\n\n"
# Ignores what receivers ask for that it does not have, as Dispatch does.
LENIENT = f"""\
[router]
unsupportedFilters = "ignore"
durableSubscriptions = "ignore"

{LISTENER}"""
# For listeners whose clients stand still while a test that drives them waits for something else, as
# for routers that start, which may take longer than a peer may be silent.
PATIENT = {"idleTimeoutSeconds": 120}


def entity(kind: str, **attributes: str | int | bool | list[str]) -> str:
    """Return one entity in TOML, with its attributes' names as given."""
    # what JSON writes of these, TOML reads
    lines = [f"{name} = {json.dumps(value)}" for name, value in attributes.items()]
    return "\n".join([f"[[{kind}]]", *lines, "", ""])


def both_ways(kind: str, **attributes: str | int | bool | list[str]) -> str:
    """Return two entities, one for each direction."""
    return "".join(entity(kind, direction=direction, **attributes) for direction in ("in", "out"))
