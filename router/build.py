"""Report which build is running: with a compiled data plane, or with the same files interpreted.

A module `x.py` with an `x.pxd` beside it belongs to the data plane, and is compiled if a C compiler
is available. The rest of the program does not depend on the build; this module is for people,
`trioute --version` and the test suite. It imports only the standard library, because the build hook
loads it before anything is installed.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
import sys
from importlib.machinery import ExtensionFileLoader, PathFinder
from pathlib import Path
from typing import Any, Final, Literal

RECORD_NAME: Final = "_build.json"
"""File in the installed package in which the build hook records its result."""

COST: Final = (
    "installed the uncompiled data plane; forwarding costs about 15 times more CPU per message"
)
"""Notice for the user of an installation without compiled modules."""

DataPlane = Literal["compiled", "interpreted", "mixed"]

_PACKAGE_DIR: Final = Path(__file__).resolve().parent


Record = dict[str, Any]
"""Content of the record file that lies beside the compiled modules."""


def hot_modules(package_dir: Path = _PACKAGE_DIR) -> list[str]:
    """Return the sorted dotted names of the data-plane modules that are compiled separately.

    These are all modules with a `.pxd` beside them, except for a few whose `.pxd` contains the
    compiled functions as inline functions. Such functions are compiled into the modules that call
    them.
    """
    found = []
    for pxd in package_dir.rglob("*.pxd"):
        if pxd.with_suffix(".py").is_file() and not _is_inlined(pxd):
            parts = pxd.relative_to(package_dir.parent).with_suffix("").parts
            found.append(".".join(parts))
    return sorted(found)


def _is_inlined(pxd: Path) -> bool:
    """Return whether the `.pxd` defines inline a function that the `.py` beside it also defines."""
    inline = re.findall(r"^cdef inline [^(]*?(\w+)\(", pxd.read_text("utf-8"), re.MULTILINE)
    defined = re.findall(r"^def (\w+)\(", pxd.with_suffix(".py").read_text("utf-8"), re.MULTILINE)
    return not set(inline).isdisjoint(defined)


def compiled_modules(package_dir: Path = _PACKAGE_DIR) -> list[str]:
    """Return the `hot_modules` that an import would load as machine code.

    The import system is asked which file it would load; no module is imported.
    """
    compiled = []
    for name in hot_modules(package_dir):
        directory = package_dir.parent.joinpath(*name.split(".")[:-1])
        spec = PathFinder.find_spec(name, [str(directory)])
        if spec is not None and isinstance(spec.loader, ExtensionFileLoader):
            compiled.append(name)
    return compiled


def data_plane(package_dir: Path = _PACKAGE_DIR) -> DataPlane:
    """Return the kind of build; "mixed" is a broken build, with only some modules compiled."""
    hot = hot_modules(package_dir)
    compiled = compiled_modules(package_dir)
    if not compiled:
        return "interpreted"
    return "compiled" if compiled == hot else "mixed"


def source_hashes(package_dir: Path = _PACKAGE_DIR) -> dict[str, str]:
    """Return the SHA-256, in hex, of each `.py` and `.pxd` in the package, by relative path."""
    return {
        path.relative_to(package_dir).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for pattern in ("*.py", "*.pxd")
        for path in sorted(package_dir.rglob(pattern))
    }


def record(package_dir: Path = _PACKAGE_DIR) -> Record | None:
    """Return what the build hook recorded, or None in a source tree, for which no hook has run.

    The record has these keys: `compiled` (names of the compiled modules), `why` (the reason why
    nothing was compiled, or an empty string), `quick` (whether compiled with few optimisations, in
    less time), `sanitized` (whether address and undefined-behaviour checks were compiled in),
    `sources` (see `source_hashes`).
    """
    path = package_dir / RECORD_NAME
    if not path.is_file():
        return None
    found: Record = json.loads(path.read_text(encoding="utf-8"))
    return found


def version() -> str:
    """Return the installed distribution's version, or "0+tree" if none is installed."""
    try:
        return importlib.metadata.version("trioute")
    except importlib.metadata.PackageNotFoundError:
        return "0+tree"


def describe(package_dir: Path = _PACKAGE_DIR) -> str:
    """Return a line that describes the build: its version, data plane, Python and location."""
    built = record(package_dir) or {}
    details = [f"data plane: {data_plane(package_dir)}"]
    if built.get("quick") and built.get("compiled"):
        details.append("quick build")
    if built.get("sanitized"):
        details.append("sanitized")
    if built.get("why"):
        details.append(str(built["why"]))
    python = f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}"
    return f"trioute {version()} ({', '.join(details)}; {python}; {package_dir})"


def notice(package_dir: Path = _PACKAGE_DIR) -> str:
    """Return why nothing was compiled and what that costs, or "" if no reason was recorded."""
    built = record(package_dir) or {}
    if not built.get("why"):
        return ""
    return f"trioute: {built['why']}, {COST}"


if __name__ == "__main__":
    print(notice() or describe())  # noqa: T201  (`make` shows it: installers hide a build's output)
