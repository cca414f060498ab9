"""A router becomes another one, again and again, while others send and receive: nothing is lost.

Senders know what became of each of their messages, and receivers which of them came.
"""

from __future__ import annotations

import itertools
import signal
import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from proton import Message

from support.ports import free_port
from support.proton_peers import ProtonConnection, ProtonPeers
from support.routers import RouterProcess, StartRouter, running_router
from support.traffic import Traffic

FIRST = """\
[[listener]]
name = "first"
host = "127.0.0.1"
port = 0
"""


class Management:
    """Asks `$management` for something, and lets everything else go on meanwhile."""

    def __init__(self, peers: ProtonPeers, connection: ProtonConnection) -> None:
        self._peers = peers
        self._replies = connection.receiver(None, 10, dynamic=True)
        self._replies.renews = True
        self._sender = connection.sender("$management")
        self._asked = 0

    def ask(
        self, meanwhile: Callable[[], None], operation: str, body: Any = None, **properties: Any
    ) -> Any:
        """Ask, and do something again and again until the answer is there."""
        message = Message(body=body, properties={"operation": operation, **properties})
        message.reply_to = self._replies.link.remote_source.address
        self._sender.send(message)
        self._asked += 1

        def is_there() -> bool:
            meanwhile()
            return len(self._replies.received) == self._asked

        self._peers.until(is_there, f"{operation} is answered")
        return self._replies.received[-1].message

    def apply(self, meanwhile: Callable[[], None], text: str) -> int:
        """Apply a configuration; the new revision."""
        answer = self.ask(meanwhile, "APPLY", text)
        assert answer.properties["statusCode"] == 200, answer.properties
        return int(answer.body["revision"])


def configurations() -> Iterator[str]:
    """One after another: what is changed is changed to and fro."""
    port = free_port()
    for step in itertools.count():
        text = FIRST + f"linkCapacity = {100 + step}\n"
        if step % 2:
            text += f'[[listener]]\nname = "second"\nhost = "127.0.0.1"\nport = {port}\n'
        if step % 3:
            text += f'[[connector]]\nname = "nobody"\nhost = "127.0.0.1"\nport = {free_port()}\n'
        distribution = ("closest", "balanced", "multicast")[step % 3]
        text += f'[[address]]\nprefix = "changing"\ndistribution = "{distribution}"\n'
        text += f'[router]\nlinkStealing = "{("any", "off")[step % 2]}"\n'
        text += (
            f'memoryLimitBytes = {2**25 + step}\n[log]\nlevel = "{("info", "debug")[step % 2]}"\n'
        )
        yield text


@pytest.fixture
def managed(start_router: StartRouter, proton: ProtonPeers) -> tuple[RouterProcess, Management]:
    """Start a router, and connect to its management."""
    router = start_router(FIRST)
    return router, Management(proton, proton.connect(router.url()))


def test_no_message_is_lost_while_everything_changes(
    managed: tuple[RouterProcess, Management], proton: ProtonPeers
) -> None:
    router, management = managed
    traffic = Traffic()
    for address, receivers in (("steady", 1), ("changing/one", 2), ("changing/two", 1)):
        for _ in range(receivers):
            receiver = proton.connect(router.url()).receiver(address, 20)
            receiver.renews = True
            traffic.receivers.append(receiver)
        traffic.senders.append(proton.connect(router.url()).sender(address))
    for count, text in enumerate(itertools.islice(configurations(), 40), 2):
        assert management.apply(traffic.go_on, text) == count
        # whatever this changed, messages go on
        proton.until(traffic.another_of_each(), "another message of each sender has arrived")
    proton.until(traffic.all_settled, "all is settled")
    assert traffic.outcomes() == {"accepted": sum(len(each.sent) for each in traffic.senders)}
    for sender, receivers_ in zip(
        traffic.senders,
        (traffic.receivers[:1], traffic.receivers[1:3], traffic.receivers[3:]),
        strict=True,
    ):
        # each came, to one receiver or to all, and to none of them twice
        came = [set(receiver.bodies()) for receiver in receivers_]
        assert len(set.union(*came)) == len(sender.sent)
        assert [len(each) for each in came] == [len(each.received) for each in receivers_]


def test_a_connector_that_is_removed_under_traffic_leaves_every_sender_an_outcome(
    managed: tuple[RouterProcess, Management],
    proton: ProtonPeers,
    start_router: StartRouter,
) -> None:
    router, management = managed
    other = start_router(FIRST)
    # what it connects to only answers; who receives is a client of the first
    connector = (
        f'[[connector]]\nname = "other"\nhost = "127.0.0.1"\nport = {other.port}\n'
        'role = "route-container"\n'
    )
    traffic = Traffic()
    receiver = proton.connect(router.url()).receiver("q", 20)
    receiver.renews = True
    traffic.receivers.append(receiver)
    traffic.senders.append(proton.connect(router.url()).sender("q"))

    def has_connected(times: int) -> bool:
        traffic.go_on()
        return other.log_text().count("connection opened") == times

    for step in range(6):
        management.apply(traffic.go_on, FIRST + (connector if step % 2 == 0 else ""))
        if step % 2 == 0:
            proton.until(partial(has_connected, step // 2 + 1), "the connector has connected")
    proton.until(traffic.all_settled, "all is settled")
    proton.until(
        lambda: "the connector is removed" in other.log_text(), "the other router was told why"
    )
    assert traffic.outcomes() == {"accepted": len(receiver.received)}


def test_what_cannot_be_changes_nothing(
    managed: tuple[RouterProcess, Management], proton: ProtonPeers
) -> None:
    router, management = managed
    traffic = Traffic()
    receiver = proton.connect(router.url()).receiver("q", 20)
    receiver.renews = True
    traffic.receivers.append(receiver)
    traffic.senders.append(proton.connect(router.url()).sender("q"))
    before = management.ask(traffic.go_on, "GET-CONFIGURATION").body
    fine = f'[[listener]]\nname = "fine"\nport = {free_port()}\n'
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for wrong, reason in [
            (f'[[listener]]\nname = "taken"\nport = {taken.getsockname()[1]}\n', "in use"),
            ('[[listener]]\nname = "nowhere"\nhost = "192.0.2.1"\nport = 1\n', "assign"),
            ('[[listener]]\nname = "first"\n', "is also the name of"),
            ('[[listener]]\nport = "first"\n', "is not allowed"),
            ('[[listener]]\nsaslMechanisms = ["PLAIN"]\nusersFile = "none"\n', "cannot be read"),
            ('[router]\nid = "other"\n', "router.id cannot be changed"),
            ("[[address", "is not TOML"),
        ]:
            answer = management.ask(traffic.go_on, "APPLY", FIRST + fine + wrong)
            assert answer.properties["statusCode"] == 400
            assert reason in answer.properties["statusDescription"]
            assert management.ask(traffic.go_on, "GET-CONFIGURATION").body == before
    proton.until(traffic.all_settled, "all is settled")
    assert traffic.outcomes() == {"accepted": len(receiver.received)}


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_what_was_changed_is_there_after_a_restart(
    tmp_path: Path, proton: ProtonPeers, end: signal.Signals
) -> None:
    state = tmp_path / "state"
    changed = FIRST + '[[address]]\nprefix = "all"\ndistribution = "multicast"\n'
    with running_router(tmp_path, FIRST, "--state", state) as router:
        management = Management(proton, proton.connect(router.url()))
        answer = management.ask(lambda: None, "APPLY", changed)
        assert answer.body["saved"] == str(state)
        router.stop(end)
    with running_router(tmp_path, FIRST, "--state", state) as router:
        peer = proton.connect(router.url())
        receivers = [peer.receiver("all", 1, name=f"r{number}") for number in range(2)]
        assert peer.sender("all").outcome(Message("x")).outcome == "accepted"
        assert [each.bodies() for each in receivers] == [["x"], ["x"]]
        assert "saved changes are used instead of the configuration file" in router.log_text()
