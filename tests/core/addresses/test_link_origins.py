"""Who attaches a link: the container itself, a link that comes round, a client of a coordinator."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.performatives import Attach, Coordinator
from router.amqp.types import Symbol
from router.core.addresses.link_origins import (
    Origin,
    coordinator_names,
    is_loop,
    is_same,
    origin_of,
)
from router.engine.link import IncomingLink

from support.in_memory import Router

ROLE = "route-container"


def test_a_container_is_known_by_its_id_and_a_client_is_not() -> None:
    router = Router()
    one, same = (router.client(container="c", role=ROLE).connection for _ in range(2))
    other = router.client(container="d", role=ROLE).connection
    client = router.client(container="c").connection

    def is_there(connection: Any, peer: Any) -> bool:
        return is_same(connection, origin_of(IncomingLink(peer.local_sessions[0], "l", 0)))

    assert is_there(one, one)
    assert is_there(one, same)
    assert not is_there(one, other)
    assert not is_there(one, client)
    assert not is_there(client, one)
    assert is_there(client, client)


def test_who_has_attached_a_link() -> None:
    router = Router()
    for client, container, role, user in (
        (router.client(container="c"), "c", False, "anonymous"),
        (router.client(container="d", role=ROLE, user="ann"), "d", True, "ann"),
    ):
        connection = client.connection
        origin = origin_of(IncomingLink(connection.local_sessions[0], "l", 0))
        assert origin == Origin(connection, "l", container, role, user)
        assert origin.forwarded_name == f"l@{container}"


@pytest.mark.spec("2.6.1-1")
def test_links_of_two_clients_have_two_names() -> None:
    who = [
        ("l", "x@y", "a#1"),
        ("l@x", "y", "a#2"),
        ("l@x%40", "y", "a#3"),
        ("l", "x%40y", "a#4"),
        ("l", "%5", "a#5"),
        ("l", "", "5"),
        ("l", "", "a#5"),
        ("l", "", "b#5"),
    ]
    names = {
        Origin(key, name, container, False, "anonymous").forwarded_name
        for name, container, key in who
    }
    assert len(names) == len(who)


def test_a_client_without_a_container_id_is_known_by_its_connection() -> None:
    router = Router()
    clients = [router.client(container=""), router.client(container="")]
    names = [
        origin_of(IncomingLink(each.connection.local_sessions[0], "l", 0)).forwarded_name
        for each in clients
    ]
    assert names == [f"l@%{each.connection.number}" for each in clients]


@pytest.mark.parametrize(
    ("name", "role", "comes"),
    [
        ("l@client@{}", ROLE, True),
        ("l@{}@client", ROLE, True),
        ("{}@client", ROLE, False),
        ("l@client", ROLE, False),
        ("l", ROLE, False),
        ("l@{}", "normal", False),
    ],
)
def test_a_link_comes_round_that_has_been_here(name: str, role: str, comes: bool) -> None:
    router = Router()
    connection = router.client(role=role).connection
    here = connection.settings.container_id
    link = IncomingLink(connection.local_sessions[0], name.format(here), 0)
    origin = origin_of(link)
    assert is_loop(here, origin, router.client(role=ROLE).connection) is comes
    # by the very connection it would come round at once
    assert is_loop(here, origin, connection) is (comes or name == "l@{}")


def test_what_a_coordinator_is_called_by() -> None:
    connection = Router().client(endpoint="west").connection
    link = IncomingLink(connection.local_sessions[0], "l", 0)

    def names(properties: Any = None) -> list[str]:
        attach = Attach("l", 0, False, target=Coordinator(), properties=properties)
        link.remote_attach = attach
        return list(coordinator_names(link))

    assert names() == ["west"]
    connection.user = "ann"
    assert names({Symbol("x-opt-qd.address"): "/billing/"}) == ["billing", "ann", "west"]
    assert names({Symbol("x-opt-qd.address"): 5}) == ["ann", "west"]


@pytest.mark.parametrize(
    ("container", "user", "name"),
    [
        ("c", "a.com\0ada", "l@a.com%/c"),
        ("c@d", "a@b\0", "l@a%40b%/c%40d"),
        ("%/c", "ada", "l@%25/c"),
        ("c", "ada", "l@c"),
        ("c", None, "l@c"),
    ],
)
def test_the_name_of_a_tenants_link_has_the_tenant(
    container: str, user: str | None, name: str
) -> None:
    assert Origin("key", "l", container, False, user).forwarded_name == name


def test_a_link_comes_round_through_a_tenant() -> None:
    router = Router()
    connection = router.client(role=ROLE).connection
    here = connection.settings.container_id
    origin = origin_of(IncomingLink(connection.local_sessions[0], f"l@a.com%/{here}", 0))
    assert is_loop(here, origin, router.client(role=ROLE).connection)
