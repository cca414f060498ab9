"""Statements of the specification, the tests marked with them, and the page agree."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from support.house import protocol
from support.trees import write_tree

ROOT = Path(__file__).resolve().parents[2]

STATEMENTS = """\
    [sections]
    "2.6" = "Links"
    "B2.3" = "Broker paper: links"

    [binds]
    sender = "who sends on a link"
    """
TESTS = """\
    import pytest

    @pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.spec("2.6.7-2"))])
    @pytest.mark.spec("2.6.7-1", "2.6.7-4")
    def test_one(n: int) -> None:
        pass

    class TestSome:
        @pytest.mark.spec("2.6.7-1")
        async def test_two(self) -> None:
            pass
    """


def statement(number: str, **fields: str) -> str:
    every = {"level": "MUST", "binds": "sender", "says": "Do it.", **fields}
    lines = "".join(f'    {name} = "{text}"\n' for name, text in every.items())
    return f'    [[statement]]\n    id = "{number}"\n{lines}'


def tree_of(root: Path, *statements: str, tests: str = TESTS) -> Path:
    return write_tree(
        root, {protocol.STATEMENTS: STATEMENTS + "".join(statements), "tests/a/test_x.py": tests}
    )


KEPT = [statement(f"2.6.7-{n}") for n in (1, 2, 4)]


def test_statements_and_markers_of_this_tree_agree() -> None:
    assert protocol.offences(ROOT) == []


def test_the_page_of_this_tree_is_current() -> None:
    # To bring it up to date: make docs
    page = (ROOT / protocol.PAGE).read_text(encoding="utf-8")
    assert page == protocol.format_page(ROOT), "the page is stale: make docs"


def test_each_marker_is_found_where_it_stands(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, *KEPT)
    assert protocol.offences(tree) == []
    one, two = "tests/a/test_x.py::test_one", "tests/a/test_x.py::test_two"
    assert protocol.tests_by_statement(tree) == {
        "2.6.7-1": [one, two],
        "2.6.7-2": [one],
        "2.6.7-4": [one],
    }


@pytest.mark.parametrize(
    ("marker", "offence"),
    [
        ('@pytest.mark.spec("2.6.7-9")\ndef test_x(): ...', "there is no statement 2.6.7-9"),
        ("@pytest.mark.spec()\ndef test_x(): ...", "a marker without an id"),
        ("@pytest.mark.spec(ID)\ndef test_x(): ...", "an id that is no plain text"),
        ('@pytest.mark.spec("2.6.7-1")\ndef check(): ...', "a marker that is on no test"),
        ('pytestmark = pytest.mark.spec("2.6.7-1")', "a marker that is on no test"),
    ],
)
def test_a_marker_that_says_nothing_is_found(tmp_path: Path, marker: str, offence: str) -> None:
    tree = tree_of(tmp_path, *KEPT)
    (tree / "tests/a/test_y.py").write_text(f"import pytest\n\n{marker}\n", encoding="utf-8")
    (found,) = protocol.offences(tree)
    assert found.startswith("tests/a/test_y.py:")
    assert found.endswith(offence)


@pytest.mark.parametrize(
    ("wrong", "offence"),
    [
        (statement("2.6.7-5"), "2.6.7-5: no test proves it"),
        (statement("2.6.7-5", gap="not yet", no="never"), "2.6.7-5: only one of gap, no and"),
        (statement("2.6.7-5", gap="x", level="MIGHT"), "2.6.7-5: there is no level MIGHT"),
        (statement("2.6.7-5", gap="x", binds="cats"), "2.6.7-5: nobody is called cats"),
        (statement("2.6.7-5", gap="x", says="a " * 21), "2.6.7-5: more than 20 words"),
        (statement("2.7.1-1", gap="x"), "2.7.1-1: there is no such section"),
        (statement("2.6.7", gap="x"), "2.6.7: no id"),
        (statement("2.6.7-4", gap="x"), "2.6.7-4: it does not follow 2.6.7-4"),
        (statement("2.6.7-3", gap="x"), "2.6.7-3: it does not follow 2.6.7-4"),
    ],
)
def test_a_statement_that_cannot_be_is_found(tmp_path: Path, wrong: str, offence: str) -> None:
    (found,) = protocol.offences(tree_of(tmp_path, *KEPT, wrong))
    assert found.startswith(offence)


def test_papers_come_behind_the_specification_in_the_order_of_their_letters() -> None:
    ids = ["2.6.8-1", "B2.3-1", "B2.3.1-1", "B2.4-1", "G1-1", "G1-2"]
    catalogue = protocol.Catalogue(
        {}, {}, tuple(protocol.Statement(each, "MUST", "sender", "x") for each in ids)
    )
    assert list(protocol._order_offences(catalogue)) == []
    backwards = attrs.evolve(catalogue, statements=catalogue.statements[::-1])
    assert len(list(protocol._order_offences(backwards))) == len(ids) - 1


@pytest.mark.parametrize("excuse", ["no", "untested"])
def test_what_a_test_proves_needs_no_excuse(tmp_path: Path, excuse: str) -> None:
    last = statement("2.6.7-4", **{excuse: "because"})
    (found,) = protocol.offences(tree_of(tmp_path, *KEPT[:2], last))
    assert found.startswith("2.6.7-4: a test proves it")


def test_a_field_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="gaps"):
        protocol.offences(tree_of(tmp_path, statement("2.6.7-1", gaps="x")))


def test_how_the_page_reads(tmp_path: Path) -> None:
    tree = tree_of(
        tmp_path,
        statement("2.6.7-1", here="so"),
        statement("2.6.7-2", gap="half"),
        statement("2.6.7-3", level="SHOULD", gap="not yet"),
        statement("2.6.7-4"),
        statement("2.6.7-5", level="normative", no="not here"),
        statement("B2.3-1", untested="nobody sees it"),
    )
    assert "\n**gap**: 2.6.7-3.\n" in protocol.format_page(tree)
    rows = [line for line in protocol.format_page(tree).splitlines() if line.startswith("| ")]
    test = "[a/test_x](../tests/a/test_x.py): `test_one`"
    said = "| MUST | sender | Do it. |"
    assert [row for row in rows if row.startswith(("| 2", "| B"))] == [
        f"| 2.6.7-1 {said} so | {test}, `test_two` |",
        f"| 2.6.7-2 {said} **in part**: half | {test} |",
        "| 2.6.7-3 | SHOULD | sender | Do it. | **gap**: not yet |  |",
        f"| 2.6.7-4 {said}  | {test} |",
        "| 2.6.7-5 | normative | sender | Do it. | **not ours**: not here |  |",
        f"| B2.3-1 {said} **not proved**: nobody sees it |  |",
    ]
    summary = {row.split("**")[1]: row.split("|")[2:-1] for row in rows if row.startswith("| **")}
    assert {stands: [int(cell) for cell in cells] for stands, cells in summary.items()} == {
        protocol.PROVED: [2, 0, 0, 2],
        protocol.PARTLY: [1, 0, 0, 1],
        protocol.UNTESTED: [1, 0, 0, 1],
        protocol.GAP: [0, 1, 0, 1],
        protocol.NOT_OURS: [0, 0, 1, 1],
    }
