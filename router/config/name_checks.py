"""Findings about names and secrets that the checks of several entities share.

See `router.config.checks`, which runs these checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from router.config.mistakes import Finding, Path
from router.config.secret import Secret, SecretUnavailable


def check_names(entity: str, names: Iterable[str | None]) -> Iterator[Finding]:
    """Yield a finding for each entity of a kind that has no name, or the name of an earlier one."""
    seen: dict[str, int] = {}
    for index, name in enumerate(names):
        if name is None:
            yield Finding((entity, index, "name"), "is missing", f"give the {entity} a name")
        elif name in seen:
            yield Finding(
                (entity, index, "name"),
                f"is taken: {entity}[{seen[name]}] has the same name",
                "give another name",
                shown=True,
            )
        else:
            seen[name] = index


def unknown_name(
    where: Path, name: str | None, entity: str, known: Iterable[str | None]
) -> Finding:
    """Return the finding for a value that names an entity other than the `known` ones."""
    names = ", ".join(str(each) for each in known if each is not None)
    allowed = f"known here: {names}" if names else f"there is no {entity} yet: add one"
    return Finding(where, f"names {name}, which does not exist", allowed)


def check_secret(where: Path, secret: Secret | None) -> Iterator[Finding]:
    """Yield a finding if a secret cannot be read from its file or environment variable."""
    if secret is not None:
        try:
            secret.reveal()
        except SecretUnavailable as unavailable:
            yield Finding(where, f"is not available: {unavailable}")
