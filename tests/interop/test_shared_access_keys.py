"""Logins by PLAIN with the name and the text of a shared access key: its rights, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from proton import ConnectionException
from proton.utils import BlockingConnection, LinkDetached

from support.configuring import entity
from support.routers import RouterProcess, StartRouter
from support.tls_peers import listener

CONFIG = entity("sharedAccessKey", name="all", keyName="Root", key="root-key")
CONFIG += entity(
    "sharedAccessKey", name="listen", key="new-key", secondaryKey="old-key", rights=["Listen"]
)
CONFIG += entity("claims", name="tokens", sharedAccessKeys=["all", "listen"])
CONFIG += listener("keys", claims="tokens", saslMechanisms=["PLAIN"], authenticatePeer=True)


@pytest.fixture
def keyed(routers: StartRouter) -> RouterProcess:
    """Start a router whose peers log in with shared access keys."""
    return routers(CONFIG)


@contextmanager
def logged_in(keyed: RouterProcess, user: str, password: str) -> Iterator[BlockingConnection]:
    """Connect with Proton, as a user."""
    host, port = keyed.addresses[0]
    connection = BlockingConnection(
        f"amqp://{host}:{port}", user=user, password=password, allowed_mechs="PLAIN", timeout=10
    )
    with closing(connection):
        yield connection


def test_a_key_gives_its_rights_at_all_addresses(keyed: RouterProcess) -> None:
    with logged_in(keyed, "Root", "root-key") as connection:
        connection.create_sender("orders")
        connection.create_receiver("orders")
    for key in ("new-key", "old-key"):
        with logged_in(keyed, "listen", key) as connection:
            connection.create_receiver("orders")
            with pytest.raises(LinkDetached, match="unauthorized-access"):
                connection.create_sender("orders")


@pytest.mark.parametrize(
    ("user", "password"),
    [("Root", "new-key"), ("nobody", "root-key"), ("Root", ""), ("", "root-key")],
    ids=["other-key", "other-name", "no-key", "no-name"],
)
def test_a_wrong_key_does_not_log_in(keyed: RouterProcess, user: str, password: str) -> None:
    with pytest.raises(ConnectionException), logged_in(keyed, user, password):
        pytest.fail("logged in")
