"""Logins of a client by SCRAM, at a router that offers nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import attrs
import pytest

from router.client import ConnectFailed, connect
from router.client.url import parse_url
from router.config.users import credentials_of

from support.launcher import trioute
from support.loopback import listening, running_node
from support.own_address import own_address
from support.routers import StartRouter

SCRAM = ("SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512")


def users_file(folder: Path) -> Path:
    """Return a file with a user who has hashes for SCRAM."""
    path = folder / "users"
    path.write_text(f"ada:{credentials_of('s3cret', SCRAM)}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("mechanism", SCRAM)
async def test_a_client_logs_in(tmp_path: Path, mechanism: str) -> None:
    fields = {"sasl_mechanisms": (mechanism,), "authenticate_peer": True}
    wanted = listening(users_file=users_file(tmp_path), **fields)
    async with running_node(wanted) as running:
        host, port = running.address
        async with connect(f"amqp://ada:s3cret@{host}:{port}") as connection:
            await connection.open_receiver("q")
            (pump,) = (each for each in running.pumps if each.authenticator is not None)
            assert (pump.connection.user, pump.connection.mechanism) == ("ada", mechanism)
        for user in ("ada:wrong", "eve:s3cret", "ada"):
            with pytest.raises(ConnectFailed) as failed:
                async with connect(f"amqp://{user}@{host}:{port}"):
                    pass
            assert failed.value.condition == "amqp:unauthorized-access"


async def test_the_mechanisms_of_a_url_come_first(tmp_path: Path) -> None:
    fields = {"sasl_mechanisms": SCRAM, "authenticate_peer": True}
    wanted = listening(users_file=users_file(tmp_path), **fields)
    async with running_node(wanted) as running:
        host, port = running.address
        url = parse_url(f"amqp://ada:s3cret@{host}:{port}")
        async with connect(attrs.evolve(url, mechanisms=("PLAIN", "SCRAM-SHA-256"))):
            (pump,) = (each for each in running.pumps if each.authenticator is not None)
            assert pump.connection.mechanism == "SCRAM-SHA-256"
        with pytest.raises(ConnectFailed, match="this side can use PLAIN"):
            async with connect(attrs.evolve(url, mechanisms=("PLAIN",))):
                pass


async def test_a_client_sends_its_password_in_clear_text_only_if_told_to(tmp_path: Path) -> None:
    fields = {"sasl_mechanisms": ("PLAIN",), "authenticate_peer": True}
    insecure = {"host": own_address(), "allow_insecure_authentication": True}
    wanted = listening(users_file=users_file(tmp_path), **fields, **insecure)
    async with running_node(wanted) as running:
        host, port = running.address
        url = parse_url(f"amqp://ada:s3cret@{host}:{port}")
        with pytest.raises(ConnectFailed, match="use amqps, or name PLAIN as a SASL mechanism"):
            async with connect(url):
                pass
        async with connect(attrs.evolve(url, mechanisms=("PLAIN",))):
            (pump,) = (each for each in running.pumps if each.authenticator is not None)
            assert pump.connection.mechanism == "PLAIN"


async def test_a_client_hears_that_nothing_is_offered_without_tls(tmp_path: Path) -> None:
    fields = {"host": own_address(), "sasl_mechanisms": ("PLAIN",), "authenticate_peer": True}
    wanted = listening(users_file=users_file(tmp_path), **fields)
    async with running_node(wanted) as running:
        host, port = running.address
        with pytest.raises(ConnectFailed, match="it may have none to offer without TLS"):
            async with connect(f"amqp://ada:s3cret@{host}:{port}"):
                pass


def test_commands_log_in(start_router: StartRouter, tmp_path: Path) -> None:
    router = start_router(f"""
        [[listener]]
        port = 0
        saslMechanisms = ["SCRAM-SHA-256"]
        authenticatePeer = true
        usersFile = "{users_file(tmp_path)}"
        """)
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n", encoding="utf-8")
    bus = ["--bus", router.url(), "--sasl-username", "ada", "--sasl-password-file", str(secret)]
    for command in (
        ["stat", "--general", *bus],
        ["manage", "query", "--type", "router", *bus, "--sasl-mechanisms", "SCRAM-SHA-256"],
    ):
        done = subprocess.run(
            trioute(*command), capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
    done = subprocess.run(
        trioute("stat", "--general", *bus, "--sasl-mechanisms", "PLAIN"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "this side can use PLAIN" in done.stderr
