"""Start `trioute` from a process that has imported it already.

Importing is most of what starting a router takes, and the suite starts hundreds of them. So each
process of the suite keeps one launcher: this file, run as a program, which imports the command and
then forks a child for each request. The child runs `trioute` as any other process does, with its
own arguments, environment, folder and standard streams.

Tests of starting itself start the command anew (`trioute`), and so does `launch` if Python's own
settings in the environment, such as PYTHONPATH, are others than when the launcher was started.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final

_COMMAND: Final = "from router.cli.main import main; main(prog_name='trioute')"
# More than all arguments and the environment of a command take.
_REQUEST_OCTETS: Final = 1 << 20
# Standard input, output, error, and where the child's id and its end are written.
_HANDLES: Final = 4
# A child's id, or its exit code.
_NUMBER: Final = struct.Struct("i")


def trioute(*arguments: str | Path) -> list[str]:
    """Return the command line that starts `trioute` of the build under test anew."""
    return [sys.executable, "-P", "-c", _COMMAND, *map(str, arguments)]


class Launched:
    """Process that the launcher forked; it has what tests use of `subprocess.Popen`."""

    def __init__(
        self,
        status: int,
        stdin: IO[bytes] | None,
        stdout: IO[Any] | None,
        stderr: IO[Any] | None,
    ) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None
        self._status = status
        self.pid = self._read_status()

    def poll(self) -> int | None:
        """Return its exit code, negative for a signal; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, and return its exit code.

        Raises subprocess.TimeoutExpired if it still runs after `timeout` seconds.
        """
        if self.returncode is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._status, selectors.EVENT_READ)
                if not selector.select(timeout):
                    raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            self.returncode = self._read_status()
            os.close(self._status)
        return self.returncode

    def _read_status(self) -> int:
        """Return the next number that the launcher tells; the first is the process's id."""
        octets = os.read(self._status, _NUMBER.size)
        assert octets, "the launcher has ended"
        return int(_NUMBER.unpack(octets)[0])

    def communicate(self, timeout: float | None = None) -> tuple[Any, Any]:
        """Read its output until it ends, and return standard output and standard error."""
        found: dict[str, Any] = {}

        def read(name: str, stream: IO[Any]) -> None:
            found[name] = stream.read()
            stream.close()

        streams = {"stdout": self.stdout, "stderr": self.stderr}
        readers = [
            threading.Thread(target=read, args=(name, stream), daemon=True)
            for name, stream in streams.items()
            if stream is not None and not stream.closed
        ]
        for reader in readers:
            reader.start()
        if self.stdin is not None:
            self.stdin.close()
        self.wait(timeout)
        for reader in readers:
            reader.join(timeout)
            if reader.is_alive():
                raise subprocess.TimeoutExpired(f"output of process {self.pid}", timeout or 0.0)
        return found.get("stdout"), found.get("stderr")

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it still runs."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, if it still runs."""
        self.send_signal(signal.SIGKILL)


def launch(
    arguments: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[Any] = subprocess.PIPE,
    stderr: int | IO[Any] = subprocess.PIPE,
    text: bool = False,
) -> Launched | subprocess.Popen[Any]:
    """Run `trioute` with these arguments; the other parameters are those of `subprocess.Popen`."""
    requests, settings = _launcher()
    if _settings_of_python() != settings:
        return subprocess.Popen(
            trioute(*arguments), cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr, text=text
        )
    with contextlib.ExitStack() as stack:
        our_stdin, their_stdin = _input(stack, stdin)
        our_stdout, their_stdout = _output(stack, stdout, text=text)
        our_stderr, their_stderr = _output(stack, stderr, text=text)
        reader, writer = os.pipe()
        stack.callback(os.close, writer)
        request = {
            "arguments": [str(each) for each in arguments],
            "cwd": str(cwd or Path.cwd()),
            "environment": dict(os.environ),
        }
        handles = [their_stdin, their_stdout, their_stderr, writer]
        socket.send_fds(requests, [json.dumps(request).encode()], handles)
    return Launched(reader, our_stdin, our_stdout, our_stderr)


def _input(stack: contextlib.ExitStack, asked: int | IO[bytes]) -> tuple[IO[bytes] | None, int]:
    """Return our end of a child's standard input, where there is one, and the child's end."""
    if asked != subprocess.PIPE:
        return None, _handle(stack, asked, os.O_RDONLY)
    reader, writer = os.pipe()
    stack.callback(os.close, reader)
    return os.fdopen(writer, "wb", buffering=0), reader


def _output(
    stack: contextlib.ExitStack, asked: int | IO[Any], *, text: bool
) -> tuple[IO[Any] | None, int]:
    """Return our end of a child's output, where there is one, and the child's end."""
    if asked != subprocess.PIPE:
        return None, _handle(stack, asked, os.O_WRONLY)
    reader, writer = os.pipe()
    stack.callback(os.close, writer)
    return os.fdopen(reader, "r" if text else "rb"), writer


def _handle(stack: contextlib.ExitStack, asked: int | IO[Any], flags: int) -> int:
    """Return the file descriptor of a file, or of the null device."""
    if not isinstance(asked, int):
        return asked.fileno()
    if asked != subprocess.DEVNULL:
        return asked
    null = os.open(os.devnull, flags)
    stack.callback(os.close, null)
    return null


@functools.cache
def _launcher() -> tuple[socket.socket, dict[str, str]]:
    """Start this process's launcher.

    Returns the socket that it takes requests from, and the settings of Python that it started with.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )

    def stop() -> None:
        ours.close()
        process.wait()

    atexit.register(stop)
    return ours, _settings_of_python()


def _settings_of_python() -> dict[str, str]:
    """Return the variables of the environment that Python reads when it starts."""
    return {name: value for name, value in os.environ.items() if name.startswith("PYTHON")}


# ------------------------------------------------------------------------- the launcher's own side


def _import_command() -> None:
    """Import the modules that `trioute` and its commands are made of."""
    from router import cli

    for module in pkgutil.iter_modules(cli.__path__):
        importlib.import_module(f"router.cli.{module.name}")


def _serve(requests: socket.socket) -> tuple[bytes, list[int]] | None:
    """Fork a child for each request until the socket is closed.

    Returns the request and its file descriptors in each child, and None in the launcher at its end.
    """
    children: dict[int, tuple[int, int]] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(requests, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is requests:
                    octets, handles, _, _ = socket.recv_fds(requests, _REQUEST_OCTETS, _HANDLES)
                    if not octets:
                        for child, _ in children.values():
                            os.kill(child, signal.SIGKILL)
                        return None
                    pid = os.fork()
                    if not pid:
                        return octets, handles
                    *streams, status = handles
                    for handle in streams:
                        os.close(handle)
                    os.write(status, _NUMBER.pack(pid))
                    exited = os.pidfd_open(pid)
                    children[exited] = pid, status
                    selector.register(exited, selectors.EVENT_READ)
                else:
                    selector.unregister(key.fd)
                    pid, status = children.pop(key.fd)
                    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                    # the test may have given up waiting
                    with contextlib.suppress(BrokenPipeError):
                        os.write(status, _NUMBER.pack(code))
                    os.close(status)
                    os.close(key.fd)


def _become(request: dict[str, Any], handles: Sequence[int]) -> list[str]:
    """Take on the streams, folder and environment of a request; return its arguments."""
    for target, handle in enumerate(handles[:3]):
        os.dup2(handle, target)
    # what the launcher had open belongs to it and its other children
    os.closerange(3, 1 + max(int(each.name) for each in Path("/proc/self/fd").iterdir()))
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.stdin = _stream(0, "r")
    sys.stdout = _stream(1, "w")
    sys.stderr = _stream(2, "w")
    return list(request["arguments"])


def _stream(handle: int, mode: str) -> Any:
    """Open a standard stream as Python does when it starts."""
    is_terminal = os.isatty(handle)
    return open(
        handle,
        mode,
        buffering=1 if is_terminal or handle == 2 else -1,
        errors="backslashreplace" if handle == 2 else "strict",
        closefd=False,
    )


def _run() -> None:
    """Serve requests; in a child, run the command."""
    _import_command()
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        accepted = _serve(requests)
    if accepted is not None:
        from router.cli.main import main

        octets, handles = accepted
        main(_become(json.loads(octets), handles), prog_name="trioute")


if __name__ == "__main__":
    _run()
