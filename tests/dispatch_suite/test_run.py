"""Runner of Dispatch's tests, on a small checkout that is made here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dispatch_suite import run as suite

TESTS = """\
import shutil, subprocess, unittest
import proton, qpid_dispatch_site, system_test


class Some(unittest.TestCase):
    def test_router(self):
        found = subprocess.run(["qdrouterd", "-c", "x y"], capture_output=True, text=True)
        self.assertEqual(found.stdout, "stands for it -c x y\\n")
        self.assertTrue(shutil.which("qdstat"))

    def test_names_of_outcomes(self):
        self.assertEqual(str(proton.Delivery.ACCEPTED), "ACCEPTED")

    def test_fails(self):
        self.fail("so it goes\\nand on")

    def test_known(self):
        self.fail("as ever")

    @unittest.skip("today")
    def test_skipped(self):
        pass
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a working copy of something that looks like Dispatch."""
    folder = tmp_path / "checkout"
    for name, text in {
        "tests/system_test.py": "",
        "tests/system_tests_some.py": TESTS,
        "python/qpid_dispatch/__init__.py": "",
        "tools/qdstat": "",
    }.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


def ran(checkout: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the runner as `make` does."""
    # it is for whoever has the tests of another project, and not to be told how ours are run
    environment = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
    return subprocess.run(
        [sys.executable, suite.HERE / "run.py", checkout, *arguments],
        capture_output=True, text=True, timeout=60, check=False, env=environment,
    )  # fmt: skip


def test_a_checkout_is_run(checkout: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    before = sorted(checkout.rglob("*"))
    ended = ran(checkout, "some", "--router", "echo 'stands for it'", "--keep", kept)
    assert ended.returncode == 1
    head, row, *failed = ended.stdout.splitlines()
    assert head == suite.HEAD
    assert row.split() == ["some", "5", "?", "2", "0", "2"]
    assert failed == [
        "    missing 1 tests were skipped, 0 expected: today",
        "    failed  Some.test_fails: AssertionError: so it goes",
        "    failed  Some.test_known: AssertionError: as ever",
    ]
    assert "so it goes" in (kept / "some/output.txt").read_text(encoding="utf-8")
    assert sorted(checkout.rglob("*")) == before
    chosen = ran(checkout, "some", "--router", "echo 'stands for it'", "--select", "test_router")
    assert (chosen.returncode, chosen.stderr) == (0, "")


def test_a_file_that_is_not_there_fails(checkout: Path) -> None:
    ended = ran(checkout, "none")
    assert ended.returncode == 1
    assert ended.stdout.splitlines()[1].split() == ["none", "0", "?", "0", "0", "0"]


def test_what_is_no_checkout(tmp_path: Path) -> None:
    ended = ran(tmp_path)
    assert ended.returncode == 1
    assert "is no working copy of Dispatch" in ended.stderr


OUTCOMES = [
    suite.Outcome("A.test_1", "passed"),
    suite.Outcome("A.test_2", "failed", "why"),
    suite.Outcome("B.test_1", "failed", "well"),
    suite.Outcome("AB.test_1", "skipped"),
]


def test_what_is_known_to_fail_is_told_apart() -> None:
    known = suite.Known(("B", "A.test_1"), "it is meant so")
    expected = suite.Expectation(9, known=(known, suite.Known(("A.test_1",), "once")))
    assert [outcome.name for outcome in suite.unexpected(OUTCOMES, expected)] == ["A.test_2"]
    assert suite.format_row("x", OUTCOMES, expected).split() == ["x", "4", "9", "1", "1", "1"]
    assert list(suite.details(OUTCOMES, expected)) == [
        "    failed  A.test_2: why",
        "    known   1: it is meant so",
        "    passes by now: A.test_1 (once)",
    ]


def test_what_is_skipped_or_missing_is_told() -> None:
    assert suite.shortfalls(OUTCOMES, suite.Expectation(passed=1, skipped=1)) == []
    outcomes = [*OUTCOMES, suite.Outcome("C.test_1", "skipped", "`websockets` is missing")]
    assert suite.shortfalls(outcomes, suite.Expectation(passed=2, skipped=1)) == [
        "2 tests were skipped, 1 expected: ; `websockets` is missing",
        "1 tests passed, 2 expected",
    ]


EXPECTED = """\
[some]
tests = 5
passed = {passed}
skipped = {skipped}
weaker_security = {weaker}
known = [{{ tests = ["Some.test_fails", "Some.test_known"], reason = "as ever" }}]
"""


@pytest.mark.parametrize(
    ("numbers", "missing"),
    [
        ({"passed": 2, "skipped": 1}, []),
        ({"passed": 2, "skipped": 0}, ["    missing 1 tests were skipped, 0 expected: today"]),
        ({"passed": 3, "skipped": 1}, ["    missing 2 tests passed, 3 expected"]),
    ],
    ids=["as expected", "skipped", "fewer"],
)
def test_a_skip_and_fewer_tests_are_a_failure(
    checkout: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    numbers: dict[str, int],
    missing: list[str],
) -> None:
    file = tmp_path / "expected.toml"
    file.write_text(EXPECTED.format(**numbers, weaker="false"), encoding="utf-8")
    monkeypatch.setattr(suite, "EXPECTED", file)
    made = suite.Suite(checkout, tmp_path / "work", ["echo", "stands for it"])
    made.prepare()
    given = suite.parse_arguments([str(checkout), "some"])
    assert suite.print_table(made, ["some"], given) is (not missing)
    assert [line for line in capsys.readouterr().out.splitlines() if "missing" in line] == missing


def test_the_default_is_the_router_as_it_is() -> None:
    given = suite.parse_arguments(["checkout"])
    assert given.router == str(Path(sys.executable).with_name("trioute-qdrouterd"))


def test_a_file_may_need_weaker_security(tmp_path: Path) -> None:
    file = tmp_path / "expected.toml"
    file.write_text(EXPECTED.format(passed=0, skipped=0, weaker="true"), encoding="utf-8")
    expected = suite.read_expectations(file)["some"]
    made = suite.Suite(tmp_path, tmp_path / "work", ["echo", "it"])
    made.prepare()
    command = tmp_path / "work/bin/qdrouterd"
    assert "--weaker-security" not in command.read_text(encoding="utf-8")
    made.use(*suite.options_for(expected))
    assert "echo it --weaker-security" in command.read_text(encoding="utf-8")
    made.use(*suite.options_for(suite.Expectation()))
    assert "--weaker-security" not in command.read_text(encoding="utf-8")


PAGE = suite.HERE.parents[1] / "docs" / "migrating-from-dispatch.md"
_ROW = re.compile(r"\| (\w+) \| (\d+) \| (\d+|–) \| (\d+) \| .*\|", re.ASCII)


def test_the_page_has_the_same_numbers() -> None:
    rows = {found[1]: tuple(int(each.replace("–", "0")) for each in found.groups()[1:])
            for found in map(_ROW.fullmatch, PAGE.read_text(encoding="utf-8").splitlines())
            if found}  # fmt: skip
    expectations = suite.read_expectations()
    assert rows == {
        name: (each.tests, each.qdrouterd, each.passed) for name, each in expectations.items()
    }


def test_every_known_failure_has_its_reason() -> None:
    expectations = suite.read_expectations()
    assert expectations
    for name, expected in expectations.items():
        assert 0 < expected.passed + expected.skipped + len(expected.known) <= expected.tests, name
        assert all(known.tests and known.reason for known in expected.known), name


def test_a_report_that_is_not_there() -> None:
    assert suite.read_outcomes(Path("/none/report.xml")) == []
