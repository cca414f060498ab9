"""Which links have a name, and who may take it."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.performatives import Open
from router.core.addresses.link_names import ANY, NEVER, OFF, SAME_USER, LinkNames
from router.engine.connection import Connection
from router.engine.handler import Handler
from router.engine.link import IncomingLink, Link, OutgoingLink
from router.engine.outbox import Turn
from router.engine.session import Session
from router.engine.settings import ConnectionSettings


def link(
    container: str = "c",
    name: str = "l",
    kind: Any = IncomingLink,
    *,
    user: str | None = None,
    dialled: str | None = None,
) -> Link:
    """Return a link of a peer; `dialled` is where a connector found the peer."""
    settings = ConnectionSettings("router")
    peer = dialled or "somewhere:1"
    connection = Connection(settings, Handler(), Turn(), peer, dialled is not None)
    connection.user = user
    connection.remote_open = Open(container)
    made: Link = kind(Session(connection, 0, 1, 512), name, 0)
    return made


def test_container_name_and_direction_make_a_link_what_it_is() -> None:
    names = LinkNames()
    first = link()
    assert names.holder(first) is None
    names.enter(first)
    assert names.holder(first) is first
    assert names.holder(link()) is first
    for other in (link("d"), link(name="m"), link(kind=OutgoingLink), link(name="")):
        assert names.holder(other) is None


def test_a_link_leaves_its_own_name_and_not_its_successor_s() -> None:
    names = LinkNames()
    first, second = link(), link()
    names.enter(first)
    names.enter(second)
    names.leave(first)
    assert names.holder(first) is second
    names.leave(second)
    names.leave(second)
    assert len(names) == 0


def test_what_has_no_container_id_is_nobody() -> None:
    names = LinkNames()
    names.enter(link(""))
    assert names.holder(link("")) is None
    assert len(names) == 0
    # while an empty name is a name
    names.enter(link(name=""))
    assert names.holder(link(name="")) is not None


def test_without_stealing_nobody_has_a_name() -> None:
    names = LinkNames(OFF)
    names.enter(link())
    assert names.holder(link()) is None


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ({"user": "ann"}, {"user": "ann"}, True),
        ({"user": "ann"}, {"user": "bob"}, False),
        ({"user": "ann"}, {}, False),
        # ANONYMOUS, and no SASL at all
        ({"user": "anonymous"}, {}, True),
        ({}, {}, True),
        # peers that connectors have found, with whom they know who it is
        ({"dialled": "broker:1"}, {"dialled": "broker:1"}, True),
        ({"dialled": "broker:1"}, {"dialled": "broker:2"}, False),
        ({"dialled": "broker:1"}, {}, False),
        ({"dialled": "broker:1"}, {"user": "broker:1"}, False),
    ],
)
def test_who_may_steal(one: Any, other: Any, is_same: bool) -> None:
    for thief, holder in ((one, other), (other, one)):
        assert LinkNames(SAME_USER).may_steal(link(**thief), link(**holder)) is is_same
        assert LinkNames(ANY).may_steal(link(**thief), link(**holder))
        assert not LinkNames(NEVER).may_steal(link(**thief), link(**holder))
