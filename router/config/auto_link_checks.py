"""Checks of auto-links: missing attributes and repeated names.

See `router.config.checks`, which runs these checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from router.config.mistakes import Data, Finding, Path
from router.config.model import Configuration


def _forms(configuration: Configuration, _: Data) -> Iterator[Finding]:
    for index, auto_link in enumerate(configuration.auto_links):
        here: Path = ("autoLink", index)
        for key, advice in (
            ("address", "say which address the link is for"),
            ("direction", 'give "in" for messages from the container, or "out" for messages to it'),
        ):
            if getattr(auto_link, key) is None:
                yield Finding((*here, key), "is missing", advice, concerns=((*here, key),))


def _names(configuration: Configuration, _: Data) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for index, auto_link in enumerate(configuration.auto_links):
        if auto_link.address is None or auto_link.direction is None:
            continue
        first = seen.setdefault(auto_link.name, index)
        if first != index:
            yield Finding(
                ("autoLink", index, "name"),
                f"is also the name of autoLink[{first}]",
                "give each its own name",
                shown=True,
                concerns=tuple(
                    ("autoLink", at, key)
                    for at in (first, index)
                    for key in ("name", "address", "direction", "containerId", "connection")
                ),
            )


AUTO_LINK_CHECKS: Final = (_forms, _names)
