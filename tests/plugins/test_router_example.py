"""Plugins that were built as wheels and installed by pip, in real routers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import trio

from router.client import Accepted, AmqpValue, Message, connect, connect_management

from support.launcher import trioute
from support.plugins import build_wheel, install_wheel, until_running
from support.routers import StartRouter

ROOT = Path(__file__).resolve().parents[2]
CONFIGURATION = """\
[[listener]]
port = 0

[[plugin]]
plugin = "{plugin}"
"""
OUTSIDE = '''\
"""Answers whatever is sent to an address."""

from router import plugin
from router.client import AmqpValue, Message


class Echo(plugin.Plugin):
    """Sends each message back."""

    api_version = (1, 0)

    async def run(self, router):
        async with router.connect() as connection:
            sender = await connection.open_sender("answers", presettled=True)
            requests = await connection.open_receiver("questions")
            router.started()
            async for received in requests:
                received.accept()
                await sender.send(Message(body=(AmqpValue("heard"), )))
'''
PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "somebodys-echo"
version = "3"
dependencies = ["trioute"]

[project.entry-points."trioute.plugins"]
echo = "somebodys_echo:Echo"
"""


def installed(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Build a project's wheel, and install it for the routers that the test starts."""
    wheel = build_wheel(project, tmp_path / "dist")
    install_wheel(wheel, tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))


async def test_the_example_finds_containers_that_reconnect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start_router: StartRouter
) -> None:
    project = tmp_path / "router_example"
    shutil.copytree(ROOT / "plugins" / "router_example", project)
    installed(project, tmp_path, monkeypatch)
    section = "settings = { limitPerMinute = 2 }\n"
    router = start_router(CONFIGURATION.format(plugin="example") + section)
    with trio.fail_after(30):
        await until_running(router.url())
        for _ in range(4):
            async with connect(router.url(), container_id="restless"):
                pass
        async with connect_management(router.url()) as management:
            table = await management.query("router.plugin.example.container")
            counts = {each["name"]: each["connections"] for each in table.entities()}
    assert counts["restless"] == 4
    router.stop()
    log = router.log.read_text(encoding="utf-8")
    # once, when it exceeded the limit
    assert log.count("container reconnects") == 1
    assert "container=restless" in log


def test_the_example_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "router_example"
    shutil.copytree(ROOT / "plugins" / "router_example", project)
    installed(project, tmp_path, monkeypatch)
    file = tmp_path / "wrong.toml"
    section = CONFIGURATION.format(plugin="example") + "settings = { limitPerMinute = 0 }\n"
    file.write_text(section, encoding="utf-8")
    checked = subprocess.run(
        trioute("check", file), capture_output=True, text=True, timeout=60, check=False
    )
    assert checked.returncode == 1
    assert checked.stdout == (
        f"{file}:6: plugin[0].settings.limitPerMinute: 0 is not allowed; "
        "give a whole number of connections from 1 to 10000\n"
    )


async def test_a_plugin_from_outside_the_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start_router: StartRouter
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "somebodys_echo.py").write_text(OUTSIDE, encoding="utf-8")
    (project / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    installed(project, tmp_path, monkeypatch)
    router = start_router(CONFIGURATION.format(plugin="echo"))
    with trio.fail_after(30):
        async with connect(router.url()) as connection:
            answers = await connection.open_receiver("answers")
            questions = await connection.open_sender("questions")
            assert await questions.send(Message(body=(AmqpValue("well?"),))) == Accepted()
            received = await answers.receive()
            received.accept()
    assert received.message.body == (AmqpValue("heard"),)
