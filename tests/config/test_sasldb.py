"""The database of Cyrus SASL: its users are read, and damage never does more than refuse it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, strategies as st

from router.config import sasldb as module
from router.config.sasldb import StoredUser, is_sasldb, read_sasldb

from support.missing_peers import skip_without
from support.sasldb import PAGE_BYTES, hash_file, sasldb

TWO = {("ada", "example.com"): "s3crét", ("bob", ""): "two"}


@pytest.mark.parametrize("page_type", [13, 2], ids=["sorted", "unsorted"])
@pytest.mark.parametrize("order", ["<", ">"], ids=["little", "big"])
def test_users_are_read(order: Literal["<", ">"], page_type: int) -> None:
    data = sasldb(TWO, order, page_type)
    assert is_sasldb(data)
    found = read_sasldb(data)
    assert found == [StoredUser("ada", "example.com", "s3crét"), StoredUser("bob", "", "two")]
    assert [user.full_name for user in found] == ["ada@example.com", "bob"]
    assert "s3cr" not in repr(found)


def test_other_properties_are_skipped() -> None:
    assert read_sasldb(hash_file({b"ada\0r\0cmusaslsecretOTP": b"x"})) == []


@pytest.mark.parametrize("data", [b"", b"ada:scrypt$", b"\0" * 4096], ids=["none", "text", "zero"])
def test_what_is_no_database(data: bytes) -> None:
    assert not is_sasldb(data)
    with pytest.raises(ValueError, match="is not a Berkeley DB file"):
        read_sasldb(data)


def _changed(at: int, *octets: int) -> bytes:
    data = bytearray(sasldb(TWO))
    data[at : at + len(octets)] = octets
    return bytes(data)


LAST = 2 * PAGE_BYTES


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (sasldb(TWO)[:-1], "size"),
        (_changed(20, 3), "size"),
        (_changed(24, 1), "encryption"),
        (_changed(26, 1), "checksums"),
        (_changed(LAST + 20, 3, 0), "number of items"),
        (_changed(LAST + 20, 255, 255), "number of items"),
        (_changed(LAST + 26, 0, 3), "overlap"),
        (_changed(LAST + 26, 0, 0), "overlap"),
        (_changed(LAST + PAGE_BYTES - 29, 3), "larger than a page"),
        (hash_file({b"ada\0userPassword": b"x"}), "user, realm, property"),
        (hash_file({b"\xff\0r\0userPassword": b"x"}), "UTF-8"),
    ],
    ids=["cut", "page", "secret", "sums", "odd", "many", "up", "down", "kind", "key", "text"],
)
def test_what_is_not_read(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_sasldb(data)


def test_a_file_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_BYTES", PAGE_BYTES)
    with pytest.raises(ValueError, match="has more than 512 bytes"):
        read_sasldb(sasldb(TWO))


@given(st.lists(st.tuples(st.integers(0, 4 * PAGE_BYTES - 1), st.integers(0, 255)), max_size=8))
def test_damage_is_refused_or_harmless(changes: list[tuple[int, int]]) -> None:
    data = bytearray(sasldb(TWO))
    for at, octet in changes:
        data[at] = octet
    try:
        read_sasldb(bytes(data))
    except ValueError as error:
        assert "s3cr" not in str(error)  # noqa: PT017 - it need not be refused


def test_what_cyrus_sasl_writes_is_read(tmp_path: Path) -> None:
    file = tmp_path / "sasldb2"
    names = [f"user{number}" for number in range(60)]
    for name in names:
        _saslpasswd2(file, "-c", "-p", name)
    for name in names[::3]:
        _saslpasswd2(file, "-d", name)
    found = read_sasldb(file.read_bytes())
    kept = sorted(set(names) - set(names[::3]))
    assert found == [StoredUser(name, "example.com", f"secret of {name}") for name in kept]


def _saslpasswd2(file: Path, *arguments: str) -> None:
    program = shutil.which("saslpasswd2") or shutil.which("saslpasswd2", path="/usr/sbin")
    if program is None:
        skip_without("saslpasswd2 IS MISSING (run `make interop`): Cyrus SASL does not take part")
    subprocess.run(
        [program, "-f", file, "-u", "example.com", *arguments],
        input=f"secret of {arguments[-1]}", text=True, timeout=30, check=True, capture_output=True,
    )  # fmt: skip
