"""Whatever arrives at the port, a pair that talks through the router never notices."""

from __future__ import annotations

import random
from typing import Any

import pytest
from proton import Message

from router.amqp.framing import AMQP_HEADER, SASL_HEADER, encode_frame
from router.amqp.performatives import Attach, Begin, Close, Flow, Open, Source, Target, Transfer

from support.proton_peers import ProtonConnection, ProtonPeers, ProtonReceiver, ProtonSender
from support.raw_peers import RawPeer
from support.routers import RouterProcess

TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(range(189))


class Pair:
    """Two clients that exchange messages over connections of their own."""

    def __init__(self, router: RouterProcess, proton: ProtonPeers, address: str) -> None:
        self.connections: list[ProtonConnection] = [
            proton.connect(router.url()),
            proton.connect(router.url()),
        ]
        self.receiver: ProtonReceiver = self.connections[0].receiver(address, 100)
        self.receiver.renews = True
        self.sender: ProtonSender = self.connections[1].sender(address)
        self.count = 0

    def exchange(self, count: int) -> None:
        """Exchange some messages; each has to be accepted and to arrive once, in order."""
        for _ in range(count):
            assert self.sender.outcome(Message(self.count)).outcome == "accepted"
            self.count += 1
        assert self.receiver.bodies() == list(range(self.count))
        assert [connection.lost for connection in self.connections] == [0, 0]


@pytest.fixture
def pair(router: RouterProcess, proton: ProtonPeers, address: str) -> Pair:
    """Connect a pair of clients that exchange messages."""
    found = Pair(router, proton, address)
    found.exchange(5)
    return found


def random_octets(seed: int) -> bytes:
    """Octets as they come."""
    return random.Random(seed).randbytes(5000)


def frame(body: bytes) -> bytes:
    """Return a frame on channel 0 with a valid header."""
    return (len(body) + 8).to_bytes(4, "big") + b"\x02\x00\x00\x00" + body


OPENED = AMQP_HEADER + encode_frame(0, Open(container_id="bad"))
BEGUN = OPENED + encode_frame(
    0, Begin(next_outgoing_id=0, incoming_window=100, outgoing_window=100)
)

FIRST_OCTETS = {
    "random": random_octets(1),
    "more random": random_octets(2),
    "zeros": bytes(100_000),
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "tls": TLS_HELLO,
    "ssh": b"SSH-2.0-OpenSSH_9.2\r\n",
    "amqp 0-9-1": b"AMQP\x00\x00\x09\x01",
    "amqp 1.1": b"AMQP\x00\x01\x01\x00",
    "another protocol id": b"AMQP\x02\x01\x00\x00",
    "random after the sasl header": SASL_HEADER + random_octets(3),
    "a sasl frame of 1 GiB": SASL_HEADER + b"\x40\x00\x00\x00\x02\x01\x00\x00",
    "random after the header": AMQP_HEADER + random_octets(4),
    "a frame of 4 GiB": AMQP_HEADER + b"\xff\xff\xff\xff\x02\x00\x00\x00",
    "a frame of 7 octets": AMQP_HEADER + b"\x00\x00\x00\x07\x02\x00\x00\x00",
    "a frame with a header of 4 octets": AMQP_HEADER + b"\x00\x00\x00\x10\x01\x00\x00\x00" * 2,
    "an oversize frame after open": OPENED + b"\x00\x01\x00\x01\x02\x00\x00\x00",
    "another frame type": OPENED + b"\x00\x00\x00\x10\x02\x05\x00\x00" + bytes(8),
    "begin before open": AMQP_HEADER + BEGUN[len(OPENED) :],
    "open twice": OPENED + OPENED[8:],
    "a frame on a channel without a session": OPENED
    + encode_frame(9, Transfer(handle=0, delivery_id=0, delivery_tag=b"x")),
    "random in a frame": OPENED + b"\x00\x00\x13\x90\x02\x00\x00\x00" + random_octets(5),
    "a begin with a list for a number": OPENED + frame(b"\x00\x53\x11\xc0\x02\x01\x45"),
    "descriptors of descriptors": OPENED + frame(b"\x00" * 5000),
    "a list of 4 billion": OPENED + frame(b"\x00\x53\x11\xd0\xff\xff\xff\xff\xff\xff\xff\xff"),
    "a list that ends beyond its frame": OPENED + frame(b"\x00\x53\x11\xc0\x40\x04\x40"),
    "no performative": OPENED + frame(b"\x00\x53\x99\x45"),
}


@pytest.mark.parametrize("name", FIRST_OCTETS)
@pytest.mark.spec("B2.3.4-2")
def test_octets_that_end_their_connection_end_no_other(
    router: RouterProcess, pair: Pair, name: str
) -> None:
    with RawPeer(router.port) as bad:
        bad.send(FIRST_OCTETS[name])
        pair.exchange(5)
        # the router closes it: with an error where it got as far as that
        answer = bad.rest()
        if FIRST_OCTETS[name].startswith(OPENED):
            assert b"amqp:" in answer
    pair.exchange(5)


def test_every_first_octet_is_answered(router: RouterProcess, pair: Pair) -> None:
    for first in range(256):
        with RawPeer(router.port) as bad:
            bad.send(bytes([first]) * 16)
            bad.rest()
    pair.exchange(5)


def test_truncated_conversations_leave_nothing(router: RouterProcess, pair: Pair) -> None:
    """Connections that end anywhere in what begins well."""
    attach = Attach(
        name="x",
        handle=0,
        role=False,
        source=Source(),
        target=Target(address="bad-input"),
        initial_delivery_count=0,
    )
    whole = BEGUN + encode_frame(0, attach)
    for end in range(0, len(whole), 3):
        with RawPeer(router.port) as bad:
            bad.send(whole[:end])
    pair.exchange(5)


@pytest.mark.spec("B2.3.4-1")
def test_an_error_ends_the_smallest_scope(
    router: RouterProcess, proton: ProtonPeers, pair: Pair, address: str
) -> None:
    receiver = proton.connect(router.url()).receiver(f"{address}/other", 10)
    with RawPeer(router.port) as bad:
        bad.open()
        second = Begin(next_outgoing_id=0, incoming_window=100, outgoing_window=100)
        bad.say(second, channel=1)
        bad.hear_until(Begin)
        bad.attach_sender(f"{address}/other", channel=1)
        # a flow for a handle that is not there ends its session, and not the other one
        flow: dict[str, Any] = {
            "next_incoming_id": 0,
            "incoming_window": 100,
            "next_outgoing_id": 0,
            "outgoing_window": 100,
        }
        bad.say(Flow(handle=77, link_credit=1, delivery_count=0, **flow), channel=0)
        ended = bad.hear()
        assert ended.error.condition == "amqp:session:unattached-handle"
        transfer = Transfer(handle=0, delivery_id=0, delivery_tag=b"x", settled=True)
        bad.transfer(transfer, bytes(Message("x").encode()), channel=1)
        assert receiver.get()[0].body == "x"
        bad.say(Close())
        bad.hear_until(Close)
    pair.exchange(5)


def test_a_sender_beyond_its_credit_is_detached(
    router: RouterProcess, proton: ProtonPeers, pair: Pair, address: str
) -> None:
    receiver = proton.connect(router.url()).receiver(f"{address}/other", 3, accept=False)
    with RawPeer(router.port) as bad:
        bad.open()
        bad.attach_sender(f"{address}/other")
        for n in range(2000):
            transfer = Transfer(handle=0, delivery_id=n, delivery_tag=b"%d" % n)
            bad.transfer(transfer, bytes(Message(n).encode()))
        receiver.get(3)
        pair.exchange(5)
    assert len(receiver.received) == 3


def test_a_crowd_of_bad_clients_at_once(router: RouterProcess, pair: Pair) -> None:
    bad = [RawPeer(router.port) for _ in range(100)]
    for number, peer in enumerate(bad):
        peer.send(list(FIRST_OCTETS.values())[number % len(FIRST_OCTETS)])
    pair.exchange(20)
    for peer in bad:
        peer.rest()
        peer.socket.close()
    pair.exchange(5)
