"""Qpid JMS as a peer: a Java process that runs the program `tests/interop/jms/Peer.java`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from support.missing_peers import skip_without

ROOT = Path(__file__).resolve().parents[2]
JARS = ROOT / ".jms"
PEER = ROOT / "tests/interop/jms/Peer.java"
PATIENCE_S = 120


def require_java(jars: Path, client: str) -> str:
    """Return the path of Java; skip without it or a client's jars, or fail where that is required.

    `jars` is the folder where `make interop` puts the client.
    """
    java = shutil.which("java")
    if java is None or shutil.which("javac") is None or not (jars / "pom.xml").is_file():
        skip_without(f"{client} OR A JDK IS MISSING (run `make interop`): nothing is tried with it")
    return java


def jms(url: str, address: str, *what: str) -> list[str]:
    """Return the result of each operation of a JMS program; see `Peer.java`."""
    done = _run(url, address, *what)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(what), done.stdout + done.stderr
    return lines


def jms_failure(url: str) -> str:
    """Return the exception of a JMS program that cannot connect."""
    done = _run(url, "any", "queue")
    assert done.returncode == 1, done.stdout
    return done.stderr


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [require_java(JARS, "QPID JMS"), "-cp", f"{JARS}/*", str(PEER), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
