"""A host from which most connections end before they are open: others are served first."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from router.amqp.framing import SASL_HEADER
from router.amqp.message import Data, Message, encode_message
from router.amqp.performatives import Transfer
from router.net.failing import MANY

from support.raw_peers import PATIENCE_S, RawPeer
from support.routers import RouterProcess, StartRouter

FAILING = "127.0.0.2"
BODY = encode_message(Message(body=(Data(b"x"),)))


@contextmanager
def messages(router: RouterProcess, address: str) -> Iterator[list[int]]:
    """Send message after message, each when the one before has come, until the block ends."""
    heard: list[int] = []
    is_over = threading.Event()

    def exchange() -> None:
        with RawPeer(router.port) as receiver, RawPeer(router.port) as sender:
            receiver.open()
            receiver.attach_receiver(address, 2**31 - 1)
            sender.open()
            sender.attach_sender(address)
            while not is_over.is_set():
                number = len(heard)
                sender.transfer(Transfer(0, number, b"%d" % number, 0, settled=True), BODY)
                receiver.hear_until(Transfer)
                heard.append(number)

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        yield heard
    finally:
        is_over.set()
        thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_others_are_served_first_and_nobody_is_locked_out(
    start_router: StartRouter, address: str
) -> None:
    router = start_router("[[listener]]\nport = 0\n")
    deadline = time.monotonic() + PATIENCE_S
    with messages(router, address) as heard:
        while "most connections end before they are open" not in router.log_text():
            assert time.monotonic() < deadline
            for _ in range(MANY):
                with RawPeer(router.port, host=FAILING) as failing:
                    failing.send(SASL_HEADER)
                    failing.header(SASL_HEADER)
        # what is new from there is slow, but it is served, as is who comes from elsewhere
        for host in (FAILING, "127.0.0.3"):
            with RawPeer(router.port, host=host) as peer:
                peer.open()
        before = len(heard)
        while len(heard) == before:
            assert time.monotonic() < deadline
    assert router.stop() == 0
    (line,) = router.warnings("most connections end before they are open")
    assert f"host={FAILING}" in line
