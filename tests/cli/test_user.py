"""`trioute user`: users are added and changed, and the file is whole and private at any time."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from router.cli.user import user as user_command
from router.config.users import load_users, verify

from support.launcher import trioute
from support.sasldb import sasldb


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path of a users file that is not there yet."""
    return tmp_path / "users"


def run(file: Path, user: str, typed: str, *options: str) -> Result:
    """Run the command with `typed` on its standard input."""
    return CliRunner().invoke(user_command, ["add", str(file), user, *options], input=typed)


def test_a_file_is_made(file: Path) -> None:
    result = run(file, "ada", "one\n", "--stdin")
    assert (result.exit_code, result.output) == (0, "")
    assert verify(load_users(file), "ada", "one")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_other_lines_stay(file: Path) -> None:
    file.write_text("# who may come in\n\n", encoding="utf-8")
    run(file, "ada", "one\n", "--stdin")
    run(file, "bob", "two", "--stdin")
    before = file.read_text(encoding="utf-8").splitlines()
    run(file, "ada", "three\r\n", "--stdin")
    after = file.read_text(encoding="utf-8").splitlines()
    assert after[0] == "# who may come in"
    assert [line.partition(":")[0] for line in after[2:]] == ["ada", "bob"]
    assert before[3] == after[3]
    users = load_users(file)
    assert verify(users, "ada", "three")
    assert verify(users, "bob", "two")


def test_a_file_that_others_could_read_is_made_private(file: Path) -> None:
    file.touch(mode=0o644)
    run(file, "ada", "one\n", "--stdin")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_stays(file: Path) -> None:
    file.touch()
    os.chown(file, 12345, 12345)
    run(file, "ada", "one\n", "--stdin")
    assert (file.stat().st_uid, file.stat().st_gid) == (12345, 12345)


def test_a_link_stays_a_link(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)
    run(link, "ada", "one\n", "--stdin")
    assert link.is_symlink()
    assert verify(load_users(file), "ada", "one")


def test_nothing_else_is_left_behind(file: Path, tmp_path: Path) -> None:
    run(file, "ada", "one\n", "--stdin")
    assert list(tmp_path.iterdir()) == [file]


def test_the_password_is_asked_for_twice(file: Path) -> None:
    result = run(file, "ada", "one\ntwo\nthree\nthree\n")
    assert result.exit_code == 0
    assert "one" not in result.output
    assert "three" not in result.output
    assert verify(load_users(file), "ada", "three")


def test_giving_up_changes_nothing(file: Path) -> None:
    # without a terminal of its own it reads its input, which ends before the second answer
    done = subprocess.run(
        trioute("user", "add", file, "ada"),
        input=b"one\n",
        capture_output=True,
        start_new_session=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.endswith(b"Aborted!\n")
    assert not file.exists()


@pytest.mark.parametrize("typed", ["", "\n", "a\0b\n", "x" * 513])
def test_a_password_that_cannot_be_used(file: Path, typed: str) -> None:
    result = run(file, "ada", typed, "--stdin")
    assert result.exit_code == 1
    assert result.output.startswith("Error: a password must ")
    assert not file.exists()


def test_a_name_that_cannot_be_used(file: Path) -> None:
    result = run(file, "a:b", "one\n", "--stdin")
    assert result.exit_code == 2
    assert "has a name that contains a colon" in result.output
    assert not file.exists()


def test_a_file_with_mistakes_is_left_alone(file: Path) -> None:
    file.write_text("ada\n", encoding="utf-8")
    result = run(file, "bob", "one\n", "--stdin")
    assert result.exit_code == 1
    assert f"{file}:1: has no hash" in result.output
    assert file.read_text(encoding="utf-8") == "ada\n"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    result = run(tmp_path / "gone" / "users", "ada", "one\n", "--stdin")
    assert result.exit_code == 1
    assert "No such file or directory" in result.output


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file of this process grow, as on a disk that is full.

    pytest writes to files, too: nothing but the command may run in this block.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.touch()
    with full_disk():
        result = run(file, "ada", "one\n", "--stdin")
    assert (result.exit_code, result.output) == (1, f"Error: {file}: File too large\n")
    assert list(tmp_path.iterdir()) == [file]


def import_users(file: Path, database: Path, *options: str) -> Result:
    """Run `trioute user import`."""
    return CliRunner().invoke(user_command, ["import", str(file), str(database), *options])


def test_users_of_cyrus_sasl_are_imported(file: Path, tmp_path: Path) -> None:
    run(file, "ada@example.com", "old\n", "--stdin")
    run(file, "eve", "own\n", "--stdin")
    database = tmp_path / "sasldb2"
    database.write_bytes(sasldb({("ada", "example.com"): "one", ("bob", "example.com"): "two"}))
    result = import_users(file, database, "--mechanism", "SCRAM-SHA-256")
    assert (result.exit_code, result.output) == (0, f"2 imported into {file}\n")
    users = load_users(file)
    assert list(users.by_name) == ["ada@example.com", "eve", "bob@example.com"]
    assert verify(users, "ada@example.com", "one")
    assert verify(users, "bob@example.com", "two")
    assert verify(users, "eve", "own")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "one" not in file.read_text(encoding="utf-8")


def test_a_user_with_two_names_has_the_same_hashes_twice(file: Path, tmp_path: Path) -> None:
    """With others, the short name would be another user than the one with the realm."""
    realm = os.uname().nodename
    database = tmp_path / "sasldb2"
    data = {("ada", realm): "one", ("bob", realm): "one", ("ada", "other.example"): "two"}
    database.write_bytes(sasldb(data))
    import_users(file, database, "--mechanism", "SCRAM-SHA-256")
    users = load_users(file)
    assert users.by_name["ada"] == users.by_name[f"ada@{realm}"]
    assert users.name_of("ada", realm) == "ada"
    assert users.name_of("ada", "other.example") == "ada@other.example"
    # the same password shows nothing of others
    assert users.by_name["ada"] != users.by_name["bob"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"ada:x", "is not a Berkeley DB file of type hash"),
        (sasldb({("a:b", "h"): "x"}), "the user 'a:b@h': has a name that contains a colon"),
        (sasldb({("ada", "h"): ""}), "the user 'ada@h': a password must not be empty"),
    ],
    ids=["file", "name", "password"],
)
def test_what_cannot_be_imported(file: Path, tmp_path: Path, data: bytes, reason: str) -> None:
    database = tmp_path / "sasldb2"
    database.write_bytes(data)
    result = import_users(file, database)
    assert result.exit_code == 1
    assert reason in result.output
    assert not file.exists()


def command(*arguments: object) -> Result:
    """Run `trioute user` with these arguments."""
    return CliRunner().invoke(user_command, list(map(str, arguments)))


def test_users_are_listed_with_their_mechanisms(file: Path) -> None:
    file.write_text("# who may come in\n\n", encoding="utf-8")
    run(file, "ada", "one\n", "--stdin", "--mechanism", "PLAIN")
    run(file, "bob smith", "two\n", "--stdin", *("--mechanism", "SCRAM-SHA-256"))
    run(file, "eve@h", "three\n", "--stdin")
    before = file.read_bytes()
    listed = command("list", file)
    assert (listed.exit_code, listed.output.splitlines()) == (
        0,
        [
            "user       mechanisms",
            "ada        PLAIN",
            "bob smith  PLAIN SCRAM-SHA-256",
            "eve@h      PLAIN SCRAM-SHA-1 SCRAM-SHA-256 SCRAM-SHA-512",
        ],
    )
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "does not exist"), ("ada\n", ":1: has no hash of the form")],
    ids=["missing", "mistake"],
)
def test_what_cannot_be_listed(file: Path, text: str | None, said: str) -> None:
    if text is not None:
        file.write_text(text, encoding="utf-8")
    listed = command("list", file)
    assert listed.exit_code != 0
    assert said in listed.output


def test_a_user_is_removed_and_everything_else_stays(file: Path) -> None:
    file.write_text("# who may come in\n\n", encoding="utf-8")
    for name in ("ada", "adam", "eve"):
        run(file, name, "one\n", "--stdin", "--mechanism", "PLAIN")
    file.chmod(0o600)
    before = file.read_text(encoding="utf-8").splitlines()
    result = command("remove", file, "ada")
    assert (result.exit_code, result.output) == (0, "")
    assert file.read_text(encoding="utf-8").splitlines() == [*before[:2], *before[3:]]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(load_users(file).by_name) == ["adam", "eve"]


@pytest.mark.parametrize("name", ["bob", "Ada", "# who may come in", ""])
def test_who_is_not_there_cannot_be_removed(file: Path, name: str) -> None:
    file.write_text("# who may come in\n\n", encoding="utf-8")
    run(file, "ada", "one\n", "--stdin", "--mechanism", "PLAIN")
    file.chmod(0o640)
    before, inode = file.read_bytes(), file.stat().st_ino
    result = command("remove", file, name)
    assert (result.exit_code, result.output) == (1, f"Error: {file} has no user {name}\n")
    assert (file.read_bytes(), file.stat().st_ino) == (before, inode)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_file_without_users_has_none_to_remove(file: Path) -> None:
    result = command("remove", file, "ada")
    assert result.exit_code == 1
    assert f"{file} has no user ada" in result.output
    assert not file.exists()


def test_a_database_is_listed_but_not_changed(file: Path) -> None:
    data = sasldb({("ada", "example.com"): "one"})
    file.write_bytes(data)
    listed = CliRunner().invoke(user_command, ["list", str(file)])
    assert "ada@example.com" in listed.output
    result = run(file, "bob", "two\n", "--stdin")
    assert result.exit_code == 1
    assert "change it with saslpasswd2" in result.output
    assert file.read_bytes() == data
