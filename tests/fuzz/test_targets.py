"""Fuzz targets hold for any octets, and for the seeds: whole, cut short and changed a little."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, strategies as st

from router.amqp.reader import DEFAULT_LIMITS

from fuzz.mutate import mutated
from fuzz.seeds import seeds
from fuzz.targets import TARGETS
from support.examples import examples

# Octets that begin as one of the frames that are read by hand.
FRAMES = st.sampled_from([bytes((0x00, 0x53, code)) for code in (0x13, 0x14, 0x15)])


@pytest.mark.parametrize("name", TARGETS)
@examples(150)
@given(octets=st.binary(max_size=300))
def test_any_octets(name: str, octets: bytes) -> None:
    TARGETS[name](octets)


@examples(150)
@given(begin=FRAMES, octets=st.binary(max_size=300))
def test_any_frame_that_is_read_by_hand(begin: bytes, octets: bytes) -> None:
    TARGETS["body"](begin + octets)


@pytest.mark.parametrize("name", TARGETS)
def test_the_seeds(name: str) -> None:
    for octets in seeds(name):
        TARGETS[name](octets)


@pytest.mark.parametrize("name", ["value", "body", "control"])
def test_the_seeds_cut_short(name: str) -> None:
    for octets in seeds(name):
        for end in range(len(octets)):
            TARGETS[name](octets[:end])


@pytest.mark.parametrize("step", [0, 1, 7])
def test_conversations_read_in_pieces(step: int) -> None:
    for octets in seeds("server"):
        TARGETS["server"](octets[:1] + bytes((step,)) + octets[2:])


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("value", 2000),
        ("body", 2000),
        ("server", 300),
        ("trace", 2000),
        ("conf", 300),
        ("control", 2000),
        ("login", 1000),
        ("credentials", 2000),
        ("tls", 200),
        ("first", 1000),
        ("websocket", 300),
        ("proxy", 200),
        ("policy", 500),
        ("vhosts", 1000),
        ("sas", 2000),
        ("jwt", 2000),
        ("cbs", 300),
    ],
)
def test_the_seeds_changed_a_little(name: str, runs: int) -> None:
    random, corpus = Random(name), seeds(name)
    for _ in range(runs):
        TARGETS[name](mutated(random, corpus))


def test_an_empty_list_as_deep_as_values_may_be() -> None:
    TARGETS["value"](bytes((0x00, 0x53, 0x00)) * DEFAULT_LIMITS.max_depth + bytes((0x45,)))
