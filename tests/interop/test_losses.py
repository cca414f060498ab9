"""If a client or a router is lost, no accepted message is, and every sender gets an outcome.

Half a message that is aborted is shown to proton alone: rhea 3.0.5 takes no notice of a transfer's
`aborted`, reads the half as if it were whole, and throws.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proton import Delivery, Message

from support.proton_peers import ProtonPeers, ProtonReceiver, ProtonSender, Sent
from support.rhea_peers import RheaPeer
from support.routers import PLAIN, RouterProcess, StartRouter, running_router

HALF_SENDER = Path(__file__).with_name("half_sender.py")


def test_a_killed_consumer_leaves_its_messages_modified(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    rhea.connect(router.port, username="anonymous")
    rhea.receiver(address, autoaccept=False)
    sender = proton.connect(router.url()).sender(address)
    for n in range(50):
        sender.send(Message(n))
    rhea.messages(50)
    for number in range(10):
        rhea.tell("settle", link="receiver", number=number, outcome="accepted")
    proton.until(lambda: sum(s.is_settled for s in sender.sent) >= 10, "some are settled")
    rhea.kill()
    proton.until(sender.all_settled, "everything is settled")
    assert sender.outcomes == ["accepted"] * 10 + ["modified"] * 40
    assert all(sent.failed and not sent.undeliverable for sent in sender.sent[10:])
    # What is sent again goes to whoever comes next.
    receiver = proton.connect(router.url()).receiver(address, 100)
    for n in range(10, 50):
        sender.send(Message(n))
    receiver.get(40)
    assert receiver.bodies() == list(range(10, 50))


def test_a_killed_consumer_is_replaced_by_the_others(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    """Messages flow all the time; what is not accepted is sent again, and all arrive."""
    rhea.connect(router.port, username="anonymous")
    rhea.receiver(address, autoaccept=False)
    receiver = proton.connect(router.url()).receiver(address, 1000)
    sender = proton.connect(router.url()).sender(address)
    for n in range(100):
        sender.send(Message(n))
        if n == 60:
            rhea.messages(1)
            rhea.kill()
    proton.until(sender.all_settled, "everything is settled")
    again = [n for n, outcome in enumerate(sender.outcomes) if outcome != "accepted"]
    assert again
    assert set(sender.outcomes) == {"accepted", "modified"}
    for n in again:
        assert sender.outcome(Message(n)).outcome == "accepted"
    assert sorted(receiver.bodies()) == list(range(100))


@pytest.fixture
def half_sender(router: RouterProcess, address: str) -> Iterator[subprocess.Popen[str]]:
    """Start a Proton client that stops in the middle of a message of 10 MB."""
    command = [sys.executable, str(HALF_SENDER), router.url(), address, "10000000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_of_a_sender_killed_half_way_nobody_sees_a_partial_message(
    router: RouterProcess,
    proton: ProtonPeers,
    address: str,
    half_sender: subprocess.Popen[str],
) -> None:
    parts: list[int] = []
    receiver = proton.connect(router.url()).receiver(address, 10)
    receiver.on_part = lambda part: parts.append(len(part))
    proton.until(lambda: sum(parts) >= 4_900_000, "half of the message is there")
    assert receiver.received == []
    half_sender.send_signal(signal.SIGKILL)
    proton.until(lambda: receiver.aborted, "the message is aborted")
    assert receiver.received == []
    sender = proton.connect(router.url()).sender(address)
    assert sender.outcome(Message("whole")).outcome == "accepted"
    assert len(receiver.received) == 1
    assert receiver.aborted == 1


def test_a_receiver_that_detaches_gives_back_what_it_did_not_settle(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    first = proton.connect(router.url()).receiver(address, 10, accept=False)
    sender = proton.connect(router.url()).sender(address)
    sent = [sender.send(Message(n)) for n in range(10)]
    for received in first.get(10)[:5]:
        received.settle(Delivery.ACCEPTED)
    first.detach()
    proton.until(sender.all_settled, "everything is settled")
    assert sender.outcomes == ["accepted"] * 5 + ["modified"] * 5
    assert all(each.failed for each in sent[5:])


class Resender:
    """A sender that comes back after each loss and sends again what was not accepted."""

    def __init__(self, sender: ProtonSender, total: int) -> None:
        self.sender = sender
        self.accepted: set[int] = set()
        self.to_do = list(range(total))
        self.under_way: dict[int, Sent] = {}
        self.lost = 0

    def step(self) -> None:
        """Send as much as there is credit for, and see what has become of the rest."""
        for n, sent in list(self.under_way.items()):
            if sent.is_settled:
                del self.under_way[n]
                if sent.outcome == "accepted":
                    self.accepted.add(n)
                else:
                    self.to_do.append(n)
        while self.to_do and self.sender.link.credit > 0 and len(self.under_way) < 50:
            n = self.to_do.pop(0)
            self.under_way[n] = self.sender.send(Message(n), wait=False)

    def connection_lost(self) -> None:
        """Whatever was under way is in doubt: once more."""
        self.lost += 1
        self.to_do.extend(self.under_way)
        self.under_way.clear()


def on_port(port: int) -> str:
    """Return the plain configuration with a fixed port."""
    return PLAIN.replace("port = 0", f"port = {port}")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
@pytest.mark.spec("3.2.1-2", "G1.3-4")
def test_nothing_accepted_is_lost_when_the_router_starts_again(
    routers: StartRouter, proton: ProtonPeers, address: str, how: int, tmp_path: Path
) -> None:
    total = 600
    received: set[int] = set()
    receivers: list[ProtonReceiver] = []

    def attach(url: str) -> tuple[ProtonReceiver, ProtonSender]:
        receiver = proton.connect(url).receiver(address, 100)
        receiver.renews = True
        receivers.append(receiver)
        return receiver, proton.connect(url).sender(address)

    with running_router(tmp_path / "first") as router:
        url, port = router.url(), router.port
        _, sender = attach(url)
        work = Resender(sender, total)

        def until_accepted(count: int) -> None:
            def is_far_enough() -> bool:
                work.step()
                return len(work.accepted) >= count

            proton.until(is_far_enough, f"{count} messages are accepted")

        until_accepted(200)
        assert work.under_way
        router.process.send_signal(how)
        router.process.wait(30)
        proton.until(proton.all_lost, "both connections are lost")
        work.step()
        work.connection_lost()
        assert router.stop() == (0 if how == signal.SIGTERM else -signal.SIGKILL)
        assert "Traceback" not in router.log_text()
    routers(on_port(port))
    _, work.sender = attach(url)
    until_accepted(total)
    for each in receivers:
        received.update(each.bodies())
    assert work.accepted == set(range(total))
    assert received == set(range(total))


def test_proton_and_rhea_reconnect_by_themselves(
    routers: StartRouter, proton: ProtonPeers, rhea: RheaPeer, address: str, tmp_path: Path
) -> None:
    with running_router(tmp_path / "first") as router:
        port = router.port
        connection = proton.connect(router.url(), reconnect=[0, 0.1, 0.1, 0.2] + [0.5] * 60)
        sender = connection.sender(address)
        options: dict[str, Any] = {
            "reconnect": True,
            "initial_reconnect_delay": 50,
            "max_reconnect_delay": 200,
        }
        rhea.connect(port, username="anonymous", **options)
        rhea.receiver(address)
        assert sender.outcome(Message("before")).outcome == "accepted"
        router.process.kill()
        router.process.wait()
        proton.until(lambda: connection.lost > 0, "proton lost its connection")
        rhea.wait("disconnected")
    routers(on_port(port))
    proton.until(lambda: connection.opened == 2, "proton is back")
    rhea.wait("receiver_open", 2)
    assert connection.sender(f"{address}").outcome(Message("after")).outcome == "accepted"
    assert [each["body"] for each in rhea.wait("message", 2)] == ["before", "after"]
