"""Run the process in the background, for services that are started without a supervisor.

The process forks twice before the event loop starts, so that the daemon has neither a terminal nor
a waiting parent. Through a pipe, the daemon reports to the original process that it runs, or why it
cannot run.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import sys
from pathlib import Path
from typing import Final, NoReturn

import attrs

_RUNS: Final = b"\0"
_UMASK: Final = 0o022
_MOST_TEXT: Final = 65536
_LOG_MODE: Final = 0o640


class NoSuchUser(Exception):
    """Failure to become another user: this host has no user of that name."""


@attrs.define
class Parent:
    """Original process of a daemon, which waits until the daemon runs or fails."""

    _pipe: int

    def report_running(self) -> None:
        """Make the original process exit with 0."""
        os.write(self._pipe, _RUNS)
        os.close(self._pipe)

    def report_failure(self, text: str) -> None:
        """Make the original process print `text`, and exit with 1 when the daemon ends."""
        os.write(self._pipe, f"{text}\n".encode())


def become_daemon() -> Parent:
    """Continue as a daemon in the root folder, and return the original process.

    The original process exits with 0 once `Parent.report_running` is called. If the daemon ends
    before that, the original process exits with 1. Until `write_log_to` is called, the original
    process prints what the daemon writes on standard error.
    """
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        _wait(reader)
    os.close(reader)
    os.setsid()
    if os.fork():
        # a session leader could acquire a terminal, so fork again
        os._exit(0)
    os.chdir("/")
    os.umask(_UMASK)
    os.dup2(writer, 2)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)
    return Parent(writer)


def _wait(reader: int) -> NoReturn:
    """Wait for the daemon's report, print its error text, if any, and exit accordingly."""
    words = b""
    while not words.endswith(_RUNS) and len(words) < _MOST_TEXT:
        more = os.read(reader, 4096)
        if not more:
            break
        words += more
    runs = words.endswith(_RUNS)
    text = words.removesuffix(_RUNS).decode("utf-8", "replace")
    sys.stderr.write(text)
    sys.stderr.flush()
    os._exit(0 if runs else 1)


def write_log_to(file: Path | None) -> None:
    """Append standard error to a file from now on, or discard it if `file` is None.

    Raises OSError if the file cannot be opened.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    log = os.open(os.devnull if file is None else file, flags, _LOG_MODE)
    sys.stderr.flush()
    os.dup2(log, 2)
    os.close(log)


def write_pid(file: Path) -> None:
    """Write the id of this process to a file.

    Raises OSError if the file cannot be written.
    """
    file.write_text(f"{os.getpid()}\n", encoding="ascii")


def remove_pid(file: Path) -> None:
    """Remove the file with the process id, or keep it if this process may not remove it."""
    with contextlib.suppress(OSError):
        file.unlink()


def become_user(name: str) -> None:
    """Continue as another user, with that user's groups, irrevocably.

    Raises NoSuchUser if the user does not exist, and OSError if this process may not become that
    user.
    """
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise NoSuchUser(f"there is no user {name}") from None
    if os.getuid() == user.pw_uid == os.geteuid():
        return
    # in this order: without root's rights no group can be changed
    os.initgroups(name, user.pw_gid)
    os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
    os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
