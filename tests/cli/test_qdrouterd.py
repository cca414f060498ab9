"""The drop-in process: qdrouterd's command line, signals, exit statuses and log file."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from router import __version__
from router.amqp.message import AmqpValue, Message
from router.client import ClientConnection, LinkLost, Sender, connect

from support.ports import free_port

PATIENCE_S = 60.0
CONF = """\
router {{
    mode: standalone
    id: A
}}
listener {{
    host: 127.0.0.1
    port: {port}
    saslMechanisms: ANONYMOUS
    authenticatePeer: no
}}
log {{
    module: DEFAULT
    enable: info+
    outputFile: a.log
}}
"""
COMMAND = "from router.cli.qdrouterd import main; main()"


def command_line(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-P", "-c", COMMAND, *map(str, arguments)]


def ran(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run it to its end, or to that of the process that became a daemon."""
    return subprocess.run(
        command_line(*arguments),
        cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip


@pytest.fixture
def port() -> int:
    """Return a port that nobody listens on."""
    return free_port()


@pytest.fixture
def conf(tmp_path: Path, port: int) -> Path:
    """Return a configuration file, with its log beside it."""
    file = tmp_path / "qdrouterd.conf"
    file.write_text(CONF.format(port=port), encoding="utf-8")
    return file


def answers(port: int) -> bool:
    """Whether a router says its header there."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as peer:
        peer.sendall(b"AMQP\0\1\0\0")
        return peer.recv(8) == b"AMQP\0\1\0\0"


@contextmanager
def foreground(conf: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    """Run it until the block ends; it listens when that begins."""
    process = subprocess.Popen(
        command_line("-c", conf.name, "-I", "/anywhere", "-T"),
        cwd=conf.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        while True:
            assert process.poll() is None, process.communicate()
            try:
                assert answers(port)
            except ConnectionRefusedError:
                os.sched_yield()
            else:
                break
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, 0), (signal.SIGQUIT, 0), (signal.SIGINT, -signal.SIGINT)],
)
def test_signals_stop_it(conf: Path, port: int, number: int, status: int) -> None:
    with foreground(conf, port) as process:
        process.send_signal(number)
        assert process.communicate(timeout=PATIENCE_S) == ("", "")
        assert process.returncode == status
    log = (conf.parent / "a.log").read_text(encoding="utf-8")
    assert "running a Dispatch configuration" in log
    assert "shutting down" in log


def ended(pid: int) -> bool:
    """Wait for the end of a process that is no child of this one."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], PATIENCE_S)[0])
    finally:
        os.close(handle)


def test_a_daemon_runs_when_it_is_said_to(conf: Path, port: int) -> None:
    folder = conf.parent
    started = ran(folder, "-d", "-c", conf.name, "-P", "a.pid")
    assert (started.returncode, started.stdout, started.stderr) == (0, "", "")
    pid = int((folder / "a.pid").read_text(encoding="ascii"))
    try:
        assert answers(port)
        assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
        again = ran(folder, "-d", "-c", conf, "-P", "b.pid")
        assert again.returncode == 1
        assert re.search(r"cannot start: .*Address already in use", again.stderr)
        assert not (folder / "b.pid").exists()
    finally:
        os.kill(pid, signal.SIGTERM)
    assert ended(pid)
    assert not (folder / "a.pid").exists()
    assert "shutting down" in (folder / "a.log").read_text(encoding="utf-8")


@pytest.mark.parametrize("options", [["-d"], []])
def test_why_it_does_not_start(conf: Path, options: list[str]) -> None:
    conf.write_text("listener {\n    requireSsl: yes\n    what: 1\n}\n", encoding="utf-8")
    refused = ran(conf.parent, *options, "-c", conf)
    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [
        line
        for line in refused.stderr.splitlines()
        if line.startswith((f"{conf}:2: listener[0].requireSsl", f"{conf}:3: listener[0].what"))
    ]
    assert refused.stderr.count("\n") == 2


ROUTED = """\
connector {{
    name: broker
    role: route-container
    host: 127.0.0.1
    port: {broker}
}}
linkRoute {{
    prefix: queues
    dir: in
    connection: broker
}}
linkRoute {{
    prefix: queues
    dir: out
    containerId: Broker
}}
"""


@pytest.fixture
def broker(tmp_path: Path, conf: Path, port: int) -> tuple[Path, int]:
    """Return the file of a router that is a broker to that of the other, and its port."""
    at = free_port()
    conf.write_text(CONF.format(port=port) + ROUTED.format(broker=at), encoding="utf-8")
    file = tmp_path / "broker" / "qdrouterd.conf"
    file.parent.mkdir()
    file.write_text(CONF.format(port=at).replace("id: A", "id: Broker"), encoding="utf-8")
    return file, at


async def test_what_the_file_says_of_a_broker_is_run(
    broker: tuple[Path, int], conf: Path, port: int
) -> None:
    file, at = broker
    with foreground(file, at), foreground(conf, port):
        async with (
            connect(f"amqp://127.0.0.1:{at}") as behind,
            connect(f"amqp://127.0.0.1:{port}") as before,
        ):
            receiver = await behind.open_receiver("queues.one")
            sender = await routed(before)
            sender.send_nowait(Message(body=(AmqpValue("through"),)))
            async for received in receiver:
                assert received.message.body == (AmqpValue("through"),)
                received.accept()
                break


async def routed(connection: ClientConnection) -> Sender:
    """Return a sender to the broker's address, as soon as there is a route to it."""
    with trio.fail_after(PATIENCE_S):
        while True:
            try:
                sender = await connection.open_sender("queues.one")
                await sender.wait_for_room()
            except LinkLost:
                await trio.lowlevel.checkpoint()
            else:
                return sender


def test_a_user_that_is_not_there(conf: Path) -> None:
    refused = ran(conf.parent, "-c", conf, "-U", "nobody-has-this-name")
    assert refused.returncode == 1
    assert "there is no user nobody-has-this-name" in refused.stderr


def test_a_daemon_without_a_log_says_so(conf: Path, port: int) -> None:
    text = conf.read_text(encoding="utf-8").replace("    outputFile: a.log\n", "")
    conf.write_text(text, encoding="utf-8")
    started = ran(conf.parent, "-d", "-c", conf, "-P", "a.pid")
    pid = int((conf.parent / "a.pid").read_text(encoding="ascii"))
    os.kill(pid, signal.SIGTERM)
    assert ended(pid)
    assert started.returncode == 0
    assert "there will be no log: " in started.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["-v"], 0, f"{__version__}\n"),
        (["--version"], 0, f"{__version__}\n"),
        (["-h"], 0, "Usage: trioute-qdrouterd [OPTIONS]"),
        (["--what"], 1, "Usage: trioute-qdrouterd [OPTIONS]"),
        (["and", "more"], 1, "Usage: trioute-qdrouterd [OPTIONS]"),
        (["-c"], 1, "requires an argument"),
        (["-c", "there-is-none"], 1, "there-is-none: cannot be read"),
    ],
)
def test_the_command_line(tmp_path: Path, arguments: list[str], status: int, said: str) -> None:
    done = ran(tmp_path, *arguments)
    assert done.returncode == status
    assert said in done.stdout + done.stderr
