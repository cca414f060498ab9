"""One large message from Qpid Proton's Python client to another, through a running router.

    python tests/bench/large_message.py [--url amqp://127.0.0.1:5672] [--size 20000000] [--times 3]

Prints how long each message took, and how much processor time of that its sender and its receiver
used. Each is a process of its own, as two programs would be.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from multiprocessing.connection import Connection
from typing import Any

from proton import Message
from proton.utils import BlockingConnection

ADDRESS = "bench/large-message"
PATIENCE_S = 300


def send(url: str, size: int, answers: Connection) -> None:
    """Send a message; answer with the seconds that it took and those of the processor."""
    connection = BlockingConnection(url, timeout=PATIENCE_S)
    sender = connection.create_sender(ADDRESS)
    message = Message(body=bytes(size))
    began, spent = time.monotonic(), time.process_time()
    sender.send(message)
    answers.send((time.monotonic() - began, time.process_time() - spent))
    connection.close()


def receive(url: str, size: int, answers: Connection) -> None:
    """Receive a message; answer once ready for it, and then with the processor's seconds."""
    connection = BlockingConnection(url, timeout=PATIENCE_S)
    receiver: Any = connection.create_receiver(ADDRESS, credit=10)
    answers.send(None)
    spent = time.process_time()
    body = receiver.receive().body
    receiver.accept()
    if len(body) != size:
        raise ValueError(f"{len(body)} octets have arrived of {size}")
    answers.send(time.process_time() - spent)
    connection.close()


def once(url: str, size: int) -> tuple[float, float, float]:
    """Let one message pass: the seconds that it took, and those of sender and receiver."""
    ours, theirs = multiprocessing.Pipe()
    receiving = multiprocessing.Process(target=receive, args=(url, size, theirs))
    receiving.start()
    try:
        ours.recv()
        here, there = multiprocessing.Pipe()
        sending = multiprocessing.Process(target=send, args=(url, size, there))
        sending.start()
        took_s, sender_s = here.recv()
        sending.join()
        receiver_s = ours.recv()
    finally:
        receiving.join()
    return took_s, sender_s, receiver_s


def main() -> None:
    """Send some messages, one after the other."""
    parser = argparse.ArgumentParser(description="Time one large message between Proton's clients.")
    parser.add_argument("--url", default="amqp://127.0.0.1:5672")
    parser.add_argument("--size", type=int, default=20_000_000, help="octets (20,000,000)")
    parser.add_argument("--times", type=int, default=3)
    chosen = parser.parse_args()
    print("| octets | s | sender's processor, s | receiver's processor, s |\n|---|---|---|---|")
    for _ in range(chosen.times):
        took_s, sender_s, receiver_s = once(chosen.url, chosen.size)
        print(f"| {chosen.size:,} | {took_s:.2f} | {sender_s:.2f} | {receiver_s:.2f} |", flush=True)


if __name__ == "__main__":
    main()
