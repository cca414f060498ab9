"""Control messages are written and read again, and whatever else comes is refused."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.amqp.encode import encode_value
from router.amqp.types import Array, Described, Symbol, UInt, ULong
from router.control.network import messages as m
from router.control.network.codec import (
    MAX_CONTROL_BYTES,
    MAX_COST,
    MAX_ID_BYTES,
    decode_control,
    encode_control,
)
from router.control.network.digests import BUCKETS, entry_digest
from router.errors import AmqpError, Scope

NUMBERS = st.integers(0, 2**63 - 1)
UINTS = st.integers(0, 2**32 - 1)
ULONGS = st.integers(0, 2**64 - 1)
IDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)
COSTS = st.integers(1, 2**31 - 1)
TERMS = st.sampled_from(sorted(m.TERMS))


@st.composite
def updates(draw: Any) -> m.MobileUpdate:
    """Draw a MobileUpdate."""
    changes = draw(st.lists(st.tuples(IDS, TERMS | st.just(m.REMOVED)), max_size=9))
    base = draw(st.integers(0, 2**63 - 2))
    return m.MobileUpdate(
        draw(IDS), draw(NUMBERS), base, draw(st.integers(base + 1, 2**63 - 1)), draw(ULONGS),
        tuple(key for key, _ in changes), bytes(terms for _, terms in changes),
    )  # fmt: skip


@st.composite
def tables(draw: Any) -> m.MobileTable:
    """Parts of tables."""
    changes = draw(st.lists(st.tuples(IDS, TERMS), max_size=9))
    part = draw(st.integers(0, 100))
    return m.MobileTable(
        draw(IDS), draw(NUMBERS), draw(NUMBERS), draw(ULONGS), part, part + 1,
        tuple(key for key, _ in changes), bytes(terms for _, terms in changes),
    )  # fmt: skip


def several(one: Any) -> Any:
    """Return a strategy for tuples of up to five."""
    return st.lists(one, max_size=5).map(tuple)


STATES = st.builds(
    m.LinkState, IDS, NUMBERS, NUMBERS, st.dictionaries(IDS, COSTS, max_size=5), NUMBERS, ULONGS,
    st.dictionaries(st.sampled_from(("features", "later")), st.lists(IDS, max_size=3)),
)  # fmt: skip
AGED = st.builds(m.Aged, STATES, st.integers(0, 2**32 - 1))
MESSAGES = st.one_of(
    st.builds(m.Hello, IDS, NUMBERS, NUMBERS, st.integers(0, MAX_COST), *[UINTS] * 3),
    st.lists(ULONGS, min_size=BUCKETS, max_size=BUCKETS).map(lambda each: m.Summary(tuple(each))),
    st.builds(
        m.Rows, st.booleans(), several(st.builds(m.Row, IDS, NUMBERS, NUMBERS, NUMBERS, ULONGS))
    ),
    st.builds(m.LinkStateUpdate, several(AGED)),
    st.builds(m.LinkStateRequest, several(IDS)),
    st.integers(0, 2**63 - 2).map(lambda winner: m.Withdrawal("A", 2**63 - 1, winner)),
    updates(),
    tables(),
    st.builds(m.MobileRequest, several(st.builds(m.TableRequest, IDS, NUMBERS, NUMBERS))),
)


@given(MESSAGES)
def test_what_is_written_is_read_again(message: Any) -> None:
    assert decode_control(encode_control(message)) == message


@given(MESSAGES, st.data())
def test_what_is_damaged_is_refused_or_says_something_else(message: Any, data: Any) -> None:
    octets = bytearray(encode_control(message))
    at = data.draw(st.integers(0, len(octets) - 1))
    octets[at] = data.draw(st.integers(0, 255))
    for each in (bytes(octets), bytes(octets[:at])):
        decoded = None
        with contextlib.suppress(AmqpError):
            decoded = decode_control(each)
        assert decoded is None or decode_control(encode_control(decoded)) == decoded


# those of docs/reference/inter-router-protocol.md
WRITTEN_DOWN: dict[str, m.Message] = {
    """
    00 53 77 c0 2e 08 a3 05 48 45 4c 4c 4f a1 01 41 80 00 00 00 00 00 00 03 e8 80 00 00 00 00 00 00
    07 d0 52 05 70 00 6a cf c0 70 00 2d c6 c0 70 00 03 d0 90
    """: m.Hello("A", 1000, 2000, 5, 7_000_000, 3_000_000, 250_000),
    """
    00 53 77 c0 36 08 a3 03 4d 41 55 a1 01 41 80 00 00 00 00 00 00 03 e8 53 04 53 05 80 be 2e 61 36
    cc 58 e2 14 e0 11 02 a1 08 4d 30 6f 72 64 65 72 73 05 4d 30 6f 6c 64 a0 02 01 ff
    """: m.MobileUpdate(
        "A", 1000, 4, 5, entry_digest("M0orders", 1), ("M0orders", "M0old"), b"\x01\xff"
    ),
}


@pytest.mark.parametrize("octets", WRITTEN_DOWN)
def test_the_page_tells_the_truth(octets: str) -> None:
    message = WRITTEN_DOWN[octets]
    assert encode_control(message) == bytes.fromhex(octets)
    assert decode_control(bytes.fromhex(octets)) == message
    page = Path(__file__).parents[3] / "docs" / "reference" / "inter-router-protocol.md"
    assert octets.strip() in page.read_text(encoding="utf-8")


def test_a_hello_without_a_cost_is_one() -> None:
    assert decode_control(said(HELLO, "A", ULong(1), ULong(2))) == m.Hello("A", 1, 2, 0)
    with pytest.raises(AmqpError, match="cost is not a uint"):
        decode_control(said(HELLO, "A", ULong(1), ULong(2), ULong(3)))


def said(*items: Any) -> bytes:
    """Encode a control message of these items."""
    return encode_value(Described(ULong(0x77), list(items)))


HELLO = Symbol("HELLO")
MAU = Symbol("MAU")


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (b"\0\x53\x77\x40", "its value is not a list"),
        (said(), "its value is not a list"),
        (
            said("HELLO", "A", ULong(1), ULong(0)),
            "its value is not a list that begins with an opcode",
        ),
        (said(Symbol("SHOUT")), "unknown opcode SHOUT"),
        (said(HELLO, "A", ULong(1)), "is not a list of router, instance, heard"),
        (said(HELLO, "", ULong(1), ULong(0)), "router is not a string of 1 to 255"),
        (said(HELLO, "x" * (MAX_ID_BYTES + 1), ULong(1), ULong(0)), "router is not a string"),
        (said(HELLO, "A", UInt(1), ULong(0)), "instance is not a ulong"),
        (said(HELLO, "A", ULong(2**63), ULong(0)), "instance is not a ulong up to"),
        (said(HELLO, "A", ULong(1), ULong(0)) + b"\x40", "1 octets follow the amqp-value"),
        (encode_value(Described(ULong(0x75), b"")), "its section is not an amqp-value"),
        (said(Symbol("RA"), Array([ULong(1)], ULong)), f"has 1 items, not {BUCKETS}"),
        (
            said(Symbol("LSW"), "A", ULong(1), ULong(1)),
            "the winner 1 is not older than the instance 1",
        ),
        (
            said(MAU, "A", ULong(1), ULong(1), ULong(1), ULong(0), Array([], str), b""),
            "seq is 1, not greater than base, 1",
        ),
        (
            said(MAU, "A", ULong(1), ULong(1), ULong(2), ULong(0), Array([], str), b"\0"),
            "the field keys has 0 items, but terms has 1 octets",
        ),
        (
            said(MAU, "A", ULong(1), ULong(1), ULong(2), ULong(0), Array(["k"], str), b"\x0f"),
            "the field terms has 0x0f, which encodes no treatment",
        ),
        (bytes(MAX_CONTROL_BYTES + 1), f"at most {MAX_CONTROL_BYTES} are allowed"),
    ],
)
def test_it_says_what_is_wrong(octets: bytes, why: str) -> None:
    with pytest.raises(AmqpError, match=why) as caught:
        decode_control(octets)
    assert caught.value.scope is Scope.CONNECTION


def test_what_later_versions_add_is_passed_over() -> None:
    octets = said(HELLO, "A", ULong(1), ULong(0), *map(UInt, (3, 4, 5, 6)), "and more")
    assert decode_control(octets) == m.Hello("A", 1, 0, 3, 4, 5, 6)
