"""Startup of a router process: saved configuration, and reloading of the file on SIGHUP."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import attrs
import pytest
import trio
import trio.testing

from router.cli.startup import load_startup, reload
from router.config.load import load_configuration
from router.config.mistakes import InvalidConfiguration
from router.config.model import AddressSettings
from router.config.saved import StateFile, backup_path, load_base, load_saved

from support.commands import run
from support.loopback import listening, running_node
from support.routers import RouterProcess, running_router

PLAIN = '[[listener]]\nport = 0\nname = "l"\n'
ADDRESS = '[[address]]\nprefix = "a"\n'


def wait_for(router: RouterProcess, pattern: str) -> None:
    """Read the log, from its end on, until something is in it."""
    with router.log.open(encoding="utf-8") as lines:
        text = ""
        while not re.search(pattern, text):
            assert router.process.poll() is None
            text += lines.read()
            os.sched_yield()


def file_of(folder: Path, text: str) -> Path:
    file = folder / "trioute.toml"
    file.write_text(text, encoding="utf-8")
    return file


def save(folder: Path, file: Path) -> Path:
    """Have something saved over a file: an address besides."""
    base = load_base(file)
    changed = attrs.evolve(base.configuration, addresses=(AddressSettings(prefix="saved"),))
    StateFile(folder / "state").save(base, changed, 3, 0.0)
    return folder / "state"


def test_on_a_hangup_the_file_is_read_again(tmp_path: Path) -> None:
    with running_router(tmp_path, PLAIN) as router:
        file_of(tmp_path, f"{PLAIN}{ADDRESS}")
        router.process.send_signal(signal.SIGHUP)
        wait_for(router, "configuration reloaded .*differences=1")
        file_of(tmp_path, f"{PLAIN}[[address]]\n")
        router.process.send_signal(signal.SIGHUP)
        wait_for(router, r"configuration refused .*address\[0\]: does not say which")
        file_of(tmp_path, f'{PLAIN}[router]\nid = "other"\n')
        router.process.send_signal(signal.SIGHUP)
        wait_for(router, r"configuration refused .*router\.id cannot be changed")
        assert router.stop() == 0
        assert "changes are lost" not in router.log_text()


def test_what_a_hangup_undoes_is_put_aside(tmp_path: Path) -> None:
    file = file_of(tmp_path, PLAIN)
    state = save(tmp_path, file)
    with running_router(tmp_path, PLAIN, "--state", state) as router:
        router.process.send_signal(signal.SIGHUP)
        wait_for(router, "configuration reloaded .*differences=1")
        assert not state.exists()
        saved = load_saved(backup_path(state))
        assert saved is not None
        assert saved.configuration.addresses == (AddressSettings(prefix="saved"),)


def test_what_was_saved_is_run(tmp_path: Path) -> None:
    file = file_of(tmp_path, PLAIN)
    state = save(tmp_path, file)
    startup = load_startup(file, state, None)
    assert startup.start.configuration == load_configuration(state)
    with running_router(tmp_path, PLAIN, "--state", state) as router:
        assert router.stop() == 0
        text = router.log_text()
    assert "saved changes are used instead of the configuration file" in text
    assert re.search("saved .*place='?address router.config.address/saved", text)
    assert load_saved(state) is not None


def test_an_edited_file_keeps_it_from_starting_until_it_is_said_what_counts(
    tmp_path: Path,
) -> None:
    file = file_of(tmp_path, PLAIN)
    state = save(tmp_path, file)
    file_of(tmp_path, f"{PLAIN}{ADDRESS}")
    ended = run("run", "--config", file, "--state", state)
    assert ended.code == 1
    assert "+ address router.config.address/saved\n" in ended.errors
    assert "--prefer saved" in ended.errors
    assert "Traceback" not in ended.errors
    with running_router(tmp_path, f"{PLAIN}{ADDRESS}", "--state", state, "--prefer", "saved"):
        pass
    # from then on it is known
    assert load_startup(file, state, None).start.revision == 3
    file_of(tmp_path, PLAIN + ADDRESS.replace('"a"', '"b"'))
    begun = load_startup(file, state, "file")
    assert begun.start.configuration == begun.base.configuration
    assert begun.put_aside
    assert not state.exists()
    assert backup_path(state).exists()


def test_where_nothing_can_be_kept_it_does_not_start(tmp_path: Path) -> None:
    file = file_of(tmp_path, PLAIN)
    with pytest.raises(InvalidConfiguration, match="is the configuration file itself"):
        load_startup(file, file, None)
    with pytest.raises(InvalidConfiguration, match="is not a folder that the router may write to"):
        load_startup(file, tmp_path / "none" / "state", None)


async def test_a_hangup_that_was_overtaken_looks_again(tmp_path: Path) -> None:
    file = file_of(tmp_path, f"{PLAIN}{ADDRESS}")
    configuration = listening(name="l")
    async with running_node(configuration) as running, trio.open_nursery() as nursery:
        other = attrs.evolve(configuration, addresses=(AddressSettings(prefix="other"),))
        nursery.start_soon(running.node.apply, other)
        nursery.start_soon(reload, running.node, file)
        await trio.testing.wait_all_tasks_blocked()
        while running.node.base.file is None:
            await trio.lowlevel.checkpoint()
        names = [each.prefix for each in running.node.configuration.addresses]
        assert names == ["a"]


CONF = "listener {\n    name: l\n    port: 0\n    host: 127.0.0.1\n    requireSsl: %s\n}\n"


def test_a_file_of_dispatch_is_run_and_read_again(tmp_path: Path) -> None:
    """Whether less security is accepted counts for as long as the router runs."""
    with running_router(tmp_path, CONF % "yes", "--weaker-security") as router:
        wait_for(router, "running a Dispatch configuration .*1 less secure")
        wait_for(router, "not supported .*requireSsl")
        file_of(tmp_path, (CONF % "yes").replace("}", "    linkCapacity: 9\n}"))
        router.process.send_signal(signal.SIGHUP)
        wait_for(router, "configuration reloaded .*differences=1")


def test_less_security_has_to_be_asked_for(tmp_path: Path) -> None:
    file = file_of(tmp_path, CONF % "yes")
    with pytest.raises(InvalidConfiguration, match="--weaker-security"):
        load_startup(file)
    assert load_startup(file, weaker_security=True).base.weaker_security
    assert load_startup(file_of(tmp_path, CONF % "no")).base.report is not None
