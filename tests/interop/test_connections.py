"""Connections of every shape: heartbeats, small frames, many links, sessions, channels, clients."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from proton import Message

from router.amqp.framing import encode_frame
from router.amqp.performatives import Close, Transfer

from support.proton_peers import ProtonPeers
from support.raw_peers import RawPeer
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess, StartRouter

EMPTY_FRAME = encode_frame(0)


def open_sockets(router: RouterProcess) -> int:
    """How many sockets a router's process has open."""
    found = 0
    for link in Path(f"/proc/{router.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            # it may be closed while we look
            found += str(link.readlink()).startswith("socket:")
    return found


def test_clients_are_told_the_number_that_the_log_calls_them_by(
    router: RouterProcess, proton: ProtonPeers
) -> None:
    numbers = []
    for container in ("number-one", "number-two"):
        connection = proton.connect(router.url(), container_id=container)
        number = connection.endpoint.remote_properties["qd.conn-id"]
        (line,) = (
            line
            for line in router.log_text().splitlines()
            if "connection opened" in line and f"container={container} " in line + " "
        )
        assert f"connection={number} " in line + " "
        numbers.append(number)
    assert numbers[0] < numbers[1]


def test_heartbeats_keep_idle_connections(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    """Both clients ask for signs of life every half second, and drop a router that gives none."""
    connection = proton.connect(router.url(), heartbeat=0.5)
    receiver = connection.receiver(address, 10)
    rhea.connect(router.port, username="anonymous", idle_time_out=500)
    rhea.sender(address)
    frames = connection.endpoint.transport.frames_input
    proton.until(
        lambda: connection.endpoint.transport.frames_input >= frames + 12, "heartbeats have come"
    )
    rhea.send(bytes(Message("still here").encode()))
    assert receiver.get()[0].body == "still here"
    assert not connection.is_lost
    assert rhea.find("disconnected") == []


def test_a_silent_client_is_dropped_and_its_sender_told(
    routers: StartRouter, proton: ProtonPeers, address: str
) -> None:
    router = routers("[[listener]]\nport = 0\nidleTimeoutSeconds = 0.5\n")
    with RawPeer(router.port) as silent:
        silent.open()
        silent.attach_receiver(address, 10)
        sender = proton.connect(router.url()).sender(address)
        sent = sender.outcome(Message("x"))
        assert (sent.outcome, sent.failed) == ("modified", True)
        assert b"amqp:resource-limit-exceeded" in silent.rest()


def test_a_stopped_client_is_given_up_even_with_its_socket_full(
    routers: StartRouter, proton: ProtonPeers, address: str
) -> None:
    """It neither reads nor writes, as a process does that is stopped, or a machine that is gone."""
    router = routers("[[listener]]\nport = 0\nidleTimeoutSeconds = 0.5\n")
    sender = proton.connect(router.url()).sender(address)
    sockets = open_sockets(router)
    with RawPeer(router.port, receive_buffer_bytes=4096) as stopped:
        stopped.open()
        stopped.attach_receiver(address, 1000)
        assert open_sockets(router) == sockets + 1
        for _ in range(100):
            sender.send(Message(bytes(100_000)), wait=False)
        proton.until(lambda: sender.sent[0].is_settled, "the first is settled")
        assert set(sender.outcomes) <= {"modified", "released", ""}
        proton.until(lambda: open_sockets(router) == sockets, "the socket is closed")


def test_a_client_may_close_without_reading_what_is_under_way(
    routers: StartRouter, proton: ProtonPeers, address: str
) -> None:
    router = routers()
    sender = proton.connect(router.url()).sender(address)
    sockets = open_sockets(router)
    with RawPeer(router.port, receive_buffer_bytes=4096) as leaving:
        leaving.open()
        leaving.attach_receiver(address, 1000)
        # More than the sockets take, so that the router has to keep some.
        for _ in range(100):
            sender.send(Message(bytes(100_000)), wait=False)
        other = proton.connect(router.url())
        other.receiver(f"{address}/round-trip").detach()
        leaving.say(Close())
        proton.until(lambda: sender.sent[0].is_settled, "the first is settled")
        assert set(sender.outcomes) <= {"modified", "released", ""}
        proton.until(lambda: open_sockets(router) == sockets + 1, "the socket is closed")


def test_a_client_whose_messages_wait_is_not_taken_for_silent(
    routers: StartRouter, proton: ProtonPeers, address: str
) -> None:
    """Its window is closed, and all that it says is that it is there."""
    router = routers(
        "[[listener]]\nport = 0\nidleTimeoutSeconds = 0.5\nconnectionBufferBytes = 65536\n"
    )
    receiving = proton.connect(router.url())
    receiver = receiving.receiver(address, 10)
    receiver.link.session.incoming_capacity = 65536
    sender = proton.connect(router.url()).sender(address)
    with RawPeer(router.port, receive_buffer_bytes=4096) as slow:
        slow.open(idle_time_out=None)
        slow.attach_receiver(f"{address}/slow", 1000)
        to_slow = proton.connect(router.url())
        flood = to_slow.sender(f"{address}/slow")
        for _ in range(200):
            flood.send(Message(bytes(100_000)), wait=False)
        for _ in range(15):
            # a heartbeat keeps the slow one, and the others work on
            slow.send(EMPTY_FRAME)
            assert sender.outcome(Message("x")).outcome == "accepted"
            receiver.link.flow(1)
            proton.run_for(0.1)
        assert not to_slow.is_lost, to_slow.condition


@pytest.mark.parametrize("size", [0, 100, 500, 5_000, 1_000_000])
@pytest.mark.spec("2.7.1-4", "2.7.1-6")
def test_frames_of_512_octets(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str, size: int
) -> None:
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)
    small = proton.connect(router.url(), max_frame_size=512)
    receiver = small.receiver(address, 10)
    sender = proton.connect(router.url()).sender(address)
    assert sender.outcome(Message(body)).outcome == "accepted"
    assert receiver.get()[0].body == body
    # rhea opens its window of 2048 frames only after whole messages.
    body = body[:800_000]
    rhea.connect(router.port, username="anonymous", max_frame_size=512)
    rhea.receiver(f"{address}/rhea")
    back = small.sender(f"{address}/rhea")
    message = bytes(Message(body).encode())
    assert back.outcome(message).outcome == "accepted"
    assert rhea.messages(1) == [message]


def test_many_links_on_one_session(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    one, two = proton.connect(router.url()), proton.connect(router.url())
    receivers = [one.begin_receiver(f"{address}/{n}", 5) for n in range(300)]
    proton.until(lambda: all(r.is_attached for r in receivers), "all receivers are attached")
    senders = [two.begin_sender(f"{address}/{n}") for n in range(300)]
    proton.until(lambda: all(s.link.credit > 0 for s in senders), "all senders have credit")
    sent = [sender.send(Message(n)) for n, sender in enumerate(senders)]
    proton.until(lambda: all(each.is_settled for each in sent), "everything is settled")
    assert [receiver.bodies() for receiver in receivers] == [[n] for n in range(300)]
    # Handles are used again.
    for receiver in receivers[::2]:
        receiver.link.close()
    proton.until(lambda: all(r.is_over for r in receivers[::2]), "half are detached")
    again = one.receiver(f"{address}/again", 5)
    assert two.sender(f"{address}/again").outcome(Message("again")).outcome == "accepted"
    assert again.bodies() == ["again"]


@pytest.mark.spec("2.1.2-2")
def test_many_sessions_on_one_connection(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    connection = proton.connect(router.url())
    receivers = [
        connection.begin_receiver(f"{address}/{n}", 5, session=connection.session())
        for n in range(100)
    ]
    senders = [
        connection.begin_sender(f"{address}/{n}", session=connection.session()) for n in range(100)
    ]
    proton.until(lambda: all(s.link.credit > 0 for s in senders), "all senders have credit")
    sent = [sender.send(Message(n)) for n, sender in enumerate(senders)]
    proton.until(lambda: all(each.is_settled for each in sent), "everything is settled")
    assert [receiver.bodies() for receiver in receivers] == [[n] for n in range(100)]
    for sender in senders[:50]:
        sender.link.session.close()
    sent = [sender.send(Message("more")) for sender in senders[50:]]
    proton.until(lambda: all(each.is_settled for each in sent), "everything is settled")


@pytest.mark.parametrize("channel", [1, 7, 32767])
def test_channels_need_not_begin_at_0(
    router: RouterProcess, proton: ProtonPeers, address: str, channel: int
) -> None:
    receiver = proton.connect(router.url()).receiver(address, 10)
    with RawPeer(router.port) as peer:
        peer.open(channel=channel)
        peer.attach_sender(address, channel=channel)
        transfer = Transfer(handle=0, delivery_id=0, delivery_tag=b"x", settled=True)
        peer.transfer(transfer, bytes(Message("x").encode()), channel=channel)
        assert receiver.get()[0].body == "x"


def test_200_connections_at_once(router: RouterProcess, proton: ProtonPeers, address: str) -> None:
    connections = [proton.begin_connect(router.url()) for _ in range(200)]
    proton.until(lambda: all(c.is_open for c in connections), "all are open")
    receivers = [c.begin_receiver(f"{address}/{n}", 10) for n, c in enumerate(connections)]
    # each sends to its neighbour
    senders = [c.begin_sender(f"{address}/{(n + 1) % 200}") for n, c in enumerate(connections)]
    proton.until(lambda: all(s.link.credit > 0 for s in senders), "all senders have credit")
    sent = [sender.send(Message(n)) for n, sender in enumerate(senders) for _ in range(5)]
    proton.until(lambda: all(each.is_settled for each in sent), "everything is settled")
    assert [r.bodies() for r in receivers] == [[(n - 1) % 200] * 5 for n in range(200)]
    for connection in connections[:100]:
        connection.begin_close()
    proton.until(lambda: all(c.is_lost for c in connections[:100]), "half are closed")
    for n in range(100, 199):
        senders[n].send(Message("still here"))
    proton.until(
        lambda: all(len(r.received) == 6 for r in receivers[101:]), "the others still work"
    )
