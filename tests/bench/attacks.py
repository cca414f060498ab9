r"""Latency of a client's messages, with and without attacks on the router.

    python tests/bench/attacks.py --trioute compiled=.venv-test/bin \
        --command 'other=other-router {port} {tls_port} {certificate}'

`make bench-attacks` measures the build in .venv-test. A client sends one message at a time, and
measures the latency of each: before each attack without one, because machines become faster and
slower, then under the attack. Attackers compete with the client for the processors, so each attack
is also aimed at another router on the same machine.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import attrs
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import attackers, generator, layout, machine, report, systems
from router.config.users import hash_password

HERE: Final = Path(__file__).parent
MESSAGES: Final = 20_000
GOAL: Final = 2.0
# An attack lasts this long before the client begins, so that its connections have piled up.
LEAD_S: Final = 1.0
MORE: Final = f"""{systems.WITH_TLS}
[[listener]]
name = "web"
port = {{web}}
http = true
websockets = true

[[listener]]
name = "users"
port = {{users}}
saslMechanisms = ["PLAIN"]
usersFile = "{{work}}/users"

[[claims]]
name = "tokens"
audiences = "bench"
publicKeyFile = "{{work}}/public.pem"

[[listener]]
name = "claims"
port = {{claims}}
claims = "tokens"
saslMechanisms = ["ANONYMOUS"]

[[listener]]
name = "routers"
port = {{routers}}
role = "inter-router"

[[listener]]
name = "edges"
port = {{edges}}
role = "edge"
"""
BEGIN: Final = "<!-- attacks: begin (written by tests/bench, do not edit) -->"
END: Final = "<!-- attacks: end -->"
# The listeners that attacks are aimed at, if not at the ordinary one.
LISTENERS: Final = {
    "half a TLS record": "tls",
    "TLS handshakes": "tls",
    "random TLS records": "tls",
    "changes of TLS keys": "tls",
    "half a request": "web",
    "a WebSocket without AMQP": "web",
    "refused WebSockets": "web",
    "wrong passwords": "users",
    "refused links": "claims",
    "forged tokens": "claims",
    "addresses of a router": "routers",
    "link states of a router": "routers",
    "addresses of an edge": "edges",
    "link routes of an edge": "edges",
}
KINDS: Final = (*attackers.STALLS, *attackers.REPEATED, *attackers.OPEN)


@attrs.frozen
class Target:
    """A router, and the ports of its listeners, by name."""

    system: systems.System
    ports: dict[str, int]

    def port(self, kind: str) -> int:
        """Return the port that an attack of a kind is aimed at; 0 if the router has none."""
        name = LISTENERS.get(kind)
        return self.system.port if name is None else self.ports.get(name, 0)


@attrs.frozen
class Seen:
    """Measured latencies of a client, and the rate of an attack and the router's memory growth."""

    p50_us: float
    p99_us: float
    attacks_per_s: float = 0.0
    growth_bytes: int = 0


@contextmanager
def trioute(label: str, folder: Path, work: Path, certificate: str) -> Iterator[Target]:
    """Run a router with a listener of each kind."""
    (work / "users").write_text(f"ann:{hash_password('correct')}\n", encoding="ascii")
    key = load_pem_private_key(Path(certificate).read_bytes(), None).public_key()
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (work / "public.pem").write_bytes(pem)
    ports = {name: systems.free_port() for name in sorted({*LISTENERS.values()})}
    more = MORE.format(certificate=certificate, work=work, tls_port=ports["tls"], **ports)
    with systems.trioute(label, folder, work, more, mode="interior") as one:
        yield Target(one, ports)


@contextmanager
def command(label: str, line: str, certificate: str) -> Iterator[Target]:
    """Run another router, with a port for AMQP and one for TLS."""
    port, tls_port = systems.free_port(), systems.free_port()
    words = shlex.split(line.format(port=port, tls_port=tls_port, certificate=certificate))
    with systems.started(words, port) as pid:
        yield Target(systems.System(label, "other", port, pid), {"tls": tls_port})


@contextmanager
def attack(kind: str, port: int, *options: str) -> Iterator[list[float]]:
    """Attack a port until the block ends; then the list has the attacks in each second."""
    words = [sys.executable, "-P", str(HERE / "attackers.py"), kind, str(port), *options]
    rate: list[float] = []
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            process.stdout.readline()
            began = time.monotonic()
            time.sleep(LEAD_S)
            yield rate
            said, _ = process.communicate(timeout=60)
            rate.append(int(said) / (time.monotonic() - began))
        finally:
            process.kill()


def seen(
    program: Path, target: Target, count: int, kind: str = "", port: int = 0, *options: str
) -> Seen:
    """Let a client send messages through a router, while something attacks a port, if any."""
    system = target.system
    words = [*system.arguments(), "--count", str(count), "--credit", "1", "--inflight", "1"]
    if not kind:
        found = generator.run(program, words)
        return Seen(found["p50_us"], found["p99_us"])
    before = machine.resident_bytes(system.pid)
    with attack(kind, port, *options) as rate:
        found = generator.run(program, words)
        growth = machine.resident_bytes(system.pid) - before
    return Seen(found["p50_us"], found["p99_us"], rate[0], growth)


def median(values: list[Seen]) -> Seen:
    """Return the medians of several measurements, and the most memory."""
    return Seen(
        statistics.median(each.p50_us for each in values),
        statistics.median(each.p99_us for each in values),
        statistics.median(each.attacks_per_s for each in values),
        max(each.growth_bytes for each in values),
    )


def main() -> None:
    """Measure, print the tables, and write them into a page if that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trioute", required=True, metavar="LABEL=BIN")
    parser.add_argument("--command", action="append", default=[], metavar="LABEL=LINE")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only these attacks")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument(
        "--busy",
        action="store_true",
        help="other programs use the processors, too: attackers compete for them with everybody",
    )
    parser.add_argument("--write-docs", type=Path, metavar="PAGE")
    given = parser.parse_args()
    kinds = given.kind or KINDS
    label, _, folder = given.trioute.partition("=")
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        work = Path(name)
        certificate = systems.certificate(work)
        program = generator.build(work)
        enter = stack.enter_context
        control = enter(trioute("another", Path(folder), work, certificate))
        targets = [enter(trioute(label, Path(folder), work, certificate))]
        for text in given.command:
            other, _, line = text.partition("=")
            targets.append(enter(command(other, line, certificate)))
        tables = []
        for target in targets:
            rows = measure(program, target, control, kinds, given)
            tables += [f"**{target.system.label}**", layout.table(HEADS, rows)]
    facts = {"machine": machine.facts(), "systems": [], "repeats": given.repeats}
    text = "\n\n".join((layout.machine_line(facts), *tables))
    print(text)
    if given.write_docs:
        report.write_section(given.write_docs, text, BEGIN, END)


HEADS: Final = [
    "attack",
    "p50, µs",
    "p99, µs",
    "of that without",
    "p99 if another router is attacked, µs",
    "attacks a second",
    "memory, MiB",
]


def measure(
    program: Path,
    target: Target,
    control: Target,
    kinds: tuple[str, ...],
    given: argparse.Namespace,
) -> list[list[str]]:
    """Return the rows of a table: one without an attack, and one for each attack."""
    options = [] if given.busy else ["--yield"]
    every_alone: list[Seen] = []
    rows = []
    for kind in kinds:
        if not target.port(kind):
            continue
        alone, beside, hit = [], [], []
        for _ in range(given.repeats):
            alone.append(seen(program, target, given.messages))
            hit.append(seen(program, target, given.messages, kind, target.port(kind), *options))
            beside.append(seen(program, target, given.messages, kind, control.port(kind), *options))
        every_alone += alone
        one, other = median(hit), median(beside)
        ratio = statistics.median(
            under.p99_us / before.p99_us for under, before in zip(hit, alone, strict=True)
        )
        print(kind, one, other, f"{ratio:.2f}", file=sys.stderr, flush=True)
        rows.append(
            [
                kind,
                f"{one.p50_us:.0f}",
                f"{one.p99_us:.0f}",
                f"{ratio:.1f} {'met' if ratio <= GOAL else 'NOT MET'}",
                f"{other.p99_us:.0f}",
                f"{one.attacks_per_s:.{0 if one.attacks_per_s >= 10 else 1}f}",
                f"{one.growth_bytes / 2**20:.1f}",
            ]
        )
    none = median(every_alone)
    return [["none", f"{none.p50_us:.0f}", f"{none.p99_us:.0f}", *["-"] * 4], *rows]


if __name__ == "__main__":
    main()
