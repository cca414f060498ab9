"""Whole files of Dispatch's: what is said of them, and what they are converted to, word for word.

`pytest tests/config/qdrouterd/test_golden.py --update-golden` writes the files anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from router.config.load import parse_configuration, read_text
from router.config.qdrouterd.converting import format_converted
from router.config.qdrouterd.reading import InvalidDispatch, parse_dispatch
from router.config.qdrouterd.syntax import detect_syntax

GOLDEN = Path(__file__).with_name("golden")
FILES = sorted(file.name for file in GOLDEN.iterdir() if file.suffix in (".conf", ".json"))


def report(name: str) -> str:
    """Return the conversion report of a file, or its mistakes if they prevent the conversion."""
    file = GOLDEN / name
    text = read_text(file)
    try:
        moved = parse_dispatch(text, detect_syntax(text, file.suffix), source=name, folder=GOLDEN)
    except InvalidDispatch as refused:
        return "\n".join([*map(str, refused.mistakes), *refused.report.lines(), ""])
    return "\n".join([moved.report.summary(), *moved.report.lines(), ""])


def converted(name: str) -> str:
    """Convert a file with weaker security allowed; the result must parse to the same router."""
    file = GOLDEN / name
    text = read_text(file)
    moved = parse_dispatch(
        text, detect_syntax(text, file.suffix), source=name, folder=GOLDEN, weaker_security=True
    )
    toml = format_converted(moved)
    assert parse_configuration(toml, source=name, folder=GOLDEN) == moved.configuration
    return toml


@pytest.mark.parametrize("name", FILES)
def test_what_becomes_of_it(name: str, request: pytest.FixtureRequest) -> None:
    for suffix, found in {"report": report(name), "toml": converted(name)}.items():
        file = GOLDEN / f"{name}.{suffix}"
        if request.config.getoption("--update-golden"):
            file.write_text(found, encoding="utf-8")
        assert file.exists(), f"{file.name} is not there; --update-golden writes it"
        assert found == file.read_text(encoding="utf-8")
