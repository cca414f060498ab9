"""Clients that come back before the router has seen them go, and take their links from there."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from proton import Delivery, Message, Terminus

from router.config.users import hash_password

from support.proton_peers import ProtonConnection, ProtonPeers
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess, StartRouter

STOLEN = "amqp:link:stolen"


def connect(proton: ProtonPeers, router: RouterProcess, container: str) -> ProtonConnection:
    return proton.connect(router.url(), container_id=container)


def name_of(condition: object) -> str:
    return str(getattr(condition, "name", condition))


def test_a_proton_receiver_that_comes_back_takes_its_place(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    old = connect(proton, router, address).receiver(address, 10, name="l", accept=False)
    sender = proton.connect(router.url()).sender(address)
    for n in range(3):
        sender.send(Message(n))
    old.get(3)[0].accept()
    proton.until(lambda: sender.sent[0].is_settled, "the first is settled")
    new = connect(proton, router, address).receiver(address, 10, name="l")
    old.until_over()
    assert name_of(old.condition) == STOLEN
    proton.until(sender.all_settled, "everything is settled")
    assert sender.outcomes == ["accepted", "modified", "modified"]
    assert all(sent.failed for sent in sender.sent[1:])
    assert sender.outcome(Message("again")).outcome == "accepted"
    assert new.bodies() == ["again"]
    assert len(old.received) == 3
    lines = [line for line in router.log_text().splitlines() if address in line]
    assert sum("link stolen" in line and "other_peer=127.0.0.1:" in line for line in lines) == 1


def test_a_proton_sender_that_comes_back_takes_its_place(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    receiver = proton.connect(router.url()).receiver(address, 5, accept=False)
    old = connect(proton, router, address).sender(address, name="l")
    sent = [old.send(Message(n)) for n in range(3)]
    receiver.get(3)[0].accept()
    old.settled(sent[0])
    # two it has whole and unsettled; of the fourth there is a half
    half = old.begin()
    old.link.stream(b"\x00\x53\x75\xb0\x00\x01\x00\x00" + bytes(1000))
    proton.until(lambda: receiver.link.current is not None, "its beginning has come")
    new = connect(proton, router, address).sender(address, name="l")
    old.until_over()
    assert name_of(old.condition) == STOLEN
    assert [each.outcome for each in sent] == ["accepted", "modified", "modified"]
    assert all(each.is_settled for each in [*sent, half])
    assert half.outcome == "released"
    proton.until(lambda: receiver.aborted, "the half is aborted")
    for received in receiver.received[1:]:
        # too late for its sender, and no harm
        received.accept()
    sending = new.send(Message("again"))
    receiver.get(4)[3].accept()
    assert new.settled(sending).outcome == "accepted"
    assert receiver.bodies() == [0, 1, 2, "again"]


def test_a_proton_client_moves_a_link_to_another_session(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    connection = proton.connect(router.url())
    old = connection.receiver(address, 10, name="l")
    new = connection.receiver(address, 10, name="l", session=connection.session())
    old.until_over()
    assert name_of(old.condition) == STOLEN
    assert proton.connect(router.url()).sender(address).outcome(Message(1)).outcome == "accepted"
    assert new.bodies() == [1]
    assert connection.is_open


@pytest.mark.parametrize("by_address", [False, True])
def test_a_proton_client_that_comes_back_keeps_its_dynamic_node_by_naming_it(
    router: RouterProcess, proton: ProtonPeers, address: str, by_address: bool
) -> None:
    old = connect(proton, router, address).receiver(None, 10, name="l", dynamic=True)
    node = old.link.remote_source.address
    service = proton.connect(router.url()).sender(node)
    again = connect(proton, router, address)
    new = again.receiver(node if by_address else None, 10, name="l", dynamic=not by_address)
    old.until_over()
    assert new.link.remote_source.type == Terminus.SOURCE
    assert (new.link.remote_source.address == node) is by_address
    if by_address:
        assert service.outcome(Message("reply")).outcome == "accepted"
        assert new.bodies() == ["reply"]
    else:
        service.until_over()
        assert name_of(service.condition) == "amqp:resource-deleted"


def test_rhea_and_proton_steal_from_each_other(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    """Whatever the library: the container-id and the name make a link the one it is."""
    rhea.connect(router.port, username="anonymous", container_id=address)
    rhea.receiver(address, name="l", autoaccept=False)
    sender = proton.connect(router.url()).sender(address)
    first = sender.send(Message(1))
    rhea.messages(1, link="l")
    taken = connect(proton, router, address).receiver(address, 10, name="l", accept=False)
    (closed,) = rhea.wait("receiver_error", link="l")
    assert closed["error"]["condition"] == STOLEN
    assert sender.settled(first).outcome == "modified"
    second = sender.send(Message(2))
    taken.get(1)
    # and back again, on another connection
    rhea.connect(router.port, name="next", username="anonymous", container_id=address)
    rhea.receiver(address, name="again", connection="next")
    third = connect(proton, router, address).receiver(address, 0, name="again")
    rhea.wait("receiver_error", link="again")
    assert third.is_attached
    taken.received[0].settle(Delivery.ACCEPTED)
    assert sender.settled(second).outcome == "accepted"


def test_a_rhea_sender_is_stolen_with_messages_under_way(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    receiver = proton.connect(router.url()).receiver(address, 10, accept=False)
    rhea.connect(router.port, username="anonymous", container_id=address)
    rhea.sender(address, name="l")
    rhea.wait("sendable", link="l")
    for n in range(3):
        rhea.tell("send", link="l", fields={"body": n})
    receiver.get(3)[0].accept()
    rhea.wait("accepted", link="l", number=0)
    new = connect(proton, router, address).sender(address, name="l")
    (closed,) = rhea.wait("sender_error", link="l")
    assert closed["error"]["condition"] == STOLEN
    assert len(rhea.wait("modified", 2, link="l")) == 2
    sending = new.send(Message("x"))
    receiver.get(4)[3].accept()
    assert new.settled(sending).outcome == "accepted"


def test_a_rhea_client_attaches_a_name_twice_on_one_session(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    """Proton closes a connection on which it has itself done so, whatever its peer does."""
    rhea.connect(router.port, username="anonymous", container_id=address)
    rhea.receiver(address, name="first")
    options = {"source": {"address": address}, "name": "first"}
    rhea.tell("receiver", connection="connection", link="second", options=options)
    rhea.wait("receiver_open", link="second")
    (closed,) = rhea.wait("receiver_error", link="first")
    assert closed["error"]["condition"] == STOLEN
    sender = proton.connect(router.url()).sender(address)
    assert sender.outcome(Message(b"x")).outcome == "accepted"
    assert len(rhea.messages(1, link="second")) == 1


def test_a_link_is_stolen_from_a_client_that_hangs(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    rhea.connect(router.port, username="anonymous", container_id=address)
    rhea.receiver(address, name="l", autoaccept=False)
    sender = proton.connect(router.url()).sender(address)
    before = sender.send(Message("before"))
    rhea.messages(1, link="l")
    rhea.process.send_signal(signal.SIGSTOP)
    # more than sockets hold, so that what waits for it waits in the router as well
    large = [sender.send(Message(bytes(500_000))) for _ in range(30)]
    new = connect(proton, router, address).receiver(address, 100, name="l")
    proton.until(sender.all_settled, "everything is settled")
    assert before.outcome == "modified"
    outcomes = [each.outcome for each in large]
    assert set(outcomes) == {"modified", "accepted"}
    assert len(new.received) == outcomes.count("accepted")
    rhea.process.send_signal(signal.SIGCONT)
    (closed,) = rhea.wait("receiver_error", link="l")
    assert closed["error"]["condition"] == STOLEN


def test_another_user_steals_nothing(
    routers: StartRouter, proton: ProtonPeers, address: str, tmp_path: Path
) -> None:
    users = tmp_path / "users"
    lines = [f"{name}:{hash_password('s3cret')}\n" for name in ("ada", "bob")]
    users.write_text("".join(lines), encoding="utf-8")
    router = routers(f"""
        [[listener]]
        port = 0
        saslMechanisms = ["PLAIN", "ANONYMOUS"]
        usersFile = "{users}"
        """)

    def as_user(user: str | None) -> ProtonConnection:
        plain = {"user": user, "password": "s3cret", "allowed_mechs": "PLAIN"}
        options = {"allowed_mechs": "ANONYMOUS"} if user is None else plain
        return proton.connect(router.url(), container_id="c", **options)

    old = as_user("ada").receiver(address, 10, name="l")
    for user in ("bob", None):
        refused = as_user(user).receiver(address, 10, name="l")
        assert not refused.is_attached
        refused.until_over()
        assert name_of(refused.condition) == "amqp:resource-locked"
    assert old.is_attached
    new = as_user("ada").receiver(address, 10, name="l")
    old.until_over()
    assert new.is_attached
    assert router.log_text().count("link stealing refused") == 2


def test_with_off_both_stay(routers: StartRouter, proton: ProtonPeers, address: str) -> None:
    router = routers("""
        [router]
        linkStealing = "off"
        [[listener]]
        port = 0
        """)
    receivers = [
        connect(proton, router, "c").receiver(address, 10, name="l", accept=False) for _ in range(2)
    ]
    sender = proton.connect(router.url()).sender(address)
    sent = [sender.send(Message(n)) for n in range(2)]
    for receiver in receivers:
        receiver.get(1)[0].accept()
    for each in sent:
        assert sender.settled(each).outcome == "accepted"
