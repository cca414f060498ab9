"""Users and passwords change while clients send: nothing is lost, and no link is detached."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path

import pytest

from support.commands import Command
from support.proton_peers import ProtonConnection, ProtonPeers
from support.routers import RouterProcess, StartRouter
from support.traffic import Traffic


class UsersFile:
    """Users file of a router, which `trioute user` changes."""

    def __init__(self, path: Path, proton: ProtonPeers) -> None:
        self.path = path
        self._proton = proton

    def change(self, traffic: Traffic, *arguments: str, stdin: str | None = None) -> None:
        """Run a subcommand of `trioute user` while messages pass."""
        action, *rest = arguments
        octets = None if stdin is None else stdin.encode()
        with Command("user", action, str(self.path), *rest, stdin=octets) as command:
            self._proton.until(lambda: traffic.goes_on() and command.has_ended, "it has ended")
            ended = command.end()
        assert ended.code == 0, ended.errors

    def set(self, traffic: Traffic, user: str, password: str) -> None:
        """Add a user, or change the user's password."""
        self.change(traffic, "add", user, "--stdin", stdin=password + "\n")


@pytest.fixture
def users(tmp_path: Path, proton: ProtonPeers) -> UsersFile:
    """Write a users file with ada and eve."""
    found = UsersFile(tmp_path / "users", proton)
    for user in ("ada", "eve"):
        found.set(Traffic(), user, f"old of {user}")
    return found


def log_in(
    proton: ProtonPeers, router: RouterProcess, mechanism: str, user: str, password: str
) -> ProtonConnection:
    """Connect, and wait until the connection is open or refused."""
    connection = proton.begin_connect(
        router.url(), allowed_mechs=mechanism, user=user, password=password
    )
    proton.until(lambda: connection.is_open or connection.is_lost, "the router has decided")
    return connection


def has_read(router: RouterProcess, traffic: Traffic, count: int) -> bool:
    """Go on, and return whether the router has read its files again so many times."""
    traffic.go_on()
    return router.log_text().count("configuration reloaded") >= count


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_users_are_replaced_under_traffic(
    routers: StartRouter, proton: ProtonPeers, users: UsersFile, address: str, mechanism: str
) -> None:
    router = routers(f"""
        [[listener]]
        port = 0
        saslMechanisms = "{mechanism}"
        authenticatePeer = true
        usersFile = "{users.path}"
        """)
    traffic = Traffic()
    # eve's connection stays open when eve is removed, as the connections of removed users do
    sending = log_in(proton, router, mechanism, "eve", "old of eve")
    receiver = log_in(proton, router, mechanism, "ada", "old of ada").receiver(address, 100)
    receiver.renews = True
    traffic.receivers.append(receiver)
    traffic.senders.append(sending.sender(address))
    proton.until(traffic.another_of_each(), "messages pass")
    for step in range(1, 4):
        users.set(traffic, "ada", f"password {step}")
        users.set(traffic, f"new{step}", "new")
        if step == 2:
            users.change(traffic, "remove", "eve")
        router.process.send_signal(signal.SIGHUP)
        proton.until(partial(has_read, router, traffic, step), "the users are read")
        assert log_in(proton, router, mechanism, "ada", f"password {step}").is_open
        assert log_in(proton, router, mechanism, f"new{step}", "new").is_open
        proton.until(traffic.another_of_each(), "messages pass")
    for user, password in (("ada", "old of ada"), ("eve", "old of eve")):
        assert log_in(proton, router, mechanism, user, password).is_lost
    proton.until(traffic.another_of_each(), "messages pass")
    proton.until(traffic.all_settled, "all is settled")
    assert traffic.outcomes() == {"accepted": len(traffic.senders[0].sent)}
    assert receiver.bodies() == list(range(len(traffic.senders[0].sent)))
    assert not traffic.senders[0].is_over
    assert not receiver.is_over
