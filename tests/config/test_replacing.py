"""A file is there as a whole, whatever happens."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from router.config.replacing import move_file, replace_file

# Replaces a file again and again, by texts of one letter each, and says so before each time.
_ENDLESS = """
import itertools, sys
from pathlib import Path
from router.config.replacing import replace_file
for letter in itertools.cycle("ab"):
    print(letter, flush=True)
    replace_file(Path(sys.argv[1]), letter * 2_000_000)
"""


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    file = tmp_path / "f"
    replace_file(file, "one")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    replace_file(file, "two")
    assert (file.read_text(encoding="utf-8"), stat.S_IMODE(file.stat().st_mode)) == ("two", 0o600)
    assert list(tmp_path.iterdir()) == [file]


def test_what_fails_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "f"
    replace_file(file, "one")
    with pytest.raises(UnicodeEncodeError):
        replace_file(file, "two \ud800")
    assert file.read_text(encoding="utf-8") == "one"
    assert list(tmp_path.iterdir()) == [file]
    with pytest.raises(OSError, match="No such file"):
        replace_file(tmp_path / "none" / "f", "one")


def test_what_is_moved_may_be_gone_already(tmp_path: Path) -> None:
    file, there = tmp_path / "f", tmp_path / "f.old"
    for text in ("one", "two"):
        replace_file(file, text)
        move_file(file, there)
        move_file(file, there)
        assert list(tmp_path.iterdir()) == [there]
        assert there.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("lines", range(2, 8))
def test_a_process_that_is_killed_leaves_the_old_or_the_new(tmp_path: Path, lines: int) -> None:
    file = tmp_path / "f"
    with subprocess.Popen(
        [sys.executable, "-P", "-c", _ENDLESS, str(file)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = [process.stdout.readline().strip() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        said += process.stdout.read().split()
        process.wait()
    found = file.read_text(encoding="utf-8")
    assert len(found) == 2_000_000
    assert set(found) in ({said[-1]}, {said[-2]})
