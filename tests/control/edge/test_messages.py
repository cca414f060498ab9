"""Control messages between an edge and its interior are encoded, decoded and validated."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.amqp.encode import encode_value
from router.amqp.types import Described, Symbol, UByte, ULong
from router.control.edge.messages import (
    LONGEST_BYTES,
    MOST_KEYS,
    PART_BYTES,
    Beat,
    InteriorAddress,
    Message,
    Reached,
    Routes,
    UplinkUse,
    Watch,
    decode_message,
    encode_message,
    reached,
    routes,
    watches,
)
from router.errors import AmqpError

KEYS = st.text(min_size=1, max_size=40)
PLACES = st.builds(InteriorAddress, KEYS, st.booleans(), st.integers(0, 255))
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(UplinkUse, st.booleans()),
    st.builds(Beat, st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1)),
    st.builds(Watch, st.lists(KEYS).map(tuple), st.lists(KEYS).map(tuple)),
    st.builds(Reached, st.lists(PLACES).map(tuple)),
    st.builds(Routes, st.lists(KEYS).map(tuple), st.lists(KEYS).map(tuple)),
)


@given(MESSAGES)
def test_what_is_written_is_read_again(message: Message) -> None:
    assert decode_message(encode_message(message)) == message


@given(MESSAGES)
def test_what_is_cut_off_is_refused(message: Message) -> None:
    octets = encode_message(message)
    for end in range(len(octets)):
        with pytest.raises(AmqpError):
            decode_message(octets[:end])
    with pytest.raises(AmqpError):
        decode_message(octets + b"\x40")


@given(st.binary(max_size=60))
def test_whatever_comes_only_one_error_leaves(octets: bytes) -> None:
    try:
        decode_message(octets)
    except AmqpError:
        pass


def octets_of(value: object) -> bytes:
    return encode_value(Described(ULong(0x77), value))


def test_further_fields_and_other_messages_are_passed_over() -> None:
    later = [Symbol("USE"), True, "as of the next version"]
    assert decode_message(octets_of(later)) == UplinkUse(is_active=True)
    assert decode_message(octets_of([Symbol("SLEEP"), 5])) is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "USE",
        ["USE", True],
        [Symbol("USE")],
        [Symbol("USE"), 1],
        [Symbol("BEAT"), "1"],
        [Symbol("WATCH"), ["M0a"]],
        [Symbol("WATCH"), ["M0a"], [Symbol("M0b")]],
        [Symbol("WATCH"), [""], []],
        [Symbol("WATCH"), {}, []],
        [Symbol("ROUTES"), ["Ca"]],
        [Symbol("ROUTES"), [["Ca"]], []],
        [Symbol("REACHED"), [["M0a", True]]],
        [Symbol("REACHED"), ["M0a", True, UByte(0)]],
        [Symbol("REACHED"), [["M0a", UByte(1), UByte(0)]]],
    ],
)
def test_other_fields_are_refused(value: object) -> None:
    with pytest.raises(AmqpError):
        decode_message(octets_of(value))


def test_only_a_value_is_a_message() -> None:
    value = [Symbol("USE"), True]
    assert decode_message(encode_value(Described(Symbol("amqp:amqp-value:*"), value)))
    for other in (value, Described(ULong(0x75), b"USE"), Described(ULong(0x76), value)):
        with pytest.raises(AmqpError):
            decode_message(encode_value(other))


def test_a_message_has_an_end() -> None:
    octets = octets_of([Symbol("USE"), True, b"\0" * LONGEST_BYTES])
    with pytest.raises(AmqpError, match="octets"):
        decode_message(octets)


@pytest.mark.parametrize("say", [watches, routes])
@given(changes=st.lists(st.tuples(KEYS, st.booleans())))
def test_what_is_watched_or_routed_is_said_in_parts(
    changes: list[tuple[str, bool]], say: Any
) -> None:
    told: dict[str, bool] = {}
    for message in say(changes):
        told.update(dict.fromkeys(message.added, True))
        told.update(dict.fromkeys(message.removed, False))
    assert told == dict(changes)


def test_no_part_is_too_long() -> None:
    keys = [f"M0{'x' * 200}{number}" for number in range(2000)]
    parts = [encode_message(each) for each in watches((key, True) for key in keys)]
    assert len(parts) > 20
    assert max(map(len, parts)) <= PART_BYTES + 64
    answers = [
        encode_message(each) for each in reached(InteriorAddress(key, True, 1) for key in keys)
    ]
    assert max(map(len, answers)) <= PART_BYTES + 64
    # one that is longer than a part goes alone
    long = "M0" + "y" * (2 * PART_BYTES)
    assert [each.added for each in watches([("M0a", True), (long, True)])] == [("M0a",), (long,)]


@pytest.mark.parametrize("kind", ["WATCH", "ROUTES"])
def test_no_message_has_more_than_so_many_keys(kind: str) -> None:
    keys = [f"M{number}" for number in range(MOST_KEYS)]
    assert decode_message(octets_of([Symbol(kind), keys, keys])) is not None
    with pytest.raises(AmqpError, match="keys"):
        decode_message(octets_of([Symbol(kind), [], [*keys, "M"]]))
    with pytest.raises(AmqpError, match="keys"):
        decode_message(octets_of([Symbol("REACHED"), [None] * (MOST_KEYS + 1)]))


def test_no_part_has_more_keys_than_a_message_may_have() -> None:
    shortest = [f"C{chr(0x21 + number % 90)}{number // 90:x}" for number in range(5000)]
    parts = list(routes((key, True) for key in shortest))
    assert max(len(part.added) for part in parts) <= MOST_KEYS
