"""Write the page on protocol support from the statements and from markers on tests.

`docs/protocol-support.toml` has the statements of the specification. `@pytest.mark.spec("2.6.7-3")`
on a test says that it proves one. Markers are read from the source; no test is run or imported.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import attrs

from support.house.sources import parsed

STATEMENTS: Final = "docs/protocol-support.toml"
PAGE: Final = "docs/protocol-support.md"

LEVELS: Final = (
    "MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "RECOMMENDED", "MAY", "error", "normative",
)  # fmt: skip
LONGEST_WORDS: Final = 20

PROVED, PARTLY, UNTESTED, GAP, NOT_OURS = "proved", "in part", "not proved", "gap", "not ours"
STANDS: Final = {
    PROVED: "kept, and a test proves it",
    PARTLY: "kept in part: tests prove that part, the gap is the rest",
    UNTESTED: "kept, and no test proves it: as good as a gap",
    GAP: "not kept yet",
    NOT_OURS: "does not concern this router",
}
"""How it can stand with a statement, and what that means."""

_ID = re.compile(r"([ABCFGMRW]?\d+(?:\.\d+)*)-(\d+)")

_HEAD: Final = """\
# What of AMQP 1.0 is kept

<!-- Written by `make docs` from protocol-support.toml and the markers on tests: change those. -->

What AMQP 1.0 demands, statement by statement, in our words: all that parts 1 (types), 2
(transport), 3 (messaging), 4 (transactions) and 5 (security) and the part on conformance say with
MUST, SHOULD or the like, and some that they say plainly. Sections that begin with B are those of
the broker paper of 2010, chapters 2 and 3; where AMQP 1.0 came to differ from it, AMQP 1.0 is
followed. Those that begin with G are of Microsoft's guide to AMQP in Azure's Service Bus and Event
Hubs: what its services and their clients expect of each other, and so of a router between them.
Those that begin with W are of the WebSocket Binding 1.0, Committee Specification 01; with A of the
Anonymous Terminus for Message Routing 1.0, Committee Specification 01; with C of Claims-based
Security 1.0, Committee Specification Draft 01 of 17 March 2021, with the numbers of the sections in
working draft 11, from which it was made; with F of the Filter
Expressions 1.0, working draft 10 of 2021; with M of AMQP Management 1.0, working draft 9 with what
later drafts made of its operations, and M16 of working draft 16 of 2019; with R of the Message
Annotations for Response Routing 1.0, Committee Specification 01. A test is named here where it
carries the statement's id as a marker ([how to prove a statement](how-to/prove-a-statement.md)).
"""


@attrs.frozen
class Statement:
    """Demand of the specification."""

    id: str
    level: str
    binds: str
    says: str
    here: str = ""
    gap: str = ""
    no: str = ""
    untested: str = ""

    @property
    def section(self) -> str:
        """Return the section that it is in."""
        return self.id.rpartition("-")[0]

    def stands(self, tests: Mapping[str, list[str]]) -> str:
        """Return its state of support, given the tests by statement."""
        if self.no:
            return NOT_OURS
        if self.gap:
            return PARTLY if self.id in tests else GAP
        return PROVED if self.id in tests else UNTESTED


@attrs.frozen
class Catalogue:
    """All statements, and the headings that they are listed under.

    A statement is listed under the longest heading that its section begins with.
    """

    sections: dict[str, str]
    binds: dict[str, str]
    statements: tuple[Statement, ...]

    def heading(self, statement: Statement) -> str | None:
        """Return the section that a statement is listed under; None if there is none."""
        number = statement.section
        while number and number not in self.sections:
            number = number.rpartition(".")[0]
        return number or None


def read_catalogue(root: Path) -> Catalogue:
    """Read the statements of a tree; raise TypeError for an unknown field."""
    found = tomllib.loads((root / STATEMENTS).read_text(encoding="utf-8"))
    statements = tuple(Statement(**each) for each in found["statement"])
    return Catalogue(found["sections"], found["binds"], statements)


# Markers.


@attrs.frozen
class Marked:
    """Marker on a test: its place, and the ids it names; None for one that is no plain text."""

    path: str
    test: str
    line: int
    ids: tuple[str | None, ...]


def markers(root: Path) -> Iterator[Marked]:
    """Yield each marker on a test of the tree, in the order of files and lines.

    One that is on no test is yielded with an empty name.
    """
    for path, tree in parsed(root, "tests"):
        on_tests = set()
        for test in ast.walk(tree):
            if not isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if not test.name.startswith("test_"):
                continue
            # also on one of a test's parameters, inside of its decorators
            for call in _marks(test.decorator_list):
                on_tests.add(call)
                yield Marked(path, test.name, call.lineno, _ids(call))
        for call in _marks([tree]):
            if call not in on_tests:
                yield Marked(path, "", call.lineno, _ids(call))


def _marks(nodes: Iterable[ast.AST]) -> Iterator[ast.Call]:
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.spec":
                yield node


def _ids(call: ast.Call) -> tuple[str | None, ...]:
    return tuple(
        arg.value if isinstance(arg, ast.Constant) and isinstance(arg.value, str) else None
        for arg in call.args
    )


def tests_by_statement(root: Path) -> dict[str, list[str]]:
    """Return the tests that prove each statement, as `path::test`, each once."""
    found: dict[str, list[str]] = {}
    for marked in markers(root):
        for each in marked.ids:
            if each is not None and marked.test:
                tests = found.setdefault(each, [])
                name = f"{marked.path}::{marked.test}"
                if name not in tests:
                    tests.append(name)
    return found


# What may not be.


def offences(root: Path) -> list[str]:
    """Return what is wrong with the statements or markers of a tree."""
    catalogue = read_catalogue(root)
    tests = tests_by_statement(root)
    return [
        *_marker_offences(root, catalogue),
        *(
            f"{each.id}: {what}"
            for each in catalogue.statements
            for what in _statement_offences(each, catalogue, tests)
        ),
        *_order_offences(catalogue),
    ]


def _marker_offences(root: Path, catalogue: Catalogue) -> Iterator[str]:
    known = {each.id for each in catalogue.statements}
    for marked in markers(root):
        where = f"{marked.path}:{marked.line}"
        if not marked.test:
            yield f"{where}: a marker that is on no test"
        if not marked.ids:
            yield f"{where}: a marker without an id"
        for each in marked.ids:
            if each is None:
                yield f"{where}: an id that is no plain text"
            elif each not in known:
                yield f"{where}: there is no statement {each}"


def _statement_offences(
    statement: Statement, catalogue: Catalogue, tests: Mapping[str, list[str]]
) -> Iterator[str]:
    if not _ID.fullmatch(statement.id):
        yield "no id"
    elif catalogue.heading(statement) is None:
        yield "there is no such section"
    if statement.level not in LEVELS:
        yield f"there is no level {statement.level}"
    if statement.binds not in catalogue.binds:
        yield f"nobody is called {statement.binds}"
    if len(statement.says.split()) > LONGEST_WORDS:
        yield f"more than {LONGEST_WORDS} words"
    if len([each for each in (statement.gap, statement.no, statement.untested) if each]) > 1:
        yield "only one of gap, no and untested can be"
    proved = statement.id in tests
    if proved and (statement.no or statement.untested):
        yield "a test proves it: it is neither without test nor none of ours"
    if not (proved or statement.gap or statement.no or statement.untested):
        yield "no test proves it"


def _order_offences(catalogue: Catalogue) -> Iterator[str]:
    keys = [_key(each.id) for each in catalogue.statements if _ID.fullmatch(each.id)]
    for one, other in pairwise(keys):
        if one >= other:
            yield f"{other[-1]}: it does not follow {one[-1]}"


def _key(name: str) -> Any:
    """Return the sort key of a statement; the name itself comes last."""
    section, _, number = name.rpartition("-")
    letter = section.rstrip("0123456789.")
    parts = [int(part) for part in section.removeprefix(letter).split(".")]
    return letter, parts, int(number), name


# The page.


def format_page(root: Path) -> str:
    """Return the whole page."""
    return "\n".join(_page(read_catalogue(root), tests_by_statement(root)))


def _page(catalogue: Catalogue, tests: Mapping[str, list[str]]) -> Iterator[str]:
    yield _HEAD
    yield from _summary(catalogue, tests)
    yield "Whom a statement binds:"
    yield ""
    yield from (f"- *{name}*: {meaning}" for name, meaning in catalogue.binds.items())
    yield ""
    for number, title in catalogue.sections.items():
        yield f"## {number} {title}"
        yield ""
        yield "| | Level | Binds | Statement | Here | Proved by |"
        yield "|---|---|---|---|---|---|"
        for each in catalogue.statements:
            if catalogue.heading(each) == number:
                yield _row(each, tests)
        yield ""


def _summary(catalogue: Catalogue, tests: Mapping[str, list[str]]) -> Iterator[str]:
    counts = Counter((each.stands(tests), _weight(each)) for each in catalogue.statements)
    weights = ("MUST", "SHOULD", "other")
    yield f"| | {' | '.join(weights)} | all |"
    yield f"|---|{'---|' * (len(weights) + 1)}"
    for stands, meaning in STANDS.items():
        numbers = [counts[stands, weight] for weight in weights]
        cells = " | ".join(str(number) for number in [*numbers, sum(numbers)])
        yield f"| **{stands}**: {meaning} | {cells} |"
    totals = [sum(counts[stands, weight] for stands in STANDS) for weight in weights]
    yield f"| all | {' | '.join(str(number) for number in [*totals, sum(totals)])} |"
    yield ""
    for stands in (GAP, PARTLY, UNTESTED):
        listed = [each.id for each in catalogue.statements if each.stands(tests) == stands]
        if listed:
            yield f"**{stands}**: {', '.join(listed)}."
            yield ""


def _weight(statement: Statement) -> str:
    if statement.level in ("MUST", "MUST NOT", "error"):
        return "MUST"
    return "SHOULD" if statement.level.startswith(("SHOULD", "RECOMMENDED")) else "other"


def _row(statement: Statement, tests: Mapping[str, list[str]]) -> str:
    stands = statement.stands(tests)
    texts = [statement.here, statement.gap, statement.no, statement.untested]
    here = "; ".join(text for text in texts if text)
    if stands != PROVED:
        here = f"**{stands}**: {here}" if here else f"**{stands}**"
    cells = (
        statement.id,
        statement.level,
        statement.binds,
        statement.says,
        here,
        _proofs(tests.get(statement.id, [])),
    )
    return f"| {' | '.join(cells)} |"


def _proofs(tests: Iterable[str]) -> str:
    """Return the tests of a statement, file by file."""
    by_file: dict[str, list[str]] = {}
    for each in tests:
        path, _, test = each.partition("::")
        by_file.setdefault(path, []).append(f"`{test}`")
    return "; ".join(
        f"[{path.removeprefix('tests/').removesuffix('.py')}](../{path}): {', '.join(names)}"
        for path, names in by_file.items()
    )
