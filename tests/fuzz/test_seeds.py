"""The fuzzing targets hold for the seeds, for seeds cut short and for seeds changed a little."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from router.amqp.decode import DEFAULT_LIMITS

from fuzz.mutate import mutated
from fuzz.run import attempt
from fuzz.seeds import seeds
from fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_the_seeds(name: str) -> None:
    for octets in seeds(name):
        TARGETS[name](octets)


@pytest.mark.parametrize("name", ["value", "body"])
def test_the_seeds_cut_short(name: str) -> None:
    for octets in seeds(name):
        for end in range(len(octets)):
            TARGETS[name](octets[:end])


@pytest.mark.parametrize("step", [0, 1, 7])
def test_conversations_read_in_pieces(step: int) -> None:
    for octets in seeds("server"):
        TARGETS["server"](octets[:1] + bytes((step,)) + octets[2:])


@pytest.mark.parametrize(("name", "runs"), [("value", 2000), ("body", 2000), ("server", 300)])
def test_the_seeds_changed_a_little(name: str, runs: int) -> None:
    random, corpus = Random(name), seeds(name)
    for _ in range(runs):
        TARGETS[name](mutated(random, corpus))


def test_an_empty_list_as_deep_as_values_may_be() -> None:
    TARGETS["value"](bytes((0x00, 0x53, 0x00)) * DEFAULT_LIMITS.max_depth + bytes((0x45,)))


def test_a_finding_is_kept(tmp_path: Path) -> None:
    def fails(octets: bytes) -> None:
        raise IndexError("outside")

    crash = tmp_path / "crashes" / "x.bin"
    attempt(TARGETS["value"], b"", crash)
    assert not crash.exists()
    with pytest.raises(IndexError, match="outside"):
        attempt(fails, b"x", crash)
    assert crash.read_bytes() == b"x"
