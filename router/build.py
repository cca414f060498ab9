"""Report which build is running: with a compiled data plane, or with the same files interpreted.

A module `x.py` with an `x.pxd` beside it belongs to the data plane, and is compiled if a C compiler
is available. The rest of the program does not depend on which build runs; this module is for
people, `trioute --version` and the test suite. It imports only the standard library, because the
build hook loads it before anything is installed. No section of the specification applies.
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
    """Return the sorted dotted names of the modules of the data plane that compile separately.

    These are all modules with a `.pxd` beside them, except for the few whose `.pxd` holds the
    compiled bodies itself, as inline functions: those are compiled into the modules that call them.
    """
    found = []
    for pxd in package_dir.rglob("*.pxd"):
        if pxd.with_suffix(".py").is_file() and not _is_inlined(pxd):
            parts = pxd.relative_to(package_dir.parent).with_suffix("").parts
            found.append(".".join(parts))
    return sorted(found)


def _is_inlined(pxd: Path) -> bool:
    """Return whether the `.pxd` holds bodies of functions that the `.py` beside it defines too."""
    inline = re.findall(r"^cdef inline [^(]*?(\w+)\(", pxd.read_text("utf-8"), re.MULTILINE)
    defined = re.findall(r"^def (\w+)\(", pxd.with_suffix(".py").read_text("utf-8"), re.MULTILINE)
    return not set(inline).isdisjoint(defined)


def compiled_modules(package_dir: Path = _PACKAGE_DIR) -> list[str]:
    """Return the `hot_modules` that an import would load as machine code.

    Asks the import system which file it would use, and imports nothing.
    """
    compiled = []
    for name in hot_modules(package_dir):
        directory = package_dir.parent.joinpath(*name.split(".")[:-1])
        spec = PathFinder.find_spec(name, [str(directory)])
        if spec is not None and isinstance(spec.loader, ExtensionFileLoader):
            compiled.append(name)
    return compiled


def data_plane(package_dir: Path = _PACKAGE_DIR) -> DataPlane:
    """Return which build this is; "mixed" is a broken one, with only some modules compiled."""
    hot = hot_modules(package_dir)
    compiled = compiled_modules(package_dir)
    if not compiled:
        return "interpreted"
    return "compiled" if compiled == hot else "mixed"


def source_hashes(package_dir: Path = _PACKAGE_DIR) -> dict[str, str]:
    """Return the SHA-256, in hex, of every `.py` and `.pxd` under the package, by relative path."""
    return {
        path.relative_to(package_dir).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for pattern in ("*.py", "*.pxd")
        for path in sorted(package_dir.rglob(pattern))
    }


def record(package_dir: Path = _PACKAGE_DIR) -> Record | None:
    """Return the build hook's record, or None in a source tree, which no hook has built.

    Keys: `compiled` (module names), `why` (the reason why nothing was compiled, or an empty
    string), `sanitized` (whether address and undefined-behaviour checks were compiled in),
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
    """Return one line for people: the version, the build, the Python version and the location."""
    built = record(package_dir) or {}
    details = [f"data plane: {data_plane(package_dir)}"]
    if built.get("sanitized"):
        details.append("sanitized")
    if built.get("why"):
        details.append(str(built["why"]))
    python = f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}"
    return f"trioute {version()} ({', '.join(details)}; {python}; {package_dir})"


def notice(package_dir: Path = _PACKAGE_DIR) -> str:
    """Return the notice for users of an uncompiled installation, or "" if it is not needed."""
    built = record(package_dir) or {}
    if not built.get("why"):
        return ""
    return f"trioute: {built['why']}, {COST}"


if __name__ == "__main__":
    print(notice() or describe())  # noqa: T201  (`make` shows it: installers hide a build's output)
