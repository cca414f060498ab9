"""List what a router is made of, or ask whether any of it is known to be vulnerable.

    python3 supply_chain.py sbom [FILE]    write a software bill of materials (CycloneDX)
    python3 supply_chain.py audit          compare with the advisories on PyPI

Runs on a bare Python. Both look at the packages that a router may run with: its dependencies, those
of its extras for run time, and those of the plugins. They are installed into a new environment, and
the tools into another one. Both are in `.venv-audit`. The audit exits
with 1 if a package has a known vulnerability. If the advisories cannot be read, as where only a
mirror of PyPI can be reached, it says so and exits with 0; with `--required` that is an error.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / ".venv-audit"
TOOLS = ("pip-audit>=2.9,<3", "cyclonedx-bom>=7,<8")
# Extras of pyproject.toml that no router runs with.
DEVELOPMENT = {"test", "fuzz", "dev"}
_NAME = re.compile(r"[A-Za-z0-9._-]+")
DEFAULT_FILE = Path("dist/trioute.cdx.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    sbom = commands.add_parser("sbom", help="write a software bill of materials")
    sbom.add_argument("file", nargs="?", type=Path, default=DEFAULT_FILE)
    audit = commands.add_parser("audit", help="look for known vulnerabilities")
    audit.add_argument("--required", action="store_true", help="fail if it cannot be done")
    given = parser.parse_args(arguments)
    tools, router = _environments()
    if given.command == "sbom":
        write_sbom(tools, router, given.file)
        return 0
    code, text = judge_audit(_audit(tools, router), required=given.required)
    print(text)
    return code


def dependencies() -> list[str]:
    """Return what a router may run with, as its and the plugins' pyproject.toml have it.

    Extras count, but not those for development (`DEVELOPMENT`).
    """
    own = _project(ROOT)
    found: list[str] = []
    names = {own["name"]}
    for project in (own, *map(_project, plugins())):
        names.add(project["name"])
        extras = project.get("optional-dependencies", {})
        found += project["dependencies"]
        for extra in extras.keys() - DEVELOPMENT:
            found += extras[extra]
    # the tree itself is not on PyPI
    return sorted({each for each in found if _name(each) not in names})


def plugins() -> list[Path]:
    """Return the folders of the plugins."""
    return sorted(file.parent for file in ROOT.glob("plugins/*/pyproject.toml"))


def _name(requirement: str) -> str:
    found = _NAME.match(requirement)
    assert found is not None, requirement
    return found[0]


def _project(folder: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads(
        (folder / "pyproject.toml").read_text(encoding="utf-8")
    )["project"]
    return project


def _environments() -> tuple[Path, Path]:
    """Make the two environments; return the folders of their programs."""
    made = []
    for name, packages in (("tools", TOOLS), ("router", dependencies())):
        place = PLACE / name
        venv.create(place, with_pip=True, clear=True)
        subprocess.run(
            [place / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", *packages],
            check=True,
        )
        made.append(place / "bin")
    # pip itself is no part of a router
    subprocess.run(
        [made[1] / "pip", "uninstall", "--quiet", "--yes", "setuptools", "pip"], check=True
    )
    return made[0], made[1]


def write_sbom(tools: Path, router: Path, file: Path) -> None:
    """Write the bill of materials of the environment `router` to a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    command: list[str | Path] = [
        *(tools / "cyclonedx-py", "environment", "--pyproject", ROOT / "pyproject.toml"),
        *("--output-reproducible", "--of", "JSON", "-o", file, router / "python"),
    ]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    count = len(json.loads(file.read_text(encoding="utf-8"))["components"])
    print(f"{file}: {count} packages")


def _audit(tools: Path, router: Path) -> dict[str, Any]:
    """Return the report of pip-audit on the environment `router`."""
    (packages,) = router.parent.glob("lib/python*/site-packages")
    command: list[str | Path] = [
        tools / "pip-audit",
        "--path",
        packages,
        "--format",
        "json",
        "--progress-spinner=off",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        reason = done.stderr.strip().splitlines() or ["pip-audit wrote nothing"]
        return {"dependencies": [], "problem": reason[-1]}
    return report


def judge_audit(report: dict[str, Any], *, required: bool) -> tuple[int, str]:
    """Return the exit code and the text for a report of pip-audit."""
    packages = report["dependencies"]
    bad = [
        f"{each['name']} {each['version']}: {', '.join(found['id'] for found in each['vulns'])}"
        + (f" (mended in {', '.join(fixed)})" if (fixed := _fixed(each)) else "")
        for each in packages
        if each.get("vulns")
    ]
    skipped = sum("skip_reason" in each for each in packages)
    if bad:
        return 1, "\n".join(["known vulnerabilities:", *(f"  {each}" for each in bad)])
    if not packages or skipped == len(packages):
        reason = report.get("problem", "PyPI's advisories cannot be reached from here")
        return int(required), f"not audited: {reason}"
    text = f"no known vulnerability in {len(packages) - skipped} packages"
    return 0, text if not skipped else f"{text}; {skipped} are not on PyPI"


def _fixed(package: dict[str, Any]) -> list[str]:
    return sorted({version for found in package["vulns"] for version in found["fix_versions"]})


if __name__ == "__main__":
    sys.exit(main())
