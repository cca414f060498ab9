"""Files of expectations: TOML and CSV, and every mistake in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.cli import policy_expectations
from router.cli.policy_expectations import (
    InvalidExpectations,
    check_expectations,
    read_expectations,
)
from router.config.vhosts import PolicySettings
from router.control.policy.decisions import Question
from router.control.policy.policy import Peer, Policy


def read(folder: Path, text: str, name: str = "e.toml") -> list[policy_expectations.Expectation]:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return read_expectations(file)


def test_both_forms_say_the_same(tmp_path: Path) -> None:
    toml = """\
[[expect]]
user = "ann"
from = "10.0.0.1"
vhost = "h"
groups = ["a", "b"]
action = "send"
address = "q"
allowed = false

[[expect]]
action = "open"
"""
    csv = """\
user,from,vhost,groups,action,address,allowed
ann, 10.0.0.1, h, a b, send, q, no
,,,,open,,
"""
    found = read(tmp_path, toml)
    assert found == read(tmp_path, csv, "e.csv")
    assert found[0].peer == Peer("h", "ann", "10.0.0.1", frozenset(("a", "b")))
    assert (found[0].question, found[0].is_allowed) == (Question("send", "q"), False)
    assert (found[1].peer, found[1].is_allowed) == (Peer("", "anonymous", ""), True)


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", "has no expectations"),
        ("x = 1", r"may only have \[\[expect\]\]"),
        ("expect = 1", r"may only have \[\[expect\]\]"),
        ("[[expect", "e.toml: "),
        ("expect = [1]", "expectation 1: is not a table"),
        ('[[expect]]\nactoin = "open"', "actoin is unknown"),
        ('[[expect]]\naction = "fly"', "action must be one of open"),
        ("[[expect]]", "not absent"),
        ('[[expect]]\naction = "send"', "send needs an address"),
        ('[[expect]]\naction = "open"\naddress = "q"', "open does not take an address"),
        ('[[expect]]\naction = "open"\nuser = 1', "user must be a text"),
        ('[[expect]]\naction = "open"\ngroups = 1', "groups must be"),
        ('[[expect]]\naction = "open"\nallowed = "maybe"', "allowed must be true or false"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, text: str, mistake: str) -> None:
    with pytest.raises(InvalidExpectations, match=mistake):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("action\nopen,x", "expectation 1: a cell beyond the header is unknown"),
        (f"action\n{'x' * 200_000}", "e.csv: field larger than field limit"),
    ],
    ids=["extra-cell", "long-cell"],
)
def test_mistakes_in_csv_are_told(tmp_path: Path, text: str, mistake: str) -> None:
    with pytest.raises(InvalidExpectations, match=mistake):
        read(tmp_path, text, "e.csv")


def test_all_mistakes_are_told_at_once_and_there_is_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidExpectations) as told:
        read(tmp_path, "expect = [1, 2]")
    assert len(str(told.value).splitlines()) == 2
    monkeypatch.setattr(policy_expectations, "MOST_EXPECTATIONS", 1)
    with pytest.raises(InvalidExpectations, match="more than 1 expectations"):
        read(tmp_path, '[[expect]]\naction = "open"\n[[expect]]\naction = "open"\n')
    monkeypatch.setattr(policy_expectations, "LARGEST_BYTES", 1)
    with pytest.raises(InvalidExpectations, match="more than 1 bytes"):
        read(tmp_path, "# long")


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "e.toml"
    file.write_bytes(b"\xff")
    with pytest.raises(InvalidExpectations, match="is not UTF-8"):
        read_expectations(file)


def test_whether_they_are_met(tmp_path: Path) -> None:
    found = read(
        tmp_path, '[[expect]]\naction = "open"\n[[expect]]\naction = "open"\nallowed = false\n'
    )
    outcomes = check_expectations(Policy(PolicySettings()), found)
    assert [each.is_met for each in outcomes] == [True, False]
