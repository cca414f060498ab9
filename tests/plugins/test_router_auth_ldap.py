"""Logins that OpenLDAP's server decides: by the right password alone, and with groups."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from router_auth_ldap import AuthLdap, Settings, canonical, directory_url, template
from structlog.testing import capture_logs

from router.amqp.constants import SaslCode
from router.plugin import ValueNotAllowed

from support.certificates import Authority
from support.logins import log_in, plain, with_logins_by
from support.plugins import hosted, install_from_tree
from support.slapd import slapd

NAME = "auth-ldap"
ENTRIES = """\
dn: dc=example
objectClass: domain
dc: example

dn: ou=people,dc=example
objectClass: organizationalUnit
ou: people

dn: ou=groups,dc=example
objectClass: organizationalUnit
ou: groups

dn: uid=Ada,ou=people,dc=example
objectClass: inetOrgPerson
uid: Ada
cn: Ada
sn: L
userPassword: s3cret

dn: uid=eve\\2Cou\\3Dx,ou=people,dc=example
objectClass: inetOrgPerson
uid: eve,ou=x
cn: Eve
sn: E
userPassword: s3cret

dn: uid=bare,ou=people,dc=example
objectClass: inetOrgPerson
uid: bare
cn: Bare
sn: B

dn: uid=bob,ou=people,dc=example
objectClass: inetOrgPerson
uid: bob
cn: Bob
sn: B
userPassword: s3cret

dn: cn=staff,ou=groups,dc=example
objectClass: groupOfNames
cn: staff
member: uid=ada,ou=people,dc=example

dn: cn=all,ou=groups,dc=example
objectClass: groupOfNames
cn: all
member: uid=ada,ou=people,dc=example
member: uid=bob,ou=people,dc=example
"""
USER_DN = "uid={user},ou=people,dc=example"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Run a server without TLS."""
    folder = tmp_path / "slapd"
    folder.mkdir()
    with slapd(folder, ENTRIES) as url:
        yield url


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ldap")
    install_from_tree(tmp_path, monkeypatch, **{NAME: "router_auth_ldap:AuthLdap"})


def settings(url: str, **more: object) -> dict[str, object]:
    """Return the plugin's settings, without TLS."""
    return {"url": url, "userDn": USER_DN, "startTls": False, **more}


def asking(url: str, **more: object) -> Any:
    """Run a router that asks the server."""
    return with_logins_by(NAME, settings(url, **more), sasl_mechanisms=("PLAIN",))


async def test_who_comes_in(url: str) -> None:
    async with asking(url) as running:
        for user, known_as in (
            ("ada", "ada"),
            ("ADA", "ada"),
            ("Ａda", "ada"),
            ("eve,ou=x", "eve,ou=x"),
        ):
            found = await log_in(running, "PLAIN", plain(user, "s3cret"))
            assert found == (SaslCode.OK, known_as, frozenset())


async def test_who_does_not_come_in(url: str) -> None:
    with capture_logs() as logs:
        async with asking(url) as running:
            for user, password, identity in (
                ("ada", "t0psecret", ""),
                # a server would take this for an anonymous bind
                ("ada", "", ""),
                ("nobody", "t0psecret", ""),
                ("bare", "t0psecret", ""),
                ("ada,ou=people", "s3cret", ""),
                ("ada ", "s3cret", ""),
                ("a\u00adda", "s3cret", ""),
                ("*", "s3cret", ""),
                ("ada", "s3cret", "bob"),
            ):
                found = await log_in(running, "PLAIN", plain(user, password, identity))
                assert found[0] is SaslCode.AUTH, user
    assert "t0psecret" not in str(logs)


async def test_groups(url: str) -> None:
    async with asking(url, groupsBase="ou=groups,dc=example") as running:
        for user, groups in (("ada", ["staff", "all"]), ("bob", ["all"]), ("eve,ou=x", [])):
            found = await log_in(running, "PLAIN", plain(user, "s3cret"))
            assert found == (SaslCode.OK, user, frozenset(groups))
    more = {"groupsBase": "dc=example", "groupsFilter": "(uid={user})", "groupAttribute": "sn"}
    async with asking(url, **more) as running:
        found = await log_in(running, "PLAIN", plain("ada", "s3cret"))
        assert found == (SaslCode.OK, "ada", frozenset({"L"}))


async def test_groups_that_cannot_be_read(url: str) -> None:
    async with asking(url, groupsBase="dc=elsewhere") as running:
        assert (await log_in(running, "PLAIN", plain("ada", "s3cret")))[0] is SaslCode.SYS


@pytest.mark.parametrize("trusted", [True, False])
async def test_the_certificate_of_the_server_is_verified(tmp_path: Path, trusted: bool) -> None:
    for name in ("own", "other", "slapd"):
        (tmp_path / name).mkdir()
    authority, other = Authority(tmp_path / "own"), Authority(tmp_path / "other")
    file = str((authority if trusted else other).ca_file)
    certificate = authority.issue("127.0.0.1", "localhost")
    with slapd(tmp_path / "slapd", ENTRIES, certificate) as url:
        async with asking(url, caCertFile=file, startTls=True) as running:
            code, _, _ = await log_in(running, "PLAIN", plain("ada", "s3cret"))
    assert code is (SaslCode.OK if trusted else SaslCode.SYS)


async def test_start_tls_is_not_left_out(url: str) -> None:
    # this server has no certificate
    async with asking(url, startTls=True) as running:
        assert (await log_in(running, "PLAIN", plain("ada", "s3cret")))[0] is SaslCode.SYS
    away = Settings(url="ldap://directory.example", user_dn=USER_DN, start_tls=False)
    with pytest.raises(ValueError, match="loopback"):
        AuthLdap(away)


async def test_a_server_that_is_silent_or_gone() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        place = f"ldap://127.0.0.1:{silent.getsockname()[1]}"
        async with asking(place, timeoutSeconds=0.3, threads=2) as running:
            codes = []

            async def one() -> None:
                codes.append((await log_in(running, "PLAIN", plain("ada", "s3cret")))[0])

            async with trio.open_nursery() as nursery:
                for _ in range(4):
                    nursery.start_soon(one)
            plugin: Any = hosted(running, NAME).instance
            assert plugin._limiter.total_tokens == 2
    assert codes == [SaslCode.SYS] * 4
    async with asking("ldap://127.0.0.1:1") as running:
        assert (await log_in(running, "PLAIN", plain("ada", "s3cret")))[0] is SaslCode.SYS


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("ada", "ada"),
        ("Straße", "strasse"),
        ("ada lovelace", "ada lovelace"),
        ("", None),
        (" ada", None),
        ("ada  lovelace", None),
        ("ada\0", None),
        ("a\ufe0fda", None),
        ("a\u200dda", None),
        ("x" * 257, None),
    ],
)
def test_the_one_form_of_a_name(name: str, form: str | None) -> None:
    assert canonical(name) == form


@pytest.mark.parametrize(
    "url",
    ["http://h", "ldap://", "ldap://h/dc=example", "ldaps://u:p@h", "ldap://h:x", "ldap://h?x", 3],
)
def test_what_is_no_url_of_a_server(url: object) -> None:
    assert directory_url().read("ldaps://[::1]:636") == "ldaps://[::1]:636"
    with pytest.raises(ValueNotAllowed):
        directory_url().read(url)


def test_a_template_needs_its_name() -> None:
    assert template("{user}").read(USER_DN) == USER_DN
    for text in ("uid=x", 3):
        with pytest.raises(ValueNotAllowed, match=r"text with \{user\} in it"):
            template("{user}").read(text)
    assert Settings().groups_filter == "(member={dn})"
