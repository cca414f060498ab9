"""Users' annotations are told from those that hold the router's own, and from what is no map."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from router.amqp.annotations import PREFIX, have_no_own_keys
from router.amqp.constants import Descriptor
from router.amqp.message import Message, decode_message, encode_message, section_spans
from router.amqp.reading import TransferFrame
from router.amqp.revision import take_annotations
from router.errors import AmqpError

from support.examples import examples
from support.wire import messages

BEFORE = b"\xff" * 5


def foreign(octets: bytes) -> bool:
    """Return have_no_own_keys() for a map with other octets before and behind it."""
    frame = TransferFrame()
    frame.octets = memoryview(BEFORE + octets + b"\x40" * 9)
    return have_no_own_keys(frame, len(BEFORE), len(BEFORE) + len(octets))


def map8(*entries: str) -> bytes:
    items = bytes.fromhex("".join(entries))
    return bytes((0xC1, len(items) + 1, 2 * len(entries))) + items


def map32(*entries: str) -> bytes:
    items = bytes.fromhex("".join(entries))
    return (
        b"\xd1"
        + (len(items) + 4).to_bytes(4, "big")
        + (2 * len(entries)).to_bytes(4, "big")
        + items
    )


# A key and a value of each width, described ones among them.
USERS = [
    "a30178 40",
    "b30000000178 5401",
    "5305 6000ff",
    "8000000000000000ff 7100000001",
    "a30179 8100000000000000ff",
    "a30179 98" + "00" * 16,
    "a30179 a1026162",
    "a30179 b00000000100",
    "a30179 c00402540140",
    "a30179 d0000000050000000140",
    "a3017a e003015401",
    "a3017a f00000000600000001" + "5401",
    "a3017a 00a3017a 43",
    "a3017a 0000a3017a 53ff 43",
    "a3017a" + "a109" + PREFIX.encode().hex(),
    "a308" + PREFIX[:-1].encode().hex() + "40",
    "a309" + b"x-opt-qd-".hex() + "40",
    "a309" + b"X-opt-qd.".hex() + "40",
    "a009" + PREFIX.encode().hex() + "40",
]
OWN = [
    "a309" + PREFIX.encode().hex() + "40",
    "a310" + b"x-opt-qd.ingress".hex() + "a1026162",
    "a109" + PREFIX.encode().hex() + "40",
    "b300000009" + PREFIX.encode().hex() + "40",
    "b10000000c" + b"x-opt-qd.any".hex() + "40",
]


@pytest.mark.parametrize("encode", [map8, map32])
def test_users_annotations_are_foreign(encode: object) -> None:
    assert callable(encode)
    assert foreign(encode())
    for each in USERS:
        assert foreign(encode(each)), each
    few = USERS[:5] + USERS[6:14]
    assert foreign(encode(*few))
    for own in OWN:
        for at in range(len(few) + 1):
            assert not foreign(encode(*few[:at], own, *few[at:]))


@pytest.mark.parametrize(
    "octets",
    [
        "c1",
        "c100",
        "c10101",
        "c1020140",
        "c10102",
        "c1020240",
        "c103004040",
        "c10402404040",
        "c103023f40",
        "c103024000",
        "c10302a301",
        "c1040240a302",
        "c1040240b000",
        "c1070240b0ffffffff",
        "d100000000",
        "d100000003000000",
        "d100000004ffffffff",
        "d100000004fffffffe",
        "c1080200a308782d6f",
    ],
)
def test_what_is_no_map_is_not_foreign(octets: str) -> None:
    assert not foreign(bytes.fromhex(octets))


@given(messages())
@examples(200)
def test_any_users_annotations_are_foreign(message: Message) -> None:
    octets = encode_message(message)
    for span in section_spans(octets):
        if span.descriptor is Descriptor.MESSAGE_ANNOTATIONS:
            assert foreign(octets[span.value_at : span.end])


@given(st.data(), st.sampled_from([map8, map32]))
@examples(500)
def test_what_is_foreign_has_nothing_to_be_taken(data: st.DataObject, encode: object) -> None:
    # what was looked at quickly and what is looked at closely never disagree to somebody's profit
    assert callable(encode)
    entries = data.draw(st.lists(st.sampled_from(USERS[:13] + OWN), max_size=4))
    octets = bytearray(encode(*entries))
    for _ in range(data.draw(st.integers(0, 2))):
        octets[data.draw(st.integers(1, len(octets) - 1))] = data.draw(st.integers(0, 255))
    message = b"\x00\x53\x72" + bytes(octets)
    if foreign(bytes(octets)):
        try:
            taken = take_annotations(message, lambda key: key.startswith(PREFIX))[1]
        except AmqpError:
            return
        assert taken == ()


def test_the_prefix_is_that_of_the_specification() -> None:
    assert PREFIX.startswith("x-opt-")
    assert decode_message(b"\x00\x53\x72" + map8(OWN[0])).message_annotations == {PREFIX: None}
