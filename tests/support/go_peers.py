"""Use of go-amqp as a peer: a program that `make interop` builds from `tests/interop/go`."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support.missing_peers import skip_without

PROGRAM = Path(__file__).resolve().parents[2] / ".peers" / "go-amqp"
# longer than the program's own patience
LIMIT_S = 60


def said_by_go(url: str, address: str, *selector: str) -> list[str]:
    """Return the lines that the go-amqp program prints.

    They tell which drains were answered or, with a selector, what became of the attach with it.
    Without the program skip, or fail where `TRIOUTE_REQUIRE_INTEROP=1`.
    """
    return _said(url, address, *selector)


def login_by_go(url: str, user: str, token: str) -> str:
    """Return what becomes of a login by XOAUTH2: `opened`, or an error."""
    return _said("xoauth2", url, user, token)[0]


def _said(*arguments: str) -> list[str]:
    """Run the program, and return the lines that it prints."""
    if not PROGRAM.exists():
        skip_without("go-amqp IS MISSING (run `make interop`; it takes Go): it does not take part")
    ended = subprocess.run(
        [PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()
