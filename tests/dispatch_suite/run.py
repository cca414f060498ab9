"""Run Dispatch's own system tests with this router in qdrouterd's place, and print a table.

    python tests/dispatch_suite/run.py CHECKOUT [FILE ...]

CHECKOUT is a working copy of Dispatch 1.19. None of it is kept here, and nothing is written there.
A FILE is the middle of a name: `one_router` is tests/system_tests_one_router.py. The default is all
files of `expected.toml`, which also says how many tests qdrouterd itself passes, how many have to
pass here, and which are known to fail and why. The exit code is 1 if any other test fails, is
skipped, or is missing. The router starts as it does for everybody: a file that needs
`--weaker-security` says so in `expected.toml`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import attrs

HERE: Final = Path(__file__).resolve().parent
EXPECTED: Final = HERE / "expected.toml"
# The tests ask for it. They compare the version of libwebsockets. With True in place of the last
# None they delete no listeners for HTTP, which qdrouterd cannot with versions 4.0 and 4.1.
_SITE: Final = """\
VERSION = "1.19.0"
LIBWEBSOCKETS_VERSION = (4, 3, 0)
SKIP_DELETE_HTTP_LISTENER = None


def populate_pythonpath():
    pass
"""
# They compare the text of an outcome with its name, which it was up to Python 3.10.
_NAMES: Final = """\
from proton import Delivery

type(Delivery.ACCEPTED).__str__ = lambda self: self.name
"""
# A test fails if it takes longer. Some wait forever for what qdrouterd would have sent.
TEST_LIMIT_S: Final = 180


@attrs.frozen
class Outcome:
    """Outcome of one test: `Class.test`, its state (passed, failed, skipped), and the reason."""

    name: str
    state: str
    reason: str = ""


@attrs.frozen
class Known:
    """Tests of one file that are known to fail: those whose names begin with one of `tests`."""

    tests: tuple[str, ...]
    reason: str

    def covers(self, outcome: Outcome) -> bool:
        """Return whether this test is one of them."""
        return any(
            outcome.name == test or outcome.name.startswith(f"{test}.") for test in self.tests
        )


@attrs.frozen
class Expectation:
    """Expected results of one file, in numbers of tests.

    `qdrouterd` is what qdrouterd passes, `passed` what passes here, and `skipped` what the file
    skips with either. `weaker_security` is whether the router needs `--weaker-security`.
    """

    qdrouterd: int = 0
    tests: int = 0
    passed: int = 0
    skipped: int = 0
    known: tuple[Known, ...] = ()
    weaker_security: bool = False


def read_expectations(file: Path | None = None) -> dict[str, Expectation]:
    """Return the expected results by file name."""
    data = tomllib.loads((file or EXPECTED).read_text(encoding="utf-8"))
    return {
        name: Expectation(
            **{
                **each,
                "known": tuple(
                    Known(tuple(one["tests"]), one["reason"]) for one in each.get("known", ())
                ),
            }
        )
        for name, each in data.items()
    }


def read_outcomes(report: Path) -> list[Outcome]:
    """Return the outcomes in a JUnit report, sorted by name; none if there is no report."""
    if not report.exists():
        return []
    found = []
    for case in ET.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name', '')}"
        problem = next((each for each in case if each.tag in ("failure", "error")), None)
        if problem is not None:
            first = (problem.get("message") or problem.text or "").strip().partition("\n")[0]
            found.append(Outcome(name, "failed", first))
        elif any(each.tag == "skipped" for each in case):
            found.append(Outcome(name, "skipped", _skip_reason(case)))
        else:
            found.append(Outcome(name, "passed"))
    return sorted(found, key=lambda outcome: outcome.name)


def _skip_reason(case: ET.Element) -> str:
    return next((each.get("message") or "" for each in case if each.tag == "skipped"), "")


def format_row(name: str, outcomes: Sequence[Outcome], expected: Expectation) -> str:
    """Return a file's row of the table."""
    states = [outcome.state for outcome in outcomes]
    unknown = len(unexpected(outcomes, expected))
    known = states.count("failed") - unknown
    numbers = [len(states), expected.qdrouterd or "?", states.count("passed"), known, unknown]
    return f"{name:38}" + "".join(f"{number:>10}" for number in numbers)


HEAD: Final = f"{'file':38}" + "".join(
    f"{title:>10}" for title in ("tests", "qdrouterd", "passed", "known", "failed")
)


def unexpected(outcomes: Iterable[Outcome], expected: Expectation) -> list[Outcome]:
    """Return the failed tests that are not known to fail."""
    return [
        outcome
        for outcome in outcomes
        if outcome.state == "failed" and not any(each.covers(outcome) for each in expected.known)
    ]


def shortfalls(outcomes: Sequence[Outcome], expected: Expectation) -> list[str]:
    """Return what is missing though nothing failed: tests that were skipped, or did not run."""
    found = []
    states = [outcome.state for outcome in outcomes]
    if states.count("skipped") > expected.skipped:
        reasons = {outcome.reason for outcome in outcomes if outcome.state == "skipped"}
        found.append(
            f"{states.count('skipped')} tests were skipped, {expected.skipped} expected: "
            + "; ".join(sorted(reasons))
        )
    if states.count("passed") < expected.passed:
        found.append(f"{states.count('passed')} tests passed, {expected.passed} expected")
    return found


def details(outcomes: Sequence[Outcome], expected: Expectation) -> Iterator[str]:
    """Yield a line for each failure of a file, and for known failures that pass by now."""
    for outcome in unexpected(outcomes, expected):
        yield f"    failed  {outcome.name}: {outcome.reason}"
    for known in expected.known:
        covered = [outcome for outcome in outcomes if known.covers(outcome)]
        failed = [outcome for outcome in covered if outcome.state == "failed"]
        if failed:
            yield f"    known   {len(failed)}: {known.reason}"
        elif any(outcome.state == "passed" for outcome in covered):
            yield f"    passes by now: {', '.join(known.tests)} ({known.reason})"


@attrs.frozen
class Suite:
    """Checkout of Dispatch, a folder to work in, and the command that stands for qdrouterd."""

    checkout: Path
    folder: Path
    router: Sequence[str]

    def use(self, *options: str) -> None:
        """Have the tests start the router with these options."""
        # what the tests put on the path is nothing that the router is to see
        command = ["env", "-u", "PYTHONPATH", *self.router, *options]
        _write_command(self.folder / "bin/qdrouterd", command)

    def prepare(self) -> None:
        """Lay out what the tests look for: commands on the path, and a module."""
        commands = self.folder / "bin"
        build = self.folder / "build/router"
        modules = self.folder / "modules"
        for folder in (commands, build, modules):
            folder.mkdir(parents=True, exist_ok=True)
        (modules / "qpid_dispatch_site.py").write_text(_SITE, encoding="utf-8")
        (modules / "outcome_names.py").write_text(_NAMES, encoding="utf-8")
        self.use()
        (build / "qdrouterd").symlink_to(commands / "qdrouterd")
        for tool in ("qdstat", "qdmanage"):
            script = self.checkout / "tools" / tool
            _write_command(commands / tool, [sys.executable, "-P", str(script)])

    def environment(self, timeout_s: int) -> dict[str, str]:
        """Return the environment variables for the tests."""
        checkout = self.checkout
        paths = (self.folder / "modules", checkout / "python", checkout / "tests")
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "QPID_DISPATCH_HOME": str(checkout),
            "SOURCE_DIR": str(checkout),
            "BUILD_DIR": str(self.folder / "build"),
            "QPID_SYSTEM_TEST_TIMEOUT": str(timeout_s),
        }

    def run(self, name: str, timeout_s: int, limit_s: int, options: Sequence[str]) -> list[Outcome]:
        """Run one file with what `prepare` has laid out; its output stays in the folder."""
        work = self.folder / name
        work.mkdir()
        report = work / "report.xml"
        # so that no configuration of a folder above is found
        configuration = work / "pytest.ini"
        configuration.write_text("[pytest]\n", encoding="utf-8")
        script = self.checkout / "tests" / f"system_tests_{name}.py"
        with (work / "output.txt").open("w", encoding="utf-8") as output:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider"),
                    *("-p", "outcome_names", f"--timeout={TEST_LIMIT_S}"),
                    *("-c", str(configuration), f"--rootdir={work}", f"--junitxml={report}"),
                    str(script),
                    *options,
                ],
                cwd=work,
                env=self.environment(timeout_s),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                process.wait(limit_s)
            except subprocess.TimeoutExpired:
                print(f"{name}: stopped after {limit_s} s", file=sys.stderr)
            finally:
                _end_session(process)
        return read_outcomes(report)


def _end_session(process: subprocess.Popen[bytes]) -> None:
    """End the tests and every router that they left behind."""
    try:
        os.killpg(process.pid, 9)
    except ProcessLookupError:
        pass
    process.wait()


def _write_command(file: Path, command: Sequence[str]) -> None:
    file.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
    file.chmod(0o755)


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    own = Path(sys.executable).with_name("trioute-qdrouterd")
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path, help="a working copy of Dispatch 1.19")
    parser.add_argument("files", nargs="*", help="which files; default: all that are known")
    parser.add_argument(
        "--router",
        default=str(own),
        help="the command that stands for qdrouterd (default: %(default)s)",
    )
    parser.add_argument("--keep", type=Path, help="work in this new folder, and leave it")
    parser.add_argument("--select", help="only tests that match, as pytest's -k")
    parser.add_argument("--timeout", type=int, default=20, help="seconds that a test waits")
    parser.add_argument("--limit", type=int, default=1200, help="seconds that a file may take")
    return parser.parse_args(arguments)


def options_for(expected: Expectation) -> list[str]:
    """Return the options that the router needs for a file."""
    return ["--weaker-security"] if expected.weaker_security else []


def print_table(suite: Suite, names: Iterable[str], given: argparse.Namespace) -> bool:
    """Run the files and print their outcomes; return whether all are as expected."""
    expectations: Mapping[str, Expectation] = read_expectations()
    options: list[Any] = ["-k", given.select] if given.select else []
    print(HEAD, flush=True)
    fine = True
    for name in names:
        expected = expectations.get(name, Expectation())
        suite.use(*options_for(expected))
        outcomes = suite.run(name, given.timeout, given.limit, options)
        print(format_row(name, outcomes, expected))
        # a selection is less than all on purpose
        short = [] if given.select else shortfalls(outcomes, expected)
        for line in [*(f"    missing {each}" for each in short), *details(outcomes, expected)]:
            print(line)
        sys.stdout.flush()
        fine = fine and bool(outcomes) and not short and not unexpected(outcomes, expected)
    return fine


def main() -> None:
    """Run the files that the command line names."""
    given = parse_arguments()
    checkout = given.checkout.resolve()
    if not (checkout / "tests/system_test.py").is_file():
        sys.exit(f"{checkout} is no working copy of Dispatch: there is no tests/system_test.py")
    with tempfile.TemporaryDirectory(prefix="dispatch-suite-") as temporary:
        folder = Path(temporary)
        if given.keep is not None:
            folder = given.keep.resolve()
            folder.mkdir(parents=True)
        suite = Suite(checkout, folder, shlex.split(given.router))
        suite.prepare()
        sys.exit(0 if print_table(suite, given.files or list(read_expectations()), given) else 1)


if __name__ == "__main__":
    main()
