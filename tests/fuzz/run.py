"""Fuzz for as long as one is told to.

    python tests/fuzz/run.py [--seconds 60] [--atheris] [--seed 0] [TARGET ...]
    python tests/fuzz/run.py --replay FILE TARGET

With `--atheris` coverage guides the search: the router must be the interpreted build, and atheris
installed. Without it a plain mutator changes the seeds, which is what the build with sanitizers is
for. A first finding ends the run; its octets are kept in tests/fuzz/crashes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

HERE = Path(__file__).resolve().parent
CRASHES = HERE / "crashes"
NAMES = ("value", "body", "server", "play")


def plain(name: str, seconds: float, seed: int) -> None:
    """Mutate the seeds of one target; a finding is kept and ends the run."""
    from fuzz.mutate import mutated
    from fuzz.seeds import seeds
    from fuzz.targets import TARGETS

    corpus, random = seeds(name), Random(seed)
    runs = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        # plays are decided by octets that mean nothing by themselves
        size = random.choice((100, 500, 2000))
        octets = random.randbytes(size) if name == "play" else mutated(random, corpus)
        runs += 1
        attempt(TARGETS[name], octets, CRASHES / f"{name}-{seed}-{runs}.bin")
    print(f"{name}: {runs} runs, no finding", flush=True)


def attempt(target: Callable[[bytes], None], octets: bytes, crash: Path) -> None:
    """Give these octets to a target; where it fails they are kept in `crash`."""
    try:
        target(octets)
    except BaseException:
        crash.parent.mkdir(parents=True, exist_ok=True)
        crash.write_bytes(octets)
        print(f"a finding: {crash}", file=sys.stderr, flush=True)
        raise


def guided(name: str, seconds: float, seed: int) -> None:
    """Let atheris search; it ends the process, with a finding or after the time."""
    import atheris

    with atheris.instrument_imports(include=["router"]):
        from fuzz.targets import TARGETS
    from fuzz.seeds import seeds

    corpus = HERE / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    CRASHES.mkdir(exist_ok=True)
    for number, octets in enumerate(seeds(name)):
        (corpus / f"seed-{number}").write_bytes(octets)
    options = [
        f"-max_total_time={seconds:.0f}", f"-seed={seed or 1}", "-max_len=8192", "-timeout=20",
        f"-artifact_prefix={CRASHES}/{name}-", "-print_final_stats=1", str(corpus),
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options], TARGETS[name])
    atheris.Fuzz()


def main(arguments: list[str]) -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description="Fuzz the data plane.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--seconds", type=float, default=60, help="for each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--atheris", action="store_true", help="search where coverage leads")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="do what once failed")
    chosen = parser.parse_args(arguments)
    names = chosen.targets or list(NAMES)
    if unknown := set(names) - set(NAMES):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    if chosen.replay:
        from fuzz.targets import TARGETS

        for name in names:
            TARGETS[name](chosen.replay.read_bytes())
        return 0
    if not chosen.atheris:
        for name in names:
            plain(name, chosen.seconds, chosen.seed)
        return 0
    if len(names) == 1:
        guided(names[0], chosen.seconds, chosen.seed)
    status = 0
    for name in names:
        # atheris instruments once and ends its process, so each target has one of its own
        again = [sys.executable, __file__, "--atheris", name, "--seed", str(chosen.seed)]
        done = subprocess.run([*again, "--seconds", str(chosen.seconds)], check=False)
        status = status or done.returncode
    return status


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))
    raise SystemExit(main(sys.argv[1:]))
