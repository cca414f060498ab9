"""Checks of link routes: attributes that need or exclude each other, duplicates.

See `router.config.checks`, which runs these checks.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final

from router.config.kinds import tokens_covered
from router.config.mistakes import Data, Finding, Path
from router.config.model import Configuration


def _forms(configuration: Configuration, _: Data) -> Iterator[Finding]:
    for index, route in enumerate(configuration.link_routes):
        here: Path = ("linkRoute", index)
        forms: tuple[Path, ...] = ((*here, "prefix"), (*here, "pattern"))
        if route.prefix is None and route.pattern is None:
            yield Finding(
                here,
                "does not say which addresses it covers",
                "give a prefix or a pattern",
                concerns=forms,
            )
        elif route.prefix is not None and route.pattern is not None:
            yield Finding(
                (*here, "pattern"),
                "cannot be combined with a prefix",
                "give one of the two",
                shown=True,
                concerns=forms,
            )
        if route.direction is None:
            yield Finding(
                (*here, "direction"),
                "is missing",
                'give "in" or "out", or a link route for each',
                concerns=((*here, "direction"),),
            )


def _repeats(configuration: Configuration, data: Data) -> Iterator[Finding]:
    seen: dict[Hashable, int] = {}
    names: dict[str, int] = {}
    for index, route in enumerate(configuration.link_routes):
        tokens = tokens_covered(route.prefix, route.pattern)
        if tokens is None or route.direction is None:
            continue
        same = (route.direction, tokens, route.container_id, route.connection)
        first = seen.setdefault(same, index)
        if first != index:
            key = "pattern" if route.prefix is None else "prefix"
            yield Finding(
                ("linkRoute", index, key),
                f"forwards the same links as linkRoute[{first}]",
                "give each only once",
                shown=True,
                concerns=_both(first, index, "prefix", "pattern", "direction"),
            )
        named = names.setdefault(route.name, index)
        given = any("name" in data["linkRoute"][at] for at in (named, index))
        if named != index and (first == index or given):
            yield Finding(
                ("linkRoute", index, "name"),
                f"is also the name of linkRoute[{named}]",
                "give each its own name",
                shown=True,
                concerns=_both(named, index, "name"),
            )


def _both(first: int, second: int, *keys: str) -> tuple[Path, ...]:
    return tuple(("linkRoute", at, key) for at in (first, second) for key in keys)


LINK_ROUTE_CHECKS: Final = (_forms, _repeats)
