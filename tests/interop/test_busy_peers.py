"""Peers that send and receive, and have more waiting in the router than it likes to hold."""

from __future__ import annotations

from router.amqp.message import Data, Message, encode_message
from router.amqp.performatives import Flow, Transfer

from support.raw_peers import RawPeer
from support.routers import StartRouter

WIDE = 2**31 - 1
# two of these are more than a connection's buffer
BODY = encode_message(Message(body=(Data(bytes(50_000)),)))


def window(peer: RawPeer, received: int, frames: int) -> None:
    """Tell how many frames came, and how many more may come."""
    peer.say(
        Flow(
            next_incoming_id=received,
            incoming_window=frames,
            next_outgoing_id=0,
            outgoing_window=WIDE,
        )
    )


def send(peer: RawPeer, number: int) -> None:
    """Send a message on the link with handle 1."""
    transfer = Transfer(1, number, b"%d" % number, 0, settled=True)
    peer.transfer(transfer, BODY)


def test_two_peers_that_fill_the_router_for_each_other(routers: StartRouter, address: str) -> None:
    """Each has to be heard, though its messages wait, for only its flow lets the other's leave."""
    router = routers("[[listener]]\nport = 0\nconnectionBufferBytes = 65536\n")
    with RawPeer(router.port) as one, RawPeer(router.port) as other:
        for peer, name in ((one, "one"), (other, "other")):
            peer.open()
            peer.attach_receiver(f"{address}/{name}", 100)
            window(peer, 0, 1)
        one.attach_sender(f"{address}/other", handle=1)
        other.attach_sender(f"{address}/one", handle=1)
        for peer, to in ((one, other), (other, one)):
            send(peer, 0)
            to.hear_until(Transfer)
        for number in (1, 2):
            for peer in (one, other):
                send(peer, number)
        # what was sent before a round trip of another has been read by now, if it is read at all
        with RawPeer(router.port) as third:
            third.open()
            third.attach_receiver(f"{address}/third", 1)
        for peer in (one, other):
            window(peer, 1, WIDE)
        for peer in (one, other):
            for _ in (1, 2):
                peer.hear_until(Transfer)
