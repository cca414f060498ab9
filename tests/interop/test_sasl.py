"""Logins by PLAIN, SCRAM and ANONYMOUS, and without SASL, as the settings of the listener say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from proton import Message

from router.config.users import credentials_of, hash_password

from support.jms import jms, jms_failure
from support.own_address import own_address
from support.proton_peers import ProtonPeers
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess, StartRouter


@pytest.fixture
def guarded(routers: StartRouter, tmp_path: Path) -> RouterProcess:
    """Start a router with a listener for users only, and an open one with both mechanisms."""
    users = tmp_path / "users"
    users.write_text(f"ada:{hash_password('s3cret')}\n", encoding="utf-8")
    return routers(f"""
        [[listener]]
        port = 0
        saslMechanisms = ["PLAIN", "ANONYMOUS"]
        authenticatePeer = true
        usersFile = "{users}"

        [[listener]]
        port = 0
        name = "open"
        saslMechanisms = ["PLAIN", "ANONYMOUS"]
        usersFile = "{users}"
        """)


OPEN = 1


def test_proton_comes_in_with_the_right_password(
    guarded: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    for listener in (0, OPEN):
        connection = proton.connect(
            guarded.url(listener=listener), user="ada", password="s3cret", allowed_mechs="PLAIN"
        )
        receiver = connection.receiver(f"{address}/{listener}", 10)
        sender = connection.sender(f"{address}/{listener}")
        assert sender.outcome(Message("x")).outcome == "accepted"
        assert receiver.bodies() == ["x"]
    assert "user=ada" in guarded.log_text()


@pytest.mark.parametrize("listener", [0, OPEN])
@pytest.mark.parametrize(
    "credentials",
    [
        {"user": "ada", "password": "wrong"},
        {"user": "ada", "password": "s3crets"},
        {"user": "ada", "password": ""},
        {"user": "bob", "password": "s3cret"},
        {"user": "Ada", "password": "s3cret"},
    ],
    ids=lambda each: f"{each['user']}-{each['password']}",
)
def test_proton_stays_out_with_anything_else(
    guarded: RouterProcess, proton: ProtonPeers, credentials: dict[str, str], listener: int
) -> None:
    connection = proton.begin_connect(
        guarded.url(listener=listener), allowed_mechs="PLAIN", **credentials
    )
    proton.until(lambda: connection.is_lost, "the connection is refused")
    assert connection.opened == 0
    assert connection.transport_condition is not None
    assert connection.transport_condition.name == "amqp:unauthorized-access"


@pytest.mark.spec("0.2-8")
def test_anonymous_is_enough_only_where_nobody_has_to_prove_anything(
    guarded: RouterProcess, proton: ProtonPeers
) -> None:
    proton.connect(guarded.url(listener=OPEN), allowed_mechs="ANONYMOUS")
    connection = proton.begin_connect(guarded.url(), allowed_mechs="ANONYMOUS")
    proton.until(lambda: connection.is_lost, "the connection is refused")
    assert connection.opened == 0


def test_no_sasl_is_enough_only_where_nobody_has_to_prove_anything(
    guarded: RouterProcess, proton: ProtonPeers
) -> None:
    proton.connect(guarded.url(listener=OPEN), sasl_enabled=False)
    connection = proton.begin_connect(guarded.url(), sasl_enabled=False)
    proton.until(lambda: connection.is_lost, "the connection is refused")
    assert connection.opened == 0


@pytest.mark.spec("0.2-8", "0.2-10", "0.2-11", "G1.1-2")
def test_rhea_comes_in_as_the_listener_says(
    guarded: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    users, everybody = (port for _, port in guarded.addresses)
    rhea.connect(users, "ada", username="ada", password="s3cret")
    rhea.connect(everybody, "anonymous", username="anyone")
    rhea.connect(everybody, "without")
    rhea.receiver(address, connection="without")
    rhea.sender(address, connection="ada")
    rhea.send(bytes(Message("x").encode()))
    rhea.wait("accepted")
    refused: list[dict[str, Any]] = [
        {"username": "ada", "password": "wrong"},
        {"username": "bob", "password": "s3cret"},
        {"username": "anyone"},
        {},
    ]
    for number, options in enumerate(refused):
        name = f"refused-{number}"
        rhea.tell("connect", connection=name, options={"port": users, **options})
        rhea.wait("disconnected", connection=name)
        assert rhea.find("connection_open", connection=name) == []
    # the others never noticed
    rhea.send(bytes(Message("y").encode()))
    rhea.wait("accepted", 2)


def test_the_host_that_rhea_names_chooses_among_users(
    routers: StartRouter, rhea: RheaPeer, tmp_path: Path
) -> None:
    users = tmp_path / "users"
    passwords = {"ada": "one", "ada@a.example": "two"}
    lines = [f"{name}:{hash_password(password)}\n" for name, password in passwords.items()]
    users.write_text("".join(lines), encoding="utf-8")
    router = routers(f"""
        [[listener]]
        port = 0
        saslMechanisms = ["PLAIN"]
        authenticatePeer = true
        usersFile = "{users}"
        """)
    rhea.connect(router.port, "global", username="ada", password="one")
    host = {"sasl_init_hostname": "a.example"}
    rhea.connect(router.port, "local", username="ada", password="two", **host)
    found = [line for line in router.log_text().splitlines() if "connection opened" in line]
    assert [line.rpartition("user=")[2] for line in found] == ["ada", "ada@a.example"]
    options = {"port": router.port, "username": "ada", "password": "one", **host}
    rhea.tell("connect", connection="refused", options=options)
    rhea.wait("disconnected", connection="refused")
    assert rhea.find("connection_open", connection="refused") == []


@pytest.fixture
def everywhere(routers: StartRouter, tmp_path: Path) -> StartRouter:
    """Start a router that listens on all addresses and asks for PLAIN, with more lines for it."""
    users = tmp_path / "users"
    users.write_text(f"ada:{hash_password('s3cret')}\n", encoding="utf-8")

    def start(configuration: str = "") -> RouterProcess:
        return routers(f"""
            [[listener]]
            host = "0.0.0.0"
            port = 0
            saslMechanisms = ["PLAIN"]
            authenticatePeer = true
            usersFile = "{users}"
            {configuration}
            """)

    return start


@pytest.mark.parametrize("is_allowed", [False, True], ids=["refused", "allowed"])
def test_passwords_in_clear_text_are_for_this_host_unless_others_are_allowed(
    everywhere: StartRouter, proton: ProtonPeers, is_allowed: bool
) -> None:
    """Proton sends the password only if PLAIN is offered."""
    elsewhere = own_address()
    router = everywhere(f"allowInsecureAuthentication = {str(is_allowed).lower()}")
    login: dict[str, Any] = {"user": "ada", "password": "s3cret", "allowed_mechs": "PLAIN"}
    proton.connect(f"amqp://127.0.0.1:{router.port}", **login)
    connection = proton.begin_connect(f"amqp://{elsewhere}:{router.port}", **login)
    proton.until(lambda: connection.is_open or connection.is_lost, "it is answered")
    assert connection.is_open is is_allowed
    assert bool(router.warnings("no SASL mechanism can be offered")) is not is_allowed


SCRAM = ("SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.mark.parametrize("mechanism", SCRAM)
def test_jms_logs_in_by_scram(
    routers: StartRouter, tmp_path: Path, address: str, mechanism: str
) -> None:
    users = tmp_path / "users"
    users.write_text(f"ada:{credentials_of('s3cret', [mechanism])}\n", encoding="utf-8")
    router = routers(f"""
        [[listener]]
        port = 0
        saslMechanisms = ["SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1"]
        authenticatePeer = true
        usersFile = "{users}"
        """)

    def url(user: str, password: str) -> str:
        options = f"jms.username={user}&jms.password={password}"
        return f"{router.url()}?amqp.saslMechanisms={mechanism}&{options}"

    assert jms(url("ada", "s3cret"), address, "queue") == ["blue"]
    assert "user=ada" in router.log_text()
    for user, password in (("ada", "s3crets"), ("eve", "s3cret")):
        assert "JMSSecuritySaslException: Client failed to authenticate" in jms_failure(
            url(user, password)
        )
    assert len(router.warnings(f"mechanism={mechanism}")) == 2
