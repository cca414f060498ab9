"""A password: its forms, where it is found, that it is found anew, and that it never shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.config.secret import Secret, SecretUnavailable


@pytest.mark.parametrize(
    ("text", "kind", "reference"),
    [
        ("s3cret", "literal", "s3cret"),
        ("pass:s3cret", "literal", "s3cret"),
        ("literal:env:X", "literal", "env:X"),
        ("env:BROKER", "env", "BROKER"),
        ("file:a/b", "file", "a/b"),
        ("", "literal", ""),
    ],
)
def test_the_forms(text: str, kind: str, reference: str) -> None:
    secret = Secret.parse(text)
    assert (secret.kind, secret.reference) == (kind, reference)


def test_a_literal_is_itself_and_stays_out_of_the_repr() -> None:
    secret = Secret.parse("s3cret")
    assert secret.reveal() == "s3cret"
    assert "s3cret" not in repr(secret)


def test_a_variable_is_read_at_each_use(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = Secret.parse("env:BROKER_PASSWORD")
    monkeypatch.setenv("BROKER_PASSWORD", "one")
    assert secret.reveal() == "one"
    monkeypatch.setenv("BROKER_PASSWORD", "two")
    assert secret.reveal() == "two"
    monkeypatch.delenv("BROKER_PASSWORD")
    with pytest.raises(SecretUnavailable, match="variable BROKER_PASSWORD is not set, or is empty"):
        secret.reveal()


def test_a_file_is_read_at_each_use_without_its_line_end(tmp_path: Path) -> None:
    secret = Secret.parse("file:password").with_absolute_path(tmp_path)
    (tmp_path / "password").write_text("one\r\n", encoding="utf-8")
    assert secret.reveal() == "one"
    (tmp_path / "password").write_text(" two ", encoding="utf-8")
    assert secret.reveal() == " two "


@pytest.mark.parametrize(
    ("data", "reason"), [(b"", "is empty"), (b"\n", "is empty"), (b"\xff", "is not UTF-8 text")]
)
def test_a_file_without_a_password(tmp_path: Path, data: bytes, reason: str) -> None:
    (tmp_path / "password").write_bytes(data)
    with pytest.raises(SecretUnavailable, match=reason):
        Secret.parse("file:password").with_absolute_path(tmp_path).reveal()


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SecretUnavailable, match="gone cannot be read: No such file or directory"):
        Secret.parse("file:gone").with_absolute_path(tmp_path).reveal()


def test_a_path_that_is_none() -> None:
    with pytest.raises(SecretUnavailable, match="cannot be read: not a path"):
        Secret("file", "a\0b").reveal()


def test_an_absolute_path_stays(tmp_path: Path) -> None:
    secret = Secret.parse(f"file:{tmp_path}/x")
    assert secret.with_absolute_path(Path("elsewhere")) == secret


def test_only_files_have_a_folder(tmp_path: Path) -> None:
    assert Secret.parse("env:X").with_absolute_path(tmp_path) == Secret.parse("env:X")
