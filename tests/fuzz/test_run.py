"""Fuzz runner: it keeps failing inputs, however the process ends, and runs them again."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from fuzz import run, targets
from fuzz.seeds import seeds

TESTS = Path(__file__).resolve().parents[1]


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it as `make` does."""
    command = [sys.executable, str(TESTS / "fuzz" / "run.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_target_can_be_named() -> None:
    assert tuple(targets.TARGETS) == run.NAMES


def test_each_target_has_its_time(tmp_path: Path) -> None:
    folder = ["--folder", str(tmp_path)]
    done = fuzz("value", "schedule", "--seconds", "0.1", "--seed", "1", *folder)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("data plane: ")
    assert [line.split(":")[0] for line in lines[1:]] == ["value", "value", "schedule", "schedule"]
    assert [line.endswith(" inputs, no finding") for line in lines[1:]] == [False, True] * 2
    assert list((tmp_path / "crashes").iterdir()) == []


def test_what_target_there_is_not() -> None:
    done = fuzz("values")
    assert done.returncode == 2
    assert "no such target: values" in done.stderr


@pytest.mark.parametrize(
    ("failing", "status", "left"),
    [
        ("raise IndexError('outside')", 1, [b"bad"]),
        ("os.abort()", -signal.SIGABRT, [b"bad"]),
        ("while True: pass", -signal.SIGALRM, [b"bad"]),
        ("pass", 0, []),
    ],
)
def test_the_octets_of_a_finding_are_kept(
    tmp_path: Path, failing: str, status: int, left: list[bytes]
) -> None:
    script = f"""
import os, sys
from pathlib import Path
sys.path.insert(0, {str(TESTS)!r})
from fuzz.run import attempts
def target(octets):
    if octets == b"bad":
        {failing}
assert attempts(target, [b"good, but longer", b"bad", b""], Path(sys.argv[1]), 0.5) == 3
"""
    # in a process of its own, because it uses the timer that limits the suite's tests
    command = [sys.executable, "-c", script, str(tmp_path / "crashes" / "value-1")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert [path.read_bytes() for path in (tmp_path / "crashes").iterdir()] == left
    if status in (1, -signal.SIGALRM):
        assert "in target" in done.stderr


def test_what_coverage_found_is_tried_first(tmp_path: Path) -> None:
    (tmp_path / "found").write_bytes(b"far")
    assert list(run.changed("play", tmp_path, Random(1), 0)) == [*seeds("play"), b"far"]


def test_findings_are_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    value: list[bytes] = []
    body: list[bytes] = []
    monkeypatch.setitem(targets.TARGETS, "value", value.append)
    monkeypatch.setitem(targets.TARGETS, "body", body.append)
    files = [tmp_path / "value-7", tmp_path / "body-crash-ab0"]
    for file in files:
        file.write_bytes(file.name.encode())
    assert run.main(["--replay", *map(str, files)]) == 0
    assert (value, body) == ([b"value-7"], [b"body-crash-ab0"])
    assert run.main(["body", "--replay", str(files[0])]) == 0
    assert (value, body) == ([b"value-7"], [b"body-crash-ab0", b"value-7"])
    with pytest.raises(SystemExit, match="which target"):
        run.main(["--replay", str(tmp_path)])
