"""Run the fuzz targets for a given time.

    python tests/fuzz/run.py [--seconds 60] [--seed N] [--atheris] [TARGET ...]
    python tests/fuzz/run.py [TARGET] --replay FILE ...

With `--atheris` coverage guides the search; that needs atheris and the interpreted build, and keeps
inputs that reach further in tests/fuzz/corpus. Without it a plain mutator changes the seeds and
that corpus, as the build with sanitizers needs it. The first finding ends the run; its octets are
kept in tests/fuzz/crashes.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))

# What is fuzzed is imported in the functions: atheris instruments what is imported when it is told.

NAMES = (
    *("value", "body", "server", "play", "schedule", "trace", "conf", "control", "gossip", "edges"),
    *("login", "credentials", "tls", "first", "websocket", "proxy", "policy", "vhosts"),
    *("sas", "jwt", "cbs"),
)
# What these read are decisions, so that octets without any sense are as good as others.
SCRIPTS = ("play", "schedule", "edges", "tls", "policy")
TOO_LONG_S = 20.0


def attempts(
    target: Callable[[bytes], None],
    inputs: Iterable[bytes],
    finding: Path,
    too_long_s: float = TOO_LONG_S,
) -> int:
    """Give one input after the other to a target; return how many there were.

    Each lies in the file `finding` before it is tried, because a sanitizer ends the process on the
    spot, and so does an input that takes longer than `too_long_s`. Without a finding the file is
    gone in the end.
    """
    finding.parent.mkdir(parents=True, exist_ok=True)
    faulthandler.register(signal.SIGALRM, chain=True)
    tried = 0
    with finding.open("wb", buffering=0) as file:
        for octets in inputs:
            os.pwrite(file.fileno(), octets, 0)
            os.ftruncate(file.fileno(), len(octets))
            signal.setitimer(signal.ITIMER_REAL, too_long_s)
            try:
                target(octets)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            tried += 1
    finding.unlink()
    return tried


def changed(name: str, corpus: Path, random: Random, seconds: float) -> Iterator[bytes]:
    """Yield a target's seeds and its corpus, then changed copies until the time is over."""
    from fuzz.mutate import mutated
    from fuzz.seeds import seeds

    known = seeds(name) + [path.read_bytes() for path in sorted(corpus.glob("*"))]
    yield from known
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if name in SCRIPTS and random.randrange(2):
            yield random.randbytes(random.choice((100, 500, 2000)))
        else:
            yield mutated(random, known)


def plain(name: str, folder: Path, seconds: float, seed: int) -> None:
    """Try the plain mutator's inputs for one target; raise a finding."""
    from fuzz.targets import TARGETS

    finding = folder / "crashes" / f"{name}-{seed}"
    inputs = changed(name, folder / "corpus" / name, Random(seed), seconds)
    print(f"{name}: with --seed {seed}; an input that fails is left in {finding}", flush=True)
    tried = attempts(TARGETS[name], inputs, finding)
    print(f"{name}: {tried} inputs, no finding", flush=True)


def guided(name: str, folder: Path, seconds: float, seed: int) -> None:
    """Let atheris search; it ends the process, with a finding or after the time."""
    import atheris

    with atheris.instrument_imports(include=["router"]):
        from fuzz.targets import TARGETS
    from fuzz.seeds import seeds

    corpus, crashes = folder / "corpus" / name, folder / "crashes"
    corpus.mkdir(parents=True, exist_ok=True)
    crashes.mkdir(exist_ok=True)
    for number, octets in enumerate(seeds(name)):
        (corpus / f"seed-{number}").write_bytes(octets)
    options = [
        f"-max_total_time={seconds:.0f}", f"-seed={seed}", "-max_len=8192",
        f"-timeout={TOO_LONG_S:.0f}", f"-artifact_prefix={crashes}/{name}-",
        "-print_final_stats=1", str(corpus),
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options], TARGETS[name])
    atheris.Fuzz()


def replay(names: list[str], files: list[Path]) -> None:
    """Run inputs that failed once. A file kept by a run begins with the name of its target."""
    from fuzz.targets import TARGETS

    for file in files:
        named = [name for name in NAMES if file.name.startswith(f"{name}-")]
        if not names and not named:
            raise SystemExit(f"which target is {file} for? Name it before --replay")
        for name in names or named:
            print(f"{name}: {file}", flush=True)
            TARGETS[name](file.read_bytes())


def main(arguments: list[str]) -> int:
    """Run as the command line says."""
    from router import build

    from support import builds

    parser = argparse.ArgumentParser(description="Fuzz the data plane.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--seconds", type=float, default=60, help="for each target")
    parser.add_argument("--seed", type=int, help="to do the same again (default: another one)")
    parser.add_argument("--atheris", action="store_true", help="search where coverage leads")
    parser.add_argument("--folder", type=Path, default=HERE, help="of corpus and crashes")
    parser.add_argument("--replay", type=Path, nargs="+", metavar="FILE", help="what once failed")
    chosen = parser.parse_args(arguments)
    names = chosen.targets or list(NAMES)
    if unknown := set(names) - set(NAMES):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    installed = Path(build.__file__).resolve().parent
    if wrong := builds.complaint(installed, HERE.parents[1] / "router", os.environ):
        raise SystemExit(wrong)
    if chosen.replay:
        replay(chosen.targets, chosen.replay)
        return 0
    # libFuzzer takes 0 for "any"
    seed = Random().randrange(1, 2**31) if chosen.seed is None else chosen.seed
    if chosen.atheris and len(names) == 1:
        guided(names[0], chosen.folder, chosen.seconds, seed)
    print(builds.header(installed), flush=True)
    status = 0
    for name in names:
        if not chosen.atheris:
            plain(name, chosen.folder, chosen.seconds, seed)
            continue
        # atheris instruments once and ends its process, so each target has one of its own
        again = [sys.executable, __file__, "--atheris", name, "--seed", str(seed)]
        limits = ["--seconds", str(chosen.seconds), "--folder", str(chosen.folder)]
        done = subprocess.run([*again, *limits], check=False)
        status = status or done.returncode
    return status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
