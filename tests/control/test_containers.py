"""Containers are found by their container-id, and by the listener or connector they are at."""

from __future__ import annotations

from typing import Any

from router.amqp.framing import AMQP_HEADER
from router.amqp.performatives import Close, Open
from router.control.containers import Containers
from router.engine.connection import Connection

from support.transcripts import Recorder, Talk


class Listening(Recorder):
    """A handler that tells the containers of what it hears."""

    def __init__(self, containers: Containers) -> None:
        super().__init__()
        self.containers = containers

    def event_received(self, connection: Any, event: Any) -> None:
        super().event_received(connection, event)
        self.containers.event_received(connection, event)


class Watcher:
    """Writes down who came and who left."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def container_came(self, connection: Connection) -> None:
        self.told.append(("came", connection.remote_open.container_id))

    def container_left(self, connection: Connection) -> None:
        self.told.append(("left", connection.remote_open.container_id))


def opened(
    containers: Containers, container_id: str, endpoint: str, role: str = "route-container"
) -> Talk:
    """Return an open connection."""
    handler = Listening(containers)
    talk = Talk(handler, sasl_mechanisms=(), endpoint=endpoint, role=role)
    talk >> [AMQP_HEADER, Open(container_id)]
    return talk.skip()


def test_it_is_found_by_id_and_by_name() -> None:
    containers = Containers()
    one, other = opened(containers, "artemis", "west"), opened(containers, "rabbit", "west")
    third = opened(containers, "artemis", "east")
    assert containers.find("artemis", None) == [one.connection, third.connection]
    assert containers.find(None, "west") == [one.connection, other.connection]
    assert containers.find("artemis", "west") == [one.connection, third.connection]
    assert containers.find("nobody", None) == []
    assert containers.find(None, None) == []


def test_it_is_forgotten_when_it_goes() -> None:
    containers = Containers()
    watcher = Watcher()
    containers.watchers.append(watcher)
    one, other = opened(containers, "broker", "west"), opened(containers, "broker", "west")
    one >> Close()
    assert containers.find("broker", None) == [other.connection]
    other.connection.end_of_input()
    assert containers.find("broker", None) == []
    assert containers.find(None, "west") == []
    assert watcher.told == [("came", "broker")] * 2 + [("left", "broker")] * 2


def test_a_client_is_no_container() -> None:
    containers = Containers()
    watcher = Watcher()
    containers.watchers.append(watcher)
    client = opened(containers, "client", "amqp", role="normal")
    client >> Close()
    assert containers.find("client", None) == []
    assert watcher.told == []


def test_what_never_opened_is_none_either() -> None:
    containers = Containers()
    watcher = Watcher()
    containers.watchers.append(watcher)
    talk = Talk(Listening(containers), sasl_mechanisms=(), endpoint="w", role="route-container")
    talk >> b"HTTP/1.1"
    talk.connection.end_of_input()
    assert watcher.told == []
