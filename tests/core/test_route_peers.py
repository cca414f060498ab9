"""Who attaches a link: the container itself, a link that comes round, a client of a coordinator."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.performatives import Attach, Coordinator
from router.amqp.types import Symbol
from router.core.route_peers import comes_round, coordinator_names, is_same
from router.engine.link import IncomingLink

from support.in_memory import Router

ROLE = "route-container"


def test_a_container_is_known_by_its_id_and_a_client_is_not() -> None:
    router = Router()
    one, same = (router.client(container="c", role=ROLE).connection for _ in range(2))
    other = router.client(container="d", role=ROLE).connection
    client = router.client(container="c").connection
    assert is_same(one, one)
    assert is_same(one, same)
    assert not is_same(one, other)
    assert not is_same(one, client)
    assert not is_same(client, one)
    assert is_same(client, client)


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
    assert comes_round(link, router.client(role=ROLE).connection) is comes
    # by the very connection it would come round at once
    assert comes_round(link, connection) is (comes or name == "l@{}")


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
