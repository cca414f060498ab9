"""Demonstration of telemetry, from routers with faults to a report: `make demo-pipeline`.

berlin and madrid are connected through paris, and directly at a higher cost. Each router writes
flow records, events and all deliveries. Orders are sent at berlin, invoices at paris, and both are
received at madrid. After a while without faults, the receiver of orders begins to reject every
third one, and paris is killed and started again. Spark prints the losses and who decided them, and
writes a report as HTML, which compares the second half with the first.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import subprocess
import sys
import tempfile
import time
import webbrowser
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import click
import trio
from processes import Router, joined

from router.client import (
    AmqpValue,
    ClientConnection,
    ClientError,
    Message,
    connect,
    connect_management,
)

NAMES: Final = ("berlin", "paris", "madrid")
LINES: Final = (("berlin", "paris", 1), ("paris", "madrid", 1), ("berlin", "madrid", 5))
NODES: Final = "org.apache.qpid.dispatch.router.node"
PAUSE_S: Final = 0.005
PATIENCE_S: Final = 60.0
EXPORTER: Final = """
[[plugin]]
plugin = "telemetry"
settings = {{ directory = "{directory}", intervalSeconds = 1, rotateSeconds = 2, sampleShare = 1 }}
"""


class Demonstration:
    """Routers of the demonstration, and their clients."""

    def __init__(self, folder: Path, directory: Path, phase_s: float) -> None:
        self.routers = joined(folder, NAMES, LINES, EXPORTER.format(directory=directory))
        self.phase_s = phase_s
        self.rejects = False
        self.outcomes: dict[str, int] = {}
        self._accepted: dict[str, trio.Event] = {}
        self._begun = time.monotonic()

    def say(self, text: str, *, loudly: bool = False) -> None:
        """Print a line with the time since the start."""
        line = f"{time.monotonic() - self._begun:6.2f} s {'**' if loudly else '  '} {text}"
        click.secho(line, bold=loudly, fg="green" if loudly else None)

    async def run(self) -> tuple[datetime, datetime]:
        """Run the demonstration; return the times at which the faults began and all ended."""
        for router in self.routers.values():
            router.start()
        self.say(f"three routers begin: {', '.join(NAMES)}", loudly=True)
        await self._until_joined()
        async with trio.open_nursery() as nursery:
            for address in ("orders", "invoices"):
                work = partial(self._receive, address)
                nursery.start_soon(self._keep, "madrid", f"{address}-receiver", work)
            for name, address in (("berlin", "orders"), ("paris", "invoices")):
                work = partial(self._send, address)
                nursery.start_soon(self._keep, name, f"{address}-sender", work)
            nursery.start_soon(self._tell)
            await self._until_accepted("orders", "invoices")
            await trio.sleep(2 * self.phase_s)
            began = datetime.now(UTC)
            self.say("the receiver of orders begins to reject every third one", loudly=True)
            self.rejects = True
            await trio.sleep(self.phase_s)
            self.say("paris is killed (SIGKILL), and started again", loudly=True)
            self.routers["paris"].kill()
            self.routers["paris"].start()
            await self._until_accepted("invoices")
            await trio.sleep(self.phase_s)
            nursery.cancel_scope.cancel()
        self.say("the routers stop, and write what is in memory", loudly=True)
        for router in self.routers.values():
            await trio.to_thread.run_sync(router.stop)
        return began, datetime.now(UTC)

    async def _until_joined(self) -> None:
        with trio.fail_after(PATIENCE_S):
            while True:
                try:
                    async with connect_management(self.routers["berlin"].url) as management:
                        table = await management.query(
                            "org.apache.qpid.dispatch.router.node", ["id"]
                        )
                        if len(list(table.entities())) == len(NAMES):
                            return
                except ClientError:
                    pass
                await trio.sleep(0.1)

    async def _until_accepted(self, *addresses: str) -> None:
        """Wait until a message to each of these addresses is accepted from now on."""
        self._accepted = {address: trio.Event() for address in addresses}
        with trio.fail_after(PATIENCE_S):
            for accepted in self._accepted.values():
                await accepted.wait()

    async def _keep(
        self, router: str, container: str, work: Callable[[ClientConnection], Awaitable[None]]
    ) -> None:
        while True:
            try:
                url = self.routers[router].url
                async with connect(url, container_id=container, timeout_s=5) as connection:
                    await work(connection)
            except ClientError:
                await trio.sleep(0.1)

    async def _send(self, address: str, connection: ClientConnection) -> None:
        sender = await connection.open_sender(address, window=200)
        sender.on_settled = lambda sending: self._count(
            address, type(sending.outcome).__name__.lower()
        )
        number = 0
        while True:
            await sender.wait_for_room()
            sender.send_nowait(Message(body=(AmqpValue(number),)))
            number += 1
            await trio.sleep(PAUSE_S)

    def _count(self, address: str, outcome: str) -> None:
        if outcome == "accepted" and address in self._accepted:
            self._accepted[address].set()
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    async def _receive(self, address: str, connection: ClientConnection) -> None:
        number = 0
        async for received in await connection.open_receiver(address, credit=200):
            number += 1
            if address == "orders" and self.rejects and number % 3 == 0:
                received.reject()
            else:
                received.accept()

    async def _tell(self) -> None:
        while True:
            await trio.sleep(min(2.0, self.phase_s))
            told = ", ".join(f"{count:,} {name}" for name, count in sorted(self.outcomes.items()))
            self.say(f"outcomes so far: {told}")


def analyse(directory: Path, began: datetime, ended: datetime, page: Path) -> int:
    """Run Spark jobs on the telemetry, until one fails; return the exit code of the last."""
    spark = [sys.executable, "-P", "-m", "router_spark"]
    period = ["--from", _text(began), "--to", _text(ended)]
    commands = [
        ["validate", str(directory)],
        ["losses", str(directory), *period],
        ["report", str(directory), *period, "--page", str(page)],
    ]
    for number, arguments in enumerate(commands, 1):
        click.secho(
            f"{number} of {len(commands)}: trioute-spark {' '.join(arguments)}",
            bold=True,
            fg="green",
        )
        done = subprocess.run([*spark, *arguments], check=False)
        if done.returncode:
            return done.returncode
    return 0


def _text(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def main() -> int:
    """Run the demonstration, open its report, and return the exit code."""
    parser = argparse.ArgumentParser(description="From routers to a report of their traffic.")
    parser.add_argument(
        "--phase", type=float, default=10.0, metavar="SECONDS", help="how long each phase lasts"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("demo-pipeline"),
        help="where telemetry and report are written (demo-pipeline)",
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open the report")
    arguments = parser.parse_args()
    if importlib.util.find_spec("router_spark") is None:
        print("trioute-spark is not installed here: use `make demo-pipeline`", file=sys.stderr)
        return 2
    out: Path = arguments.out.absolute()
    if out.exists() and any(out.iterdir()):
        print(f"{out} is not empty: remove it, or choose another --out", file=sys.stderr)
        return 2
    out.mkdir(parents=True, exist_ok=True)
    directory, page = out / "telemetry", out / "report.html"
    with tempfile.TemporaryDirectory() as folder:
        demonstration = Demonstration(Path(folder), directory, arguments.phase)
        period = None
        try:
            period = trio.run(demonstration.run)
        except* trio.TooSlowError:
            print(f"no message passed the routers within {PATIENCE_S:g} s", file=sys.stderr)
            _show_logs(demonstration.routers.values())
        finally:
            for router in demonstration.routers.values():
                with contextlib.suppress(ProcessLookupError):
                    router.kill()
    if period is None:
        return 1
    status = analyse(directory, *period, page)
    if status == 0:
        click.secho(f"the report: {page.as_uri()}", bold=True, fg="green")
        if not arguments.no_browser:
            webbrowser.open(page.as_uri())
    return status


def _show_logs(routers: Iterable[Router]) -> None:
    for router in routers:
        print(router.log.read_text(encoding="utf-8")[-2000:], file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
