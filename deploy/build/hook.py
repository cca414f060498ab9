"""Build hook of the wheel: compile the data plane if possible, and record what was made.

Read from the environment:

    TRIOUTE_COMPILE=0   never compile
    TRIOUTE_COMPILE=1   treat a machine without a working compiler as an error
    TRIOUTE_QUICK=1     compile in half of the time, with fewer optimisations
    TRIOUTE_SANITIZE=1  compile with address and undefined-behaviour checks (implies
                        TRIOUTE_COMPILE=1)

With none of them a missing compiler costs speed, not the installation. Where a compiler works,
though, code that does not compile is always an error: a wheel must not lose its data plane to a
typing mistake unnoticed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.builders.wheel import WheelBuilderConfig

NO_COMPILER_EXIT = 3


class DataPlaneHook(BuildHookInterface[WheelBuilderConfig]):
    """Adds the compiled modules, and `_build.json`, to a wheel of the package `router`."""

    PLUGIN_NAME = "custom"

    _scratch: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile into a temporary folder and name the results in `build_data["force_include"]`.

        An editable wheel is left alone: it leads to the source tree, which stays uncompiled.
        """
        if version == "editable":
            return
        package_dir = Path(self.root, "router")
        build = _load(package_dir / "build.py")
        hot = build.hot_modules(package_dir)
        self._scratch = Path(tempfile.mkdtemp(prefix="trioute-build-"))
        out_dir = self._scratch / "out"
        out_dir.mkdir()

        compiled: list[Path] = []
        why = ""
        sanitize = os.environ.get("TRIOUTE_SANITIZE") == "1"
        if os.environ.get("TRIOUTE_COMPILE") == "0" and not sanitize:
            why = "TRIOUTE_COMPILE=0 was set"
        elif hot:
            compiled, why = self._compile(package_dir, out_dir, hot)

        for path in compiled:
            build_data["force_include"][str(out_dir / path)] = str(path)
        if compiled:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
        if why:
            self.app.display_warning(f"trioute: {why}, {build.COST}")

        record = self._scratch / build.RECORD_NAME
        contents = {
            "compiled": hot if compiled else [],
            "why": why,
            "quick": os.environ.get("TRIOUTE_QUICK") == "1" and not sanitize,
            "sanitized": sanitize,
            "sources": build.source_hashes(package_dir),
        }
        record.write_text(json.dumps(contents, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        build_data["force_include"][str(record)] = f"router/{build.RECORD_NAME}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary folder, once the wheel is written."""
        self._tidy()

    def _compile(
        self, package_dir: Path, out_dir: Path, modules: list[str]
    ) -> tuple[list[Path], str]:
        """Return the extension modules made, relative to `out_dir`, or why there are none."""
        # A process of its own, so that setuptools and Cython change neither this one's folder nor
        # its state.
        compiler = Path(__file__).with_name("compile.py")
        done = subprocess.run(
            [sys.executable, str(compiler), str(package_dir), str(out_dir), *modules],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        required = "1" in (os.environ.get("TRIOUTE_COMPILE"), os.environ.get("TRIOUTE_SANITIZE"))
        if done.returncode == NO_COMPILER_EXIT and not required:
            return [], done.stdout.strip().splitlines()[-1]
        if done.returncode != 0:
            self._tidy()
            self.app.abort(
                f"{done.stdout}\n"
                "trioute: the data plane does not compile; TRIOUTE_COMPILE=0 leaves it uncompiled"
            )
        built = sorted(path.relative_to(out_dir) for path in out_dir.rglob("*") if path.is_file())
        return built, ""

    def _tidy(self) -> None:
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)


def _load(path: Path) -> ModuleType:
    """Load a module by its path: the package around it needs dependencies that are not here yet."""
    spec = importlib.util.spec_from_file_location("_trioute_build", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
