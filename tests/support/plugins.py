"""Plugins for tests: distributions with entry points, found by the router as any other."""

from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from itertools import count
from pathlib import Path

import pytest

from router.client import connect_management
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.plugins import PluginSettings
from router.hosting.host import HostedPlugin

from support.loopback import Running

_numbers = count()
HEAD = """\
import attrs
import time
import trio
from router import plugin
"""


def write_distribution(folder: Path, module: str, source: str, **plugins: str) -> None:
    """Write a module and the metadata of its distribution, as an installer would.

    `plugins` are the names of entry points with the classes they lead to.
    """
    (folder / f"{module}.py").write_text(source, encoding="utf-8")
    places = {name: f"{module}:{which}" for name, which in plugins.items()}
    write_metadata(folder, module, places)


def write_metadata(folder: Path, distribution: str, places: Mapping[str, str]) -> None:
    """Write the metadata of a distribution whose entry points lead to these places."""
    info = folder / f"{distribution}-1.2.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    lines = [f"{name} = {place}" for name, place in places.items()]
    text = "\n".join(["[trioute.plugins]", *lines, ""])
    (info / "entry_points.txt").write_text(text, encoding="utf-8")


def install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str = "", **plugins: str
) -> str:
    """Install plugins for one test, and return the name of their module.

    `source` is what follows a few imports (`HEAD`); the name is never the same twice, so that
    nothing of another test's plugins is still imported.
    """
    module = f"plugins_of_test_{next(_numbers)}"
    write_distribution(tmp_path, module, HEAD + textwrap.dedent(source), **plugins)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    return module


def install_from_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **places: str) -> None:
    """Install plugins whose code is in the tree's plugins/: name=module:class."""
    write_metadata(tmp_path, "plugins_of_the_tree", places)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()


def configured(*plugins: str) -> Configuration:
    """Return the configuration of a router that runs these plugins."""
    sections = tuple(PluginSettings(plugin=each) for each in plugins)
    return Configuration(listeners=(ListenerSettings(port=0),), plugins=sections)


def hosted(router: Running, name: str) -> HostedPlugin:
    """Return the state of a plugin."""
    found = router.node.plugins.state_of(name)
    assert found is not None
    return found


def build_wheel(project: Path, folder: Path) -> Path:
    """Build the wheel of a project, and return it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=project, check=True, capture_output=True, timeout=120)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install_wheel(wheel: Path, folder: Path) -> None:
    """Install a wheel into a folder by pip, without its dependencies."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--disable-pip-version-check", "--target", str(folder), str(wheel)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


async def until_running(url: str) -> None:
    """Wait until the only plugin of a router, which may still be imported, is set up."""
    async with connect_management(url) as management:
        while True:
            (plugin,) = (await management.query("router.config.plugin")).entities()
            if plugin["status"] != "starting":
                break
        assert plugin["status"] == "running", plugin
