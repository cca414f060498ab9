"""Demonstration of the failure of one of three routers: `make demo-network`.

berlin and madrid are connected through paris, and directly at a higher cost. Orders are sent at
berlin and received at madrid; news is sent at madrid and received everywhere; a client at berlin
sends requests to a service at madrid, which replies to the client's dynamic address. Then paris is
killed with SIGKILL, and later started again. The events are printed. The exit code is 0 if every
order has an outcome, and each accepted one was received exactly once, and otherwise 1.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs
import click
import trio
from processes import joined

from router.amqp.message import Message
from router.amqp.performatives import Accepted, Modified, Rejected, Released
from router.amqp.sections import AmqpValue, Properties
from router.client import (
    ClientError,
    ManagementClient,
    NoResponse,
    ReceivedMessage,
    RequestRefused,
    connect,
    connect_management,
)

NAMES: Final = ("berlin", "paris", "madrid")
# the router that connects, the one that it connects to, and the cost
LINES: Final = (("berlin", "paris", 1), ("paris", "madrid", 1), ("berlin", "madrid", 5))
PAUSE_S: Final = 0.002
PATIENCE_S: Final = 60.0
NAMES_OF_OUTCOMES: Final = {
    Accepted: "accepted",
    Rejected: "rejected",
    Released: "released",
    Modified: "modified",
}


@attrs.define
class Ledger:
    """Record of numbered messages, sent and received.

    `told` has the outcome that the sender got, by number, and `came` how often each was received.
    """

    sent: int = 0
    told: dict[int, str] = attrs.Factory(dict)
    came: Counter[int] = attrs.Factory(Counter)

    def faults(self) -> list[str]:
        """Return descriptions of what went wrong."""
        lost = [n for n, word in self.told.items() if word == "accepted" and not self.came[n]]
        twice = [n for n, word in self.told.items() if word == "accepted" and self.came[n] > 1]
        untold = self.sent - len(self.told)
        counts = {"accepted but lost": len(lost), "accepted but doubled": len(twice)}
        counts["without an outcome"] = untold
        return [f"{count} {what}" for what, count in counts.items() if count]

    def __str__(self) -> str:
        words = Counter(self.told.values())
        outcomes = ", ".join(f"{count:,} {word}" for word, count in sorted(words.items()))
        return f"{self.sent:,} sent: {outcomes or 'none has an outcome yet'}"


class Demonstration:
    """Routers and clients of the demonstration, and what these have observed."""

    def __init__(self, folder: Path, phase_s: float) -> None:
        news = '[[address]]\nprefix = "news"\ndistribution = "multicast"\n'
        self.routers = joined(folder, NAMES, LINES, news)
        self.phase_s = phase_s
        self.orders = Ledger()
        self.news: Counter[str] = Counter()
        self.answers = 0
        self.way = ""
        self.way_changed = trio.Event()
        # set to stop sending orders; and set when every one has its outcome
        self.stopping = trio.Event()
        self.settled = trio.Event()
        self._begun = time.monotonic()

    def say(self, text: str, *, loudly: bool = False) -> None:
        """Print a line with the time since the start."""
        line = f"{time.monotonic() - self._begun:6.2f} s {'**' if loudly else '  '} {text}"
        click.secho(line, bold=loudly, fg="green" if loudly else None)

    # Clients. Each reconnects until the demonstration ends.

    async def _keep(self, router: str, work: Callable[[Any], Awaitable[None]]) -> None:
        while True:
            try:
                async with connect(self.routers[router].url, timeout_s=5) as connection:
                    await work(connection)
            except ClientError:
                await trio.sleep(0.1)

    async def send_orders(self, connection: Any) -> None:
        """Send numbered orders, and record the outcome of each."""
        sender = await connection.open_sender("orders", window=200)
        numbers: dict[Any, int] = {}

        def settled(sending: Any) -> None:
            word = NAMES_OF_OUTCOMES.get(type(sending.outcome), "settled")
            self.orders.told[numbers.pop(sending)] = word

        sender.on_settled = settled
        while not self.stopping.is_set():
            await sender.wait_for_room()
            number = self.orders.sent
            self.orders.sent += 1
            numbers[sender.send_nowait(Message(body=(AmqpValue(number),)))] = number
            await trio.sleep(PAUSE_S)
        await sender.wait_until_settled()
        self.settled.set()
        await trio.sleep_forever()

    async def receive_orders(self, connection: Any) -> None:
        """Accept every order."""
        async for received in await connection.open_receiver("orders", credit=200):
            self.orders.came[_value(received)] += 1
            received.accept()

    async def send_news(self, connection: Any) -> None:
        """Send news, five times a second."""
        sender = await connection.open_sender("news")
        while True:
            await sender.send(Message(body=(AmqpValue("news"),)))
            await trio.sleep(0.2)

    async def receive_news(self, router: str, connection: Any) -> None:
        """Count the news that is received at a router."""
        async for received in await connection.open_receiver("news"):
            received.accept()
            self.news[router] += 1

    async def serve(self, connection: Any) -> None:
        """Reply to each request."""
        answers = await connection.open_sender(None)
        async for received in await connection.open_receiver("service"):
            to = received.message.properties.reply_to
            answers.send_nowait(Message(properties=Properties(to=to), body=(AmqpValue("yes"),)))
            received.accept()

    async def ask(self, connection: Any) -> None:
        """Send requests one by one, and wait up to 2 s for each reply."""
        answers = await connection.open_receiver(None)
        sender = await connection.open_sender("service")
        request = Message(properties=Properties(reply_to=answers.address), body=(AmqpValue("?"),))
        while True:
            await sender.send(request)
            with trio.move_on_after(2):
                (await answers.receive()).accept()
                self.answers += 1
            await trio.sleep(0.05)

    # Observation of the network.

    async def watch_way(self) -> None:
        """Follow the path from berlin to madrid, and print its changes."""
        while True:
            try:
                async with connect_management(self.routers["berlin"].url) as management:
                    while True:
                        await self._look(management)
                        await trio.sleep(0.02)
            except (ClientError, NoResponse, RequestRefused):
                await trio.sleep(0.1)

    async def _look(self, management: ManagementClient) -> None:
        names = ["id", "nextHop", "cost"]
        table = await management.query("org.apache.qpid.dispatch.router.node", names)
        nodes = {node["id"]: node for node in table.entities()}
        way = _way_to("madrid", nodes)
        if way != self.way:
            self.way = way
            self.way_changed.set()
            self.way_changed = trio.Event()
            self.say(f"way from berlin to madrid: {way}")

    async def until_way(self, text: str) -> None:
        """Wait until the path is `text`."""
        while self.way != text:
            await self.way_changed.wait()

    async def tell(self) -> None:
        """Print the counts once a second."""
        while True:
            await trio.sleep(min(1.0, self.phase_s))
            news = ", ".join(f"{self.news[name]} at {name}" for name in NAMES)
            self.say(f"orders: {self.orders}; news: {news}; requests answered: {self.answers:,}")

    # The course of events.

    async def run(self) -> list[str]:
        """Run the demonstration; return what went wrong with orders."""
        through, past = "berlin, paris, madrid (cost 2)", "berlin, madrid (cost 5)"
        for router in self.routers.values():
            router.start()
        self.say(f"three routers begin: {', '.join(NAMES)}", loudly=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.watch_way)
            with trio.fail_after(PATIENCE_S):
                await self.until_way(through)
            nursery.start_soon(self._keep, "madrid", self.receive_orders)
            nursery.start_soon(self._keep, "madrid", self.serve)
            for name in NAMES:
                nursery.start_soon(self._keep, name, partial(self.receive_news, name))
            nursery.start_soon(self._keep, "berlin", self.send_orders)
            nursery.start_soon(self._keep, "madrid", self.send_news)
            nursery.start_soon(self._keep, "berlin", self.ask)
            nursery.start_soon(self.tell)
            await trio.sleep(self.phase_s)
            self.say("paris is killed (SIGKILL); nobody is told", loudly=True)
            killed_at = time.monotonic()
            self.routers["paris"].kill()
            with trio.fail_after(PATIENCE_S):
                await self.until_way(past)
            took_ms = (time.monotonic() - killed_at) * 1000
            self.say(f"found within {took_ms:.0f} ms", loudly=True)
            await trio.sleep(self.phase_s)
            self.say("paris is started again", loudly=True)
            self.routers["paris"].start()
            with trio.fail_after(PATIENCE_S):
                await self.until_way(through)
            await trio.sleep(self.phase_s)
            self.stopping.set()
            with trio.move_on_after(PATIENCE_S):
                await self.settled.wait()
            nursery.cancel_scope.cancel()
        self.say(f"the end. orders: {self.orders}", loudly=True)
        return self.orders.faults()


def _value(received: ReceivedMessage) -> int:
    body = received.message.body[0]
    assert isinstance(body, AmqpValue)
    return int(body.value)


def _way_to(router: str, nodes: dict[str, dict[str, Any]]) -> str:
    node = nodes.get(router)
    if node is None or node.get("cost") is None:
        return "none"
    via = node.get("nextHop")
    hops = ["berlin", router] if via is None else ["berlin", via, router]
    return f"{', '.join(hops)} (cost {node['cost']})"


def main() -> int:
    """Run the demonstration, print its result, and return the exit code."""
    parser = argparse.ArgumentParser(description="Three routers, and one that dies.")
    parser.add_argument(
        "--phase", type=float, default=6.0, metavar="SECONDS", help="how long each phase lasts"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        demonstration = Demonstration(Path(folder), arguments.phase)
        try:
            faults = trio.run(demonstration.run)
        except* trio.TooSlowError:
            faults = [f"waited {PATIENCE_S:g} s in vain for another way"]
            for router in demonstration.routers.values():
                print(router.log.read_text(encoding="utf-8")[-2000:], file=sys.stderr)
        except* KeyboardInterrupt:
            faults = ["interrupted"]
        finally:
            for router in demonstration.routers.values():
                with contextlib.suppress(ProcessLookupError):
                    router.kill()
    for fault in faults:
        print(f"not as it should be: {fault}", file=sys.stderr)
    if not faults:
        print("every message has become what its sender was told")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
