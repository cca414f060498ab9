"""SCRAM at both ends, by the library and against each other, and messages that are none."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from router.config.connectors import ConnectorSettings
from router.config.model import Configuration
from router.config.scram import MECHANISMS
from router.config.secret import Secret
from router.config.users import Users, credentials_of, parse_credentials
from router.net.scram import LoginRefused, ScramClientLogin, ScramLogin

from support.loopback import listening, running_node

USERS = Users({"ada": parse_credentials(credentials_of("s3cret", MECHANISMS))})


@pytest.mark.spec("0.2-12")
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_right_password(mechanism: str) -> None:
    client, server = ScramClientLogin(mechanism, "ada", "s3cret"), ScramLogin(USERS, mechanism)
    user, proof = server.last(client.answer(server.first(client.first())))
    assert user == "ada"
    client.check(proof)


def test_the_proof_may_come_as_a_challenge() -> None:
    mechanism = "SCRAM-SHA-256"
    client, server = ScramClientLogin(mechanism, "ada", "s3cret"), ScramLogin(USERS, mechanism)
    _, proof = server.last(client.answer(server.first(client.first())))
    assert client.answer(proof) == b""
    client.check(b"")


@pytest.mark.parametrize(("user", "password"), [("ada", "wrong"), ("bob", "s3cret")])
def test_wrong_ones_are_refused_alike(user: str, password: str) -> None:
    mechanism = "SCRAM-SHA-256"
    client, server = ScramClientLogin(mechanism, user, password), ScramLogin(USERS, mechanism)
    final = client.answer(server.first(client.first()))
    with pytest.raises(LoginRefused):
        server.last(final)


def test_an_unknown_user_has_the_same_salt_each_time() -> None:
    def shown() -> bytes:
        server = ScramLogin(USERS, "SCRAM-SHA-256")
        return server.first(b"n,,n=bob,r=abc").partition(b",s=")[2]

    assert shown() == shown()


def test_a_server_that_does_not_know_the_password_is_left() -> None:
    mechanism = "SCRAM-SHA-256"
    other = Users({"ada": parse_credentials(credentials_of("other", MECHANISMS))})
    client, server = ScramClientLogin(mechanism, "ada", "s3cret"), ScramLogin(other, mechanism)
    client.answer(server.first(client.first()))
    for proof in (b"", b"v=AAAA", b"e=other-error"):
        with pytest.raises(LoginRefused):
            client.check(proof)


def test_a_server_may_not_ask_for_too_much() -> None:
    client = ScramClientLogin("SCRAM-SHA-256", "ada", "s3cret")
    nonce = client.first().rpartition(b"r=")[2]
    with pytest.raises(LoginRefused):
        client.answer(b"r=" + nonce + b"x,s=AAAAAAAAAAAAAAAA,i=100000000")


@given(message=st.binary(max_size=100) | st.from_regex(rb"[nyp],,n=.*,r=.*"), second=st.binary())
def test_no_message_does_anything_else(message: bytes, second: bytes) -> None:
    server = ScramLogin(USERS, "SCRAM-SHA-256")
    with contextlib.suppress(LoginRefused):
        server.first(message)
        server.last(second)
    client = ScramClientLogin("SCRAM-SHA-256", "ada", "s3cret")
    client.first()
    with contextlib.suppress(LoginRefused):
        client.answer(message)
        client.check(second)


@pytest.mark.spec("0.2-13")
@pytest.mark.parametrize("password", ["s3cret", "wrong"])
async def test_a_connector_logs_in(tmp_path: Path, password: str) -> None:
    users = tmp_path / "users"
    users.write_text(f"ada:{credentials_of('s3cret', ['SCRAM-SHA-256'])}\n", encoding="utf-8")
    configuration = listening(
        sasl_mechanisms=("SCRAM-SHA-256", "PLAIN"), authenticate_peer=True, users_file=users
    )
    async with running_node(configuration) as a:
        connector = ConnectorSettings(
            host=a.address[0],
            port=a.address[1],
            sasl_username="ada",
            sasl_password=Secret.parse(password),
        )
        async with running_node(Configuration(connectors=(connector,))) as b:
            if password == "s3cret":
                await a.until(lambda: a.pumps and a.pumps[0].connection.is_open())
                connection = a.pumps[0].connection
                assert (connection.user, connection.mechanism) == ("ada", "SCRAM-SHA-256")
                return
            [standing] = b.node.endpoints.connectors.values()
            await b.until(lambda: standing.status.failure is not None)
            assert standing.status.failure is not None
            assert "refuses user ada" in standing.status.failure.reason
