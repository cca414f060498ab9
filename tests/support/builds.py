"""Build of the router that the suite runs on, and whether it is the one it should run on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from router import build

EXPECT = "TRIOUTE_EXPECT_BUILD"


def differing_sources(installed: Path, tree: Path) -> list[str]:
    """Return the files that differ between an installed build's record and the source tree.

    Sources that were added or removed since count too. An installation without a record is judged
    by the sources it ships.
    """
    recorded = (build.record(installed) or {}).get("sources") or build.source_hashes(installed)
    current = build.source_hashes(tree)
    return sorted(
        path for path in recorded.keys() | current.keys() if recorded.get(path) != current.get(path)
    )


def complaint(installed: Path, tree: Path, environment: Mapping[str, str]) -> str:
    """Say why the suite must not run on `installed`, or return "".

    `installed` is the folder of the package that was imported, `tree` the one beside the tests.
    They are the same folder in an editable installation, which must be interpreted.
    """
    plane = build.data_plane(installed)
    if plane == "mixed":
        half = ", ".join(build.compiled_modules(installed))
        return f"broken build in {installed}: only a part of the data plane is compiled ({half})"
    expected = environment.get(EXPECT, plane)
    # Without any .pxd there is nothing to compile, and the two builds are one.
    if expected != plane and build.hot_modules(tree):
        return f"{EXPECT} asks for the {expected} build, but the one in {installed} is {plane}"
    if installed == tree:
        if plane == "compiled":
            return f"compiled modules in the source tree shadow it: delete the .so files in {tree}"
        return ""
    differing = differing_sources(installed, tree)
    if differing:
        shown = ", ".join(differing[:5]) + (" ..." if len(differing) > 5 else "")
        return f"stale build: {installed} is not this tree ({shown}); `make` builds it again"
    return ""


def header(installed: Path) -> str:
    """Return the line about the build that heads a test run."""
    sanitized = ", sanitized" if (build.record(installed) or {}).get("sanitized") else ""
    return f"data plane: {build.data_plane(installed)}{sanitized} ({installed})"
