"""Rules on the repository's texts: no paths of a developer's machine, no dead links."""

from __future__ import annotations

import re
from pathlib import Path

from support.house.sources import text_files

# Put together here so that this file does not offend against itself.
_WORKPLACES = ("/" + "work/", "/" + "home/", "/" + "Users/")
_REGISTRIES = (
    "pypi" + ".org",
    "pythonhosted" + ".org",
    "registry." + "npmjs",
    "registry." + "yarnpkg",
)

_WORKPLACE = re.compile(r"(?<![\w.~*-])(?:" + "|".join(_WORKPLACES) + r")")
_REGISTRY = re.compile("|".join(re.escape(host) for host in _REGISTRIES))

# [text](target), with a title or a fragment left aside; images are links as well.
_LINK = re.compile(r"\]\(\s*<?([^)\s>#]+)(?:#[^)\s>]*)?>?(?:\s+\"[^\"]*\")?\s*\)")
_FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2\s*$", re.MULTILINE | re.DOTALL)


def workplace_paths(root: Path) -> list[str]:
    """Return each line with an absolute path that exists on one person's machine only."""
    return _matches(root, _WORKPLACE)


def registry_hosts(root: Path) -> list[str]:
    """Return each line that names a package registry's host, which is the installer's choice."""
    return _matches(root, _REGISTRY)


def _matches(root: Path, pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {found[0]}"
        for name, text in text_files(root)
        for number, line in enumerate(text.splitlines(), 1)
        if (found := pattern.search(line))
    ]


def dead_links(root: Path) -> list[str]:
    """Return each relative link of a Markdown page whose target is not in the tree."""
    offences = []
    for name, text in text_files(root):
        if not name.endswith(".md"):
            continue
        page = root / name
        for match in _LINK.finditer(_FENCE.sub("", text)):
            target = match[1]
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            place = root / target.lstrip("/") if target.startswith("/") else page.parent / target
            if not place.exists():
                offences.append(f"{name}: there is no {target}")
    return offences
