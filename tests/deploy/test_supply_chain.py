"""The audit's verdicts, and which packages it looks at."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def load() -> ModuleType:
    """Return the script as a module; it is not part of a package."""
    file = Path(__file__).parents[2] / "deploy" / "build" / "supply_chain.py"
    spec = importlib.util.spec_from_file_location("supply_chain", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CLEAN = {"name": "trio", "version": "0.30", "vulns": []}
BAD = {
    "name": "jinja2",
    "version": "2.10",
    "vulns": [{"id": "PYSEC-2019-217", "fix_versions": ["2.10.1"]}],
}
SKIPPED = {"name": "trio", "skip_reason": "Dependency not found on PyPI"}


@pytest.mark.parametrize(
    ("packages", "required", "code", "text"),
    [
        ([CLEAN, CLEAN], False, 0, "no known vulnerability in 2 packages"),
        ([CLEAN, SKIPPED], True, 0, "no known vulnerability in 1 packages; 1 are not on PyPI"),
        (
            [CLEAN, BAD],
            False,
            1,
            "known vulnerabilities:\n  jinja2 2.10: PYSEC-2019-217 (mended in 2.10.1)",
        ),
        ([SKIPPED], False, 0, "not audited: PyPI's advisories cannot be reached from here"),
        ([SKIPPED], True, 1, "not audited: PyPI's advisories cannot be reached from here"),
        ([], False, 0, "not audited: PyPI's advisories cannot be reached from here"),
    ],
    ids=["clean", "partly", "vulnerable", "unreachable", "required", "nothing"],
)
def test_what_an_audit_says(
    packages: list[dict[str, Any]], required: bool, code: int, text: str
) -> None:
    judged = load().judge_audit({"dependencies": packages}, required=required)
    assert judged == (code, text)


def names(script: ModuleType) -> set[str]:
    """Return the names of the packages that are looked at."""
    return {re.split(r"[^A-Za-z0-9_-]", each)[0].lower() for each in script.dependencies()}


def test_the_dependencies_of_a_router_are_looked_at() -> None:
    found = names(load())
    # a dependency, one of the extra `claims`, and two of plugins, one of these by an extra
    assert found > {"trio", "pyjwt", "python-ldap", "pyiceberg"}
    assert not found & {"pytest", "hypothesis", "mypy", "atheris"}
    assert not any(each.startswith("trioute") for each in found)


def test_every_plugin_is_looked_at() -> None:
    script = load()
    found = script.plugins()
    assert {each.name for each in found} == {
        each.name for each in (script.ROOT / "plugins").iterdir() if any(each.glob("*/__init__.py"))
    }
    looked_at = set(script.dependencies())
    for folder in found:
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        wanted = list(project["dependencies"])
        for extra in project.get("optional-dependencies", {}).values():
            wanted += extra
        assert {each for each in wanted if not each.startswith("trioute")} <= looked_at, folder
