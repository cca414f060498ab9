r"""What TLS costs: routers with and without it, beside a relay on `trio.SSLStream`.

    python tests/bench/encrypted.py --trioute compiled=.venv-test/bin \
        --command 'other=other-router --listen 127.0.0.1:{port} --certificate {certificate}'

`make bench-tls` measures the build in .venv-test. All systems take turns on the same loads.
"""

from __future__ import annotations

import argparse
import shlex
import socket
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import generator, layout, machine, measure, report, scenarios, systems

HERE: Final = Path(__file__).parent
NAMES: Final = (
    "100 B, credit 1000",
    "100 B, credit 100",
    "100 B, ping-pong",
    "10 kB, credit 1000",
    "10 kB, credit 100",
    "100 kB, credit 100",
)
GOAL: Final = 1.5
# Handshakes of each client, and clients at a time.
HANDSHAKES: Final = 100
CLIENTS: Final = 4
BEGIN: Final = "<!-- tls: begin (written by tests/bench, do not edit) -->"
END: Final = "<!-- tls: end -->"


@attrs.frozen
class Encrypted(systems.System):
    """A system that is reached with TLS."""

    certificate: str = ""

    def arguments(self) -> list[str]:
        """Options that lead the load generator here."""
        return [*super().arguments(), "--tls", "--certificate", self.certificate]


@contextmanager
def relay(certificate: str) -> Iterator[Encrypted]:
    """Run the floor: `tls_relay.py` under this interpreter."""
    port, direct_port = systems.free_port(), systems.free_port()
    words = [str(port), str(direct_port), certificate]
    with systems.started([sys.executable, "-P", str(HERE / "tls_relay.py"), *words], port) as pid:
        yield Encrypted("relay, TLS", "floor", port, pid, direct_port, certificate=certificate)


@contextmanager
def trioute(label: str, bin_directory: Path, work: Path, certificate: str) -> Iterator[list[Any]]:
    """Run a router with a listener of each kind."""
    port = systems.free_port()
    more = systems.WITH_TLS.format(tls_port=port, certificate=certificate)
    with systems.trioute(label, bin_directory, work, more) as plain:
        secured = Encrypted(f"{label}, TLS", "trioute", port, plain.pid, certificate=certificate)
        yield [attrs.evolve(plain, container_port=0), secured]


@contextmanager
def command(label: str, line: str, certificate: str) -> Iterator[Encrypted]:
    """Run another router, of which `{port}` is to use TLS with the certificate."""
    port = systems.free_port()
    words = shlex.split(line.format(port=port, certificate=certificate))
    with systems.started(words, port) as pid:
        yield Encrypted(f"{label}, TLS", "other", port, pid, certificate=certificate)


@attrs.frozen
class Handshakes:
    """Processor time of a system for one handshake, and how many it completed in a second."""

    cpu_us: float
    per_s: float


def shake_hands(port: int, count: int) -> None:
    """Complete handshakes, without resumption, one after another."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for _ in range(count):
        with (
            socket.create_connection((systems.HOST, port)) as sock,
            context.wrap_socket(sock) as secured,
        ):
            secured.sendall(b"AMQP\x03\x01\x00\x00")
            secured.recv(64)


def handshakes(system: Encrypted) -> Handshakes:
    """Measure handshakes of several clients at a time, which run on the same machine."""
    before, began = machine.cpu_s(system.pid), time.monotonic()
    with ThreadPoolExecutor(CLIENTS) as clients:
        for each in [clients.submit(shake_hands, system.port, HANDSHAKES) for _ in range(CLIENTS)]:
            each.result()
    took_s = time.monotonic() - began
    # what comes after the last client has gone
    time.sleep(1)
    cpu_us = (machine.cpu_s(system.pid) - before) / (CLIENTS * HANDSHAKES) * 1e6
    return Handshakes(cpu_us, CLIENTS * HANDSHAKES / took_s)


def median(values: list[Handshakes]) -> Handshakes:
    """Return the medians of several measurements."""
    return Handshakes(
        statistics.median(each.cpu_us for each in values),
        statistics.median(each.per_s for each in values),
    )


def main() -> None:
    """Measure, print the tables, and write them into a page if that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trioute", action="append", default=[], metavar="LABEL=BIN")
    parser.add_argument("--command", action="append", default=[], metavar="LABEL=LINE")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--write-docs", type=Path, metavar="PAGE")
    given = parser.parse_args()
    chosen = tuple(each for each in scenarios.SCENARIOS if each.name in NAMES)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        work = Path(name)
        certificate = systems.certificate(work)
        bench = measure.Bench(generator.build(work), given.scale)
        measured: list[Any] = [
            stack.enter_context(systems.relay()),
            stack.enter_context(relay(certificate)),
        ]
        for text in given.trioute:
            label, _, folder = text.partition("=")
            measured += stack.enter_context(trioute(label, Path(folder), work, certificate))
        for text in given.command:
            label, _, line = text.partition("=")
            measured.append(stack.enter_context(command(label, line, certificate)))
        bench.run_all(measured, chosen, given.repeats)
        shakes = {
            each.label: median([handshakes(each) for _ in range(given.repeats)])
            for each in measured
            if isinstance(each, Encrypted) and each.kind != "floor"
        }
    text = tables(bench, [each.label for each in measured], shakes, given.repeats)
    print(text)
    if given.write_docs:
        report.write_section(given.write_docs, text, BEGIN, END)


def tables(
    bench: measure.Bench, labels: list[str], shakes: dict[str, Handshakes], repeats: int
) -> str:
    """Return the tables of a report."""
    found = {(row["system"], row["scenario"]): row.get("cpu_us") for row in bench.summary()}

    def shown(label: str, name: str) -> str:
        value = found.get((label, name))
        return "-" if value is None else f"{value:.3g}"

    def ratio(label: str, name: str) -> str:
        value, floor = found.get((label, name)), found.get(("relay, TLS", name))
        if not value or not floor:
            return "-"
        return f"{value / floor:.2f} {'met' if value / floor <= GOAL else 'NOT MET'}"

    secured = [each for each in labels if each.endswith(", TLS") and each != "relay, TLS"]
    facts = {"machine": machine.facts(), "systems": [], "repeats": repeats}
    return "\n\n".join(
        (
            layout.machine_line(facts),
            "**Processor time for each delivered message, µs**",
            layout.table(["", *labels], [[n, *(shown(each, n) for each in labels)] for n in NAMES]),
            f"**As a multiple of the relay with TLS** (goal of a router: ≤ {GOAL})",
            layout.table(
                ["", *secured], [[n, *(ratio(each, n) for each in secured)] for n in NAMES]
            ),
            f"**New connections with TLS** (RSA 2048, {CLIENTS} clients on the same machine)",
            layout.table(
                ["", *shakes],
                [
                    ["a second", *(f"{each.per_s:.0f}" for each in shakes.values())],
                    [
                        "processor time for each, µs",
                        *(f"{each.cpu_us:.0f}" for each in shakes.values()),
                    ],
                ],
            ),
        )
    )


if __name__ == "__main__":
    main()
