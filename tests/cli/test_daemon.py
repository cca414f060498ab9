"""Daemon processes: detachment, user, log and pid file, and the startup result for the parent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from router.cli.daemon import NoSuchUser, become_user, remove_pid, write_pid

BEGIN = "import os, sys; from router.cli import daemon; parent = daemon.become_daemon()\n"


def ran(text: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, and that of what it leaves behind."""
    return subprocess.run(
        [sys.executable, "-P", "-c", text], capture_output=True, text=True, timeout=30, check=False
    )


def test_it_is_on_its_own(tmp_path: Path) -> None:
    told = tmp_path / "told"
    ended = ran(
        f"{BEGIN}"
        # the leader of its session ends, perhaps a moment later
        "while os.getppid() == os.getpgrp(): os.sched_yield()\n"
        f"facts = [os.getsid(0) != os.getpid(), os.getcwd(),\n"
        f"         os.readlink('/proc/self/fd/0'), os.readlink('/proc/self/fd/1')]\n"
        f"open({str(told)!r}, 'w').write(repr(facts))\n"
        "parent.report_running()\n"
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert told.read_text(encoding="utf-8") == repr([True, "/", "/dev/null", "/dev/null"])


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("parent.report_failure('no port')", 1, "no port\n"),
        ("sys.stderr.write('oh'); sys.exit(0)", 1, "oh"),
        ("raise SystemExit", 1, ""),
        ("print('a', file=sys.stderr, flush=True); parent.report_running()", 0, "a\n"),
        ("daemon.write_log_to(None); sys.stderr.write('b'); parent.report_running()", 0, ""),
    ],
)
def test_what_it_says_first_is_heard(text: str, status: int, said: str) -> None:
    ended = ran(f"{BEGIN}{text}\n")
    assert (ended.returncode, ended.stderr) == (status, said)


def test_the_log_goes_on_where_it_ended(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n", encoding="utf-8")
    text = f"from pathlib import Path; daemon.write_log_to(Path({str(log)!r}))\n"
    assert ran(f"{BEGIN}{text}sys.stderr.write('after'); parent.report_running()").returncode == 0
    assert log.read_text(encoding="utf-8") == "before\nafter"


def test_the_process_id(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    write_pid(file)
    assert file.read_text(encoding="ascii") == f"{os.getpid()}\n"
    remove_pid(file)
    assert not file.exists()
    remove_pid(file)


def test_there_is_no_way_back() -> None:
    if os.getuid() != 0:
        pytest.skip("only root can become somebody else")
    ended = ran(
        "import os; from router.cli.daemon import become_user\n"
        "become_user('nobody')\n"
        "print(len(set(os.getresuid())), 0 in os.getresuid(), 0 in os.getresgid(),\n"
        "      0 in os.getgroups())\n"
        "try:\n    os.setuid(0)\nexcept PermissionError:\n    print('no way back')\n"
    )
    assert ended.stdout == "1 False False False\nno way back\n", ended.stderr


def test_nobody_has_to_become_who_one_is() -> None:
    text = (
        "import os, pwd; from router.cli.daemon import become_user\n"
        "become_user(pwd.getpwuid(os.getuid()).pw_name)\n"
    )
    assert ran(text).returncode == 0


def test_who_is_not_there() -> None:
    with pytest.raises(NoSuchUser, match="no user nobody-has-this-name"):
        become_user("nobody-has-this-name")
