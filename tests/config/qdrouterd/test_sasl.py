"""The SASL configuration of a Dispatch file leads to the users, or the report says why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.config.mistakes import InvalidConfiguration
from router.config.qdrouterd.converting import format_converted
from router.config.qdrouterd.reading import LoadedDispatch, parse_dispatch
from router.config.qdrouterd.sasl import SaslUsers, find_sasl_users
from router.config.qdrouterd.sections import read_sections

from support.sasldb import sasldb

CONF = """\
pwcheck_method: auxprop
auxprop_plugin: sasldb
SASLDB_PATH: users.db
# mech_list: EXTERNAL
mech_list: ANONYMOUS DIGEST-MD5 plain
"""
ROUTER = "router {\n saslConfigPath: sasl\n sasl-config-name: test\n}\n"
LISTENER = "listener {\n authenticatePeer: yes\n saslMechanisms: PLAIN\n}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a SASL configuration, and a database of one user."""
    (tmp_path / "sasl").mkdir()
    (tmp_path / "sasl/test.conf").write_text(CONF, encoding="utf-8")
    (tmp_path / "users.db").write_bytes(sasldb({("ada", "example.com"): "s3cret"}))
    return tmp_path


def users(folder: Path) -> SaslUsers:
    """Return the users that the router's configuration leads to."""
    return find_sasl_users(read_sections(ROUTER, "f"), folder)


def load(folder: Path, text: str, *, weaker_security: bool = False) -> LoadedDispatch:
    """Return the configuration of a Dispatch file in the folder."""
    return parse_dispatch(
        text, "sections", source="f", folder=folder, weaker_security=weaker_security
    )


def test_a_database_is_found(folder: Path) -> None:
    found = users(folder)
    source = str(folder / "sasl/test.conf")
    assert found == SaslUsers(source, "users.db", ("ANONYMOUS", "DIGEST-MD5", "PLAIN"))
    assert [found.admits(each) for each in ("PLAIN", "SCRAM-SHA-256", "EXTERNAL")] == [
        True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("conf", "problem"),
    [
        ("pwcheck_method: saslauthd\n", "names no database of the type sasldb"),
        ("auxprop_plugin: sql\n", "names no database of the type sasldb"),
        ("sasldb_path: none.db\n", "names a database that does not exist, none.db"),
    ],
    ids=["saslauthd", "sql", "none"],
)
def test_why_there_is_none(folder: Path, conf: str, problem: str) -> None:
    (folder / "sasl/test.conf").write_text(conf, encoding="utf-8")
    assert users(folder) == SaslUsers(problem=f"{folder / 'sasl/test.conf'} {problem}")


def test_a_configuration_that_is_not_there(folder: Path) -> None:
    (folder / "sasl/test.conf").unlink()
    assert users(folder).problem.endswith("test.conf: No such file or directory")


def test_a_listener_has_its_users(folder: Path) -> None:
    loaded = load(folder, ROUTER + LISTENER)
    (listener,) = loaded.configuration.listeners
    assert (listener.users_file, listener.sasl_mechanisms) == (folder / "users.db", ("PLAIN",))
    assert listener.authenticate_peer
    assert not loaded.report.of("missing")
    assert any(each.path == "listener[0].usersFile" for each in loaded.report.of("default"))
    converted = format_converted(loaded)
    assert 'usersFile = "users.db"' in converted
    assert "saslConfig" not in converted.partition("\n[router]")[2]


@pytest.mark.parametrize(
    ("must", "mechanisms"), [("yes", ("PLAIN",)), ("no", ("PLAIN", "ANONYMOUS"))]
)
def test_without_mechanisms_users_can_log_in(
    folder: Path, must: str, mechanisms: tuple[str, ...]
) -> None:
    loaded = load(folder, f"{ROUTER}listener {{\n authenticatePeer: {must}\n}}\n")
    (listener,) = loaded.configuration.listeners
    assert (listener.users_file, listener.sasl_mechanisms) == (folder / "users.db", mechanisms)


def test_a_users_file_comes_first(folder: Path) -> None:
    (folder / "own").write_text("", encoding="utf-8")
    loaded = load(folder, ROUTER + LISTENER.replace("}", " usersFile: own\n}"))
    assert loaded.configuration.listeners[0].users_file == folder / "own"


def test_what_the_list_of_mechanisms_leaves_out_is_not_offered(folder: Path) -> None:
    (folder / "sasl/test.conf").write_text(
        CONF.replace(" plain", "").replace("# ", ""), encoding="utf-8"
    )
    with pytest.raises(InvalidConfiguration, match="no supported way to authenticate is left"):
        load(folder, ROUTER + LISTENER)
    loaded = load(folder, ROUTER + LISTENER, weaker_security=True)
    assert loaded.configuration.listeners[0].users_file is None
    assert any("mech_list in" in each.text for each in loaded.report.of("missing"))


def test_scram_needs_keys_that_the_database_has_not(folder: Path) -> None:
    loaded = load(folder, ROUTER + LISTENER.replace("PLAIN", "SCRAM-SHA-256 PLAIN"))
    assert loaded.configuration.listeners[0].sasl_mechanisms == ("PLAIN",)
    assert any("`trioute user import`" in each.text for each in loaded.report.of("missing"))


def test_a_damaged_database_is_refused(folder: Path) -> None:
    (folder / "users.db").write_bytes(sasldb({("ada", "h"): "s3cret"})[:-1])
    with pytest.raises(InvalidConfiguration, match="is damaged"):
        load(folder, ROUTER + LISTENER)
