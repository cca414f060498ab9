"""A host from which most connections end before they are open: others are served first."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from router.amqp.framing import SASL_HEADER
from router.amqp.message import Data, Message, encode_message
from router.amqp.performatives import Transfer

from support.raw_peers import PATIENCE_S, RawPeer
from support.routers import RouterProcess, StartRouter

FAILING = "127.0.0.2"
FAILS = "most connections end before they are open"
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


@contextmanager
def attack(router: RouterProcess) -> Iterator[None]:
    """Connect from the failing host, and never open a connection, until the block ends."""
    is_over = threading.Event()

    def connect_again_and_again() -> None:
        while not is_over.is_set():
            with RawPeer(router.port, host=FAILING) as failing, suppress(EOFError, OSError):
                failing.send(SASL_HEADER)
                failing.header(SASL_HEADER)

    threads = [threading.Thread(target=connect_again_and_again) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join(PATIENCE_S)


def opened(router: RouterProcess, host: str) -> bool:
    """Return whether a client of a host can open a connection."""
    with RawPeer(router.port, host=host) as peer, suppress(EOFError, OSError):
        peer.open()
        return True
    return False


def test_others_are_served_first_and_nobody_is_locked_out(
    start_router: StartRouter, address: str
) -> None:
    router = start_router("[[listener]]\nport = 0\n")
    deadline = time.monotonic() + PATIENCE_S
    with messages(router, address) as heard, attack(router):
        while FAILS not in router.log_text():
            assert time.monotonic() < deadline
        assert opened(router, "127.0.0.3")
        # what is new from the same host is served as well, in the end
        while not opened(router, FAILING):
            assert time.monotonic() < deadline
        before = len(heard)
        while len(heard) == before:
            assert time.monotonic() < deadline
    assert router.stop() == 0
    assert f"host={FAILING}" in router.warnings(FAILS)[0]
