"""Calls of the engine reach the link that they concern, or else the client itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from router.client.handler import ClientHandler


class Recorder:
    """Owner of a link or a connection that notes how it was called."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.calls.append((name, *arguments))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("transfer_received", ("frame",)),
        ("transfer_aborted", ()),
        ("outcome_received", ("frame",)),
    ],
)
def test_what_is_about_a_delivery_reaches_the_owner_of_its_link(
    name: str, arguments: tuple[str, ...]
) -> None:
    owner, connection = Recorder(), Recorder()
    link = SimpleNamespace(owner=owner)
    delivery = SimpleNamespace(incoming=link, outgoing=link)
    getattr(ClientHandler(connection), name)(delivery, *arguments)
    assert owner.calls == [(name, delivery, *arguments)]
    assert connection.calls == []


@pytest.mark.parametrize("name", ["credit_received", "flow_received"])
def test_what_is_about_a_link_reaches_its_owner(name: str) -> None:
    owner, connection = Recorder(), Recorder()
    getattr(ClientHandler(connection), name)(SimpleNamespace(owner=owner))
    assert (owner.calls, connection.calls) == ([(name,)], [])


def test_everything_else_reaches_the_owner_of_the_connection() -> None:
    connection = Recorder()
    handler = ClientHandler(connection)
    handler.room_made("connection", "session")
    handler.event_received("connection", "event")
    assert connection.calls == [("room_made",), ("event_received", "event")]
