"""Configuration of a router, put together entity by entity for tests."""

from __future__ import annotations

import json

from router.config.checks import Check
from router.config.load import parse_configuration
from router.config.mistakes import InvalidConfiguration, Mistake

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


def mistakes_in(text: str, *extra_checks: Check) -> tuple[Mistake, ...]:
    """Return the mistakes in a file, whose name is given as "f"."""
    try:
        parse_configuration(text, source="f", extra_checks=extra_checks)
    except InvalidConfiguration as invalid:
        return invalid.mistakes
    return ()


def problems_in(text: str, *extra_checks: Check) -> list[str]:
    """Return the mistakes in a file as people read them, each without its place."""
    return [str(each).partition(": ")[2] for each in mistakes_in(text, *extra_checks)]
