"""The users file: who is let in, what a line may be, and what a login may cost."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.config import users as module
from router.config.decoys import Cost
from router.config.mistakes import InvalidConfiguration
from router.config.scram import decoy_scram
from router.config.users import (
    LONGEST_PASSWORD_BYTES,
    Credentials,
    Users,
    check_name,
    credentials_of,
    hash_password,
    load_database,
    load_users,
    parse_credentials,
    parse_hash,
    users_of_database,
    verify,
)

from support.sasldb import sasldb

# The beginning of a line at a cost that tests can afford.
CHEAP = "scrypt$2$1$1$MDEyMzQ1Njc=$"


def cheap_hash(password: str) -> str:
    """Return the hash of `password` at the lowest cost there is."""
    digest = module._scrypt(password.encode(), b"01234567", 2, 1, 1, 32)
    return CHEAP + module._encode(digest)


def write(tmp_path: Path, text: str) -> Path:
    """Return the path of a users file with `text` in it."""
    path = tmp_path / "users"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_password_of_the_rfc_is_known() -> None:
    # Section 12 of RFC 7914. Its salt is too short for a line of ours.
    digest = module._scrypt(b"password", b"NaCl", 1024, 8, 16, 64)
    assert digest.hex().startswith(
        "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162"
    )


def test_what_was_hashed_is_verified(tmp_path: Path) -> None:
    users = load_users(write(tmp_path, f"ada:{hash_password('s3crét')}\n"))
    assert verify(users, "ada", "s3crét")
    assert not verify(users, "ada", "s3cret")
    assert not verify(users, "eve", "s3crét")


def test_a_salt_is_never_used_twice() -> None:
    assert hash_password("x") != hash_password("x")


def test_nobody_is_called_as_those_who_gave_no_name() -> None:
    with pytest.raises(ValueError, match="is reserved for peers without a user"):
        check_name("anonymous")
    check_name("Anonymous")


def test_comments_and_empty_lines_are_skipped(tmp_path: Path) -> None:
    text = f"# who\n\n  \nada:{cheap_hash('a')}\nbob smith: {cheap_hash('b')} \r\n"
    users = load_users(write(tmp_path, text))
    assert list(users.by_name) == ["ada", "bob smith"]
    assert verify(users, "bob smith", "b")


def test_nobody_is_in_an_empty_file(tmp_path: Path) -> None:
    assert not verify(load_users(write(tmp_path, "")), "", "")


def test_every_mistake_is_said_by_line(tmp_path: Path) -> None:
    path = write(tmp_path, f"ada\n:x\nbob:{cheap_hash('b')}\nbob:{cheap_hash('c')}\n eve:x\n")
    with pytest.raises(InvalidConfiguration) as caught:
        load_users(path)
    assert [(mistake.line, mistake.problem) for mistake in caught.value.mistakes] == [
        (1, "has no hash of the form scrypt$n$r$p$salt$hash"),
        (2, "needs a name of 1 to 255 printable characters, without spaces around it"),
        (4, "repeats a user of an earlier line"),
        (5, "needs a name of 1 to 255 printable characters, without spaces around it"),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no hash of the form"),
        ("s3cret", "no hash of the form"),
        ("bcrypt$2$1$1$MDEyMzQ1Njc=$AAAA", "no hash of the form"),
        ("scrypt$2$1$1$MDEyMzQ1Njc=", "no hash of the form"),
        ("scrypt$x$1$1$a$b", "is not a number"),
        ("scrypt$-2$1$1$a$b", "is not a number"),
        ("scrypt$²$1$1$a$b", "is not a number"),
        ("scrypt$9999999999$1$1$a$b", "is not a number"),
        ("scrypt$3$1$1$a$b", "has an invalid scrypt cost"),
        ("scrypt$1$1$1$a$b", "has an invalid scrypt cost"),
        ("scrypt$2$0$1$a$b", "has an invalid scrypt cost"),
        ("scrypt$2$1$0$a$b", "has an invalid scrypt cost"),
        ("scrypt$131072$8$1$a$b", "exceeds the cost limit of a login"),
        ("scrypt$2$1$999999999$a$b", "exceeds the cost limit of a login"),
        ("scrypt$2$1$1$?$b", "not base64"),
        ("scrypt$2$1$1$é$b", "not base64"),
        ("scrypt$2$1$1$MDEyMzQ1Ng==$AAAAAAAAAAAAAAAAAAAAAA==", "a salt of less than 8 bytes"),
        ("scrypt$2$1$1$MDEyMzQ1Njc=$AAAA", "a hash not of 16 to 64"),
    ],
)
def test_what_is_no_hash_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_hash(text)


@given(st.text())
def test_any_text_is_a_hash_or_a_value_error(text: str) -> None:
    for candidate in (text, "scrypt$2$1$1$" + text):
        try:
            parse_hash(candidate)
        except ValueError:
            pass


def test_a_refused_hash_does_not_show() -> None:
    with pytest.raises(ValueError) as caught:
        parse_hash("hunter2")
    assert "hunter2" not in str(caught.value)
    assert "digest" not in repr(parse_hash(cheap_hash("x")))


@pytest.mark.parametrize("name", ["", " a", "a ", "a:b", "#a", "a\nb", "a" * 256])
def test_names_that_no_line_can_hold(name: str) -> None:
    with pytest.raises(ValueError, match=r"^(needs|has) a name "):
        check_name(name)


@pytest.mark.parametrize("password", ["", "a\0b", "x" * (LONGEST_PASSWORD_BYTES + 1), "\ud800"])
def test_passwords_that_cannot_be_used(password: str) -> None:
    with pytest.raises(ValueError):
        hash_password(password)


def test_an_overlong_password_is_not_its_beginning() -> None:
    longest = "x" * LONGEST_PASSWORD_BYTES
    users = Users({"ada": Credentials(parse_hash(cheap_hash(longest)))})
    assert verify(users, "ada", longest)
    assert not verify(users, "ada", longest + "x")
    assert not verify(users, "ada", "\ud800")


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[Cost]:
    """Return the hashes that are computed from now on, each as its kind and its parameters."""
    computed: list[Cost] = []
    scrypt, pbkdf2 = hashlib.scrypt, hashlib.pbkdf2_hmac

    def counted_scrypt(*args: Any, **fields: Any) -> bytes:
        computed.append(tuple(fields[key] for key in ("n", "r", "p", "dklen")))
        return scrypt(*args, **fields)

    def counted_pbkdf2(name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
        computed.append((name, iterations))
        return pbkdf2(name, password, salt, iterations)

    monkeypatch.setattr(hashlib, "scrypt", counted_scrypt)
    monkeypatch.setattr(hashlib, "pbkdf2_hmac", counted_pbkdf2)
    return computed


def scram_keys(mechanism: str, iterations: int, salt_bytes: int = 16) -> str:
    """Return keys for a password that nobody has."""
    return decoy_scram(mechanism, "any", iterations, salt_bytes).text()


KINDS = {
    "scrypt": CHEAP + module._encode(bytes(24)),
    "SCRAM": scram_keys("SCRAM-SHA-256", 4096),
    "dearer": scram_keys("SCRAM-SHA-512", 20000),
    "both": f"{CHEAP}{module._encode(bytes(32))} {scram_keys('SCRAM-SHA-1', 5000)}",
}
NAMES = [f"user-{number}" for number in range(50)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_user_takes_the_same_work_as_a_known_one(kind: str, work: list[Cost]) -> None:
    users = Users({"ada": parse_credentials(KINDS[kind])})
    assert not verify(users, "ada", "x")
    known = list(work)
    assert len(known) == 1
    for name in ("bob", "eve", "Ada", ""):
        work.clear()
        assert not verify(users, name, "x")
        assert work == known


def test_without_users_the_work_is_the_usual_one(work: list[Cost]) -> None:
    assert not verify(Users({}), "ada", "x")
    assert work == [(module.SCRYPT_N, module.SCRYPT_R, module.SCRYPT_P, module.HASH_BYTES)]


def test_where_the_work_differs_it_tells_nothing(work: list[Cost]) -> None:
    """An unknown name costs what some known one does, and the same each time."""
    stored = [KINDS["scrypt"], KINDS["scrypt"], KINDS["SCRAM"], KINDS["dearer"]]
    users = Users(
        {f"known-{number}": parse_credentials(each) for number, each in enumerate(stored)}
    )
    for name in users.by_name:
        verify(users, name, "x")
    known = set(work)
    assert len(known) == 3
    rounds: list[list[Cost]] = []
    for _ in range(2):
        work.clear()
        for name in NAMES:
            verify(users, name, "x")
        rounds.append(list(work))
    assert set(rounds[0]) == known
    assert rounds[0] == rounds[1]


def shown(users: Users, name: str, mechanism: str = "SCRAM-SHA-256") -> tuple[int, bytes]:
    """Return what a peer sees of a user's keys before it has to prove anything."""
    keys = users.scram_of(name, mechanism)
    return keys.iterations, keys.salt


def test_an_unknown_user_shows_the_iterations_and_the_size_of_salt_of_a_known_one() -> None:
    users = Users({"ada": parse_credentials(scram_keys("SCRAM-SHA-256", 4096, 12))})
    for name in NAMES:
        iterations, salt = shown(users, name)
        assert (iterations, len(salt)) == (4096, 12)
    # nobody has keys for this one
    iterations, salt = shown(users, "ada", "SCRAM-SHA-1")
    assert (iterations, len(salt)) == (15_000, 16)


def test_a_file_that_is_read_again_shows_the_same_for_unknown_users(tmp_path: Path) -> None:
    line = f"ada:{scram_keys('SCRAM-SHA-256', 4096)}\n"
    path = write(tmp_path, line)
    before = {name: shown(load_users(path), name) for name in NAMES}
    path = write(tmp_path, f"{line}eve:{scram_keys('SCRAM-SHA-256', 4096)}\n")
    assert {name: shown(load_users(path), name) for name in NAMES} == before


def at_hosts(*names: str) -> Users:
    """Return users whose passwords are their names."""
    return Users({name: Credentials(parse_hash(cheap_hash(name))) for name in names})


@pytest.mark.parametrize(
    ("given", "hostname", "name"),
    [
        ("ada", "a.example", "ada@a.example"),
        ("ada", "A.Example.:5672", "ada@a.example"),
        ("ada", "b.example", "ada@B.example"),
        ("ada", "c.example", "ada"),
        ("ada", None, "ada"),
        ("ada", "", "ada"),
        ("ada@a.example", "b.example", "ada@a.example"),
        ("bob", "a.example", "bob"),
    ],
)
def test_the_host_name_chooses_the_user(given: str, hostname: str | None, name: str) -> None:
    users = at_hosts("ada", "bob", "ada@a.example", "ada@B.example", "ada@a.example@a.example")
    found = users.name_of(given, hostname)
    assert found == name
    assert verify(users, found, name)
    assert not verify(users, found, "other")


def test_two_names_with_the_same_hashes_are_one_user() -> None:
    stored = Credentials(parse_hash(cheap_hash("x")))
    users = Users({"ada@h": stored, "ada": stored})
    assert users.name_of("ada", "h") == "ada"


def test_no_host_name_shows_whether_there_is_a_user() -> None:
    """Some unknown users appear to be those of a host, and others do not."""
    users = at_hosts("ada", "bob@a.example")
    found = [users.name_of(name, "a.example") for name in NAMES]
    own = [name for name in found if "@" in name]
    assert 0 < len(own) < len(found)
    assert [users.name_of(name, "a.example") for name in NAMES] == found
    assert [users.name_of(name, "other.example") for name in NAMES] == NAMES


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="users: cannot be read: No such file"):
        load_users(tmp_path / "users")
    (tmp_path / "users").write_bytes(b"\xff")
    with pytest.raises(InvalidConfiguration, match="users: is not UTF-8 text"):
        load_users(tmp_path / "users")
    with pytest.raises(InvalidConfiguration, match="cannot be read: embedded null byte"):
        load_users(Path("a\0b"))


def test_plain_works_with_the_keys_of_scram(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text(f"ada:{credentials_of('s3cret', ['SCRAM-SHA-256'])}\n", encoding="utf-8")
    users = load_users(file)
    assert verify(users, "ada", "s3cret")
    assert not verify(users, "ada", "wrong")
    assert users.scram_of("ada", "SCRAM-SHA-256") is users.by_name["ada"].scram["SCRAM-SHA-256"]


def test_a_user_without_keys_has_those_of_nobody() -> None:
    users = Users({"ada": Credentials(parse_hash(cheap_hash("x")))})
    one, other = (users.scram_of(name, "SCRAM-SHA-1") for name in ("ada", "bob"))
    assert one.salt != other.salt
    assert one.salt == users.scram_of("ada", "SCRAM-SHA-1").salt


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no hash"),
        (f"{cheap_hash('x')} {cheap_hash('y')}", "has two hashes for PLAIN"),
        (" ".join(2 * [credentials_of("x", ["SCRAM-SHA-1"])]), "repeats the keys for SCRAM-SHA-1"),
    ],
)
def test_what_are_no_credentials(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_credentials(text)


def test_a_database_of_cyrus_sasl_is_read(tmp_path: Path) -> None:
    file = tmp_path / "sasldb2"
    file.write_bytes(sasldb({("ada", "example.com"): "s3crét", ("bob", "a"): "x" * 300}))
    users = load_users(file)
    assert sorted(users.by_name) == ["ada@example.com", "bob@a"]
    assert verify(users, "ada@example.com", "s3crét")
    assert not verify(users, "ada@example.com", "s3cret")
    assert not verify(users, "ada", "s3crét")
    assert "s3cr" not in repr(users)
    # a file that has not changed has the same users
    assert load_users(file) == users
    assert load_database(file)["ada@example.com"] == "s3crét"


@pytest.mark.parametrize(
    ("host", "realms", "short"),
    [
        ("h", ["h"], True),
        ("H", ["h.example.com"], True),
        ("h.example.com", ["h"], True),
        ("h", ["h.a", "h.b"], False),
        ("h", ["host"], False),
        ("host", ["h"], False),
        ("h", ["example.com"], False),
    ],
    ids=["same", "longer", "shorter", "two", "beginning", "beginning2", "other"],
)
def test_names_in_the_realm_of_this_host(host: str, realms: list[str], short: bool) -> None:
    data = sasldb({("ada", realm): realm for realm in realms})
    found = users_of_database(data, "db", host)
    assert {name: found[name] for name in found if "@" in name} == {
        f"ada@{realm}": realm for realm in realms
    }
    assert found.get("ada") == (realms[0] if short else None)


def test_nobody_of_a_database_is_taken_for_an_anonymous_peer() -> None:
    found = users_of_database(sasldb({("anonymous", "h"): "x"}), "db", "h")
    assert list(found) == ["anonymous@h"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (sasldb({("ada", "h"): ""}), "the user 'ada@h': a password must not be empty"),
        (sasldb({("a\n", ""): "x"}), r"the user 'a\n': needs a name"),
        (sasldb({})[:-1], "is damaged"),
    ],
    ids=["password", "name", "damaged"],
)
def test_a_database_that_is_refused(tmp_path: Path, data: bytes, reason: str) -> None:
    file = tmp_path / "sasldb2"
    file.write_bytes(data)
    with pytest.raises(InvalidConfiguration) as caught:
        load_users(file)
    assert reason in str(caught.value)


def test_what_is_no_database_is_not_taken_for_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="is not a Berkeley DB file"):
        load_database(write(tmp_path, "ada:x\n"))
