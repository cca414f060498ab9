"""Findings about names and secrets, which the checks of several entities share."""

from __future__ import annotations

from pathlib import Path

from router.config.name_checks import check_names, check_secret, unknown_name
from router.config.secret import Secret


def test_names_are_needed_and_unique() -> None:
    found = list(check_names("claims", ["a", None, "b", "a"]))
    assert [(each.path, each.problem) for each in found] == [
        (("claims", 1, "name"), "is missing"),
        (("claims", 3, "name"), "is taken: claims[0] has the same name"),
    ]


def test_what_exists_is_listed() -> None:
    where = ("listener", 0, "claims")
    found = unknown_name(where, "c", "claims", ["a", None, "b"])
    assert (found.path, found.problem) == (where, "names c, which does not exist")
    assert found.allowed == "known here: a, b"
    assert unknown_name(where, "c", "claims", []).allowed == "there is no claims yet: add one"


def test_secrets_must_be_available(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("s3cret", encoding="utf-8")
    where = ("connector", 0, "saslPassword")
    assert not list(check_secret(where, None))
    assert not list(check_secret(where, Secret("file", str(file))))
    (found,) = check_secret(where, Secret("file", str(tmp_path / "none")))
    assert found.path == where
    assert found.problem.startswith("is not available: ")
