"""ttl and `to` are found in every place and encoding that a message may have them in."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

from router.amqp.decode import decode_value
from router.amqp.message import AmqpValue, Data, Header, Message, Properties, encode_message
from router.amqp.peek import (
    find_absolute_expiry,
    find_header,
    find_to,
    find_user_id,
    is_durable,
)
from router.amqp.types import Described, Symbol, Timestamp

from support.wire import cut_short, messages

BEFORE = b"\xff\x00\x53"
AFTER = b"\x00\x53\x73\xc0"


def header_of(octets: bytes) -> Any:
    """Return what find_header() finds, with other octets before and behind."""
    return find_header(memoryview(BEFORE + octets + AFTER), len(BEFORE), len(BEFORE) + len(octets))


def ttl_of(octets: bytes) -> Any:
    """Return the header that is found, or None if it has no ttl."""
    found = header_of(octets)
    return found if found is not None and found.ttl_at else None


def to_of(octets: bytes) -> str | None:
    """Return what find_to() finds, with other octets before and behind."""
    return find_to(memoryview(BEFORE + octets + AFTER), len(BEFORE), len(BEFORE) + len(octets))


TTLS = {
    "43": (0, 0),
    "5200": (0, 1),
    "52ff": (255, 1),
    "7000000007": (7, 4),
    "70fffffffe": (2**32 - 2, 4),
    "70ffffffff": (2**32 - 1, 4),
}
DESCRIPTORS_OF_PROPERTIES = [
    "005373",
    "00800000000000000073",
    "00a314" + b"amqp:properties:list".hex(),
    "00b300000014" + b"amqp:properties:list".hex(),
]
DESCRIPTORS = [
    "005370",
    "00800000000000000070",
    "00a310" + b"amqp:header:list".hex(),
    "00b300000010" + b"amqp:header:list".hex(),
]
LISTS: dict[str, Any] = {
    "list8": lambda items, count: bytes((0xC0, len(items) + 1, count)) + items,
    "list32": lambda items, count: (
        b"\xd0" + (len(items) + 4).to_bytes(4, "big") + count.to_bytes(4, "big") + items
    ),
}


@pytest.mark.parametrize("before", ["4040", "4140", "56015004", "425004", "405000"])
@pytest.mark.parametrize("after", ["", "40", "4143", "427000000001"])
@pytest.mark.parametrize("descriptor", DESCRIPTORS)
@pytest.mark.parametrize("enclose", LISTS.values(), ids=list(LISTS))
@pytest.mark.parametrize(("ttl", "expected"), TTLS.items())
def test_a_ttl_in_any_encoding(
    before: str, after: str, descriptor: str, enclose: Any, ttl: str, expected: tuple[int, int]
) -> None:
    items = bytes.fromhex(before + ttl + after)
    count = {"": 3, "40": 4, "4143": 5, "427000000001": 5}[after]
    octets = bytes.fromhex(descriptor) + enclose(items, count) + b"\x00\x53\x75\xa0\x01x"
    found = ttl_of(octets)
    assert (found.ttl_ms, found.width) == expected
    value = octets[found.ttl_at : found.ttl_at + found.width]
    assert int.from_bytes(value, "big") == found.ttl_ms
    assert octets[found.ttl_at - 1 : found.ttl_at].hex() == ttl[:2]


@pytest.mark.parametrize(
    "octets",
    [
        "",
        "00",
        "005370",
        "00537045",
        "005370c00100",
        "005370c0020140",
        "005370c003024040",
        "005370c00403404040",
        "005370c0050340404043"[:18],
        "005370c0040340 40a1",
        "005370c00603404054ff40",
        "005375a00178",
        "005373c00403404043",
        "00a310" + b"amqp:footer:list".hex() + "c00403404043",
        "00a320" + b"amqp:header:list".hex(),
        "00b3ffffffff" + b"amqp:header:list".hex() + "c00403404043",
        "00a3",
        "00a110" + b"amqp:header:list".hex() + "c00403404043",
        "005370c0030340404043",
        "c00403404043",
        "ffffffff",
    ],
)
def test_no_ttl(octets: str) -> None:
    assert ttl_of(bytes.fromhex(octets)) is None


def test_a_header_cut_short_has_no_ttl() -> None:
    octets = bytes.fromhex("005370d00000000b0000000340407000000007")
    assert ttl_of(octets).ttl_ms == 7
    for short in cut_short(octets):
        assert ttl_of(short) is None


@pytest.mark.parametrize("descriptor", DESCRIPTORS)
@pytest.mark.parametrize("durable", ["40", "41", "42", "5601"])
@pytest.mark.parametrize(
    ("rest", "count", "expected"),
    [
        ("", 1, 4),
        ("40", 2, 4),
        ("5000", 2, 0),
        ("5004", 2, 4),
        ("5009", 2, 9),
        ("500a", 2, 9),
        ("50ff", 2, 9),
        ("50007000000001", 3, 0),
        # of another type, and beyond what the list holds
        ("5209", 2, 4),
        ("5409", 2, 4),
        ("a10139", 2, 4),
        ("5009", 1, 4),
    ],
)
def test_a_priority_in_any_encoding(
    descriptor: str, durable: str, rest: str, count: int, expected: int
) -> None:
    items = bytes.fromhex(durable + rest)
    for enclose in LISTS.values():
        octets = bytes.fromhex(descriptor) + enclose(items, count) + b"\x00\x53\x75\xa0\x01x"
        assert header_of(octets).priority == expected


def test_a_wrong_ttl_leaves_the_priority() -> None:
    found = header_of(bytes.fromhex("005370c00603405007a10178"))
    assert (found.priority, found.ttl_at) == (7, 0)


def test_without_a_header_there_is_nothing() -> None:
    for octets in ("", "005375a00178", "005373c00403404043"):
        assert header_of(bytes.fromhex(octets)) is None
    assert header_of(bytes.fromhex("00537045")).priority == 4


@pytest.mark.parametrize("expiry_ms", [0, 1, -1, 2**63 - 1, -(2**63)])
def test_an_absolute_expiry_time(expiry_ms: int) -> None:
    properties = Properties(to="q", absolute_expiry_time=Timestamp(expiry_ms))
    for header in (None, Header(ttl=1)):
        octets = encode_message(Message(header=header, properties=properties, body=(Data(b"x"),)))
        view = memoryview(BEFORE + octets + AFTER)
        at, end = len(BEFORE), len(BEFORE) + len(octets)
        assert find_absolute_expiry(view, at, end) == expiry_ms
        for short in cut_short(octets):
            assert find_absolute_expiry(short, 0, len(short)) in {None, expiry_ms}


@pytest.mark.parametrize(
    "items",
    [
        "4040404040404040",
        "404040404040404040",
        "4040404040404040810000000000000001",
        "404040404040404083000000000000",
    ],
)
def test_no_absolute_expiry_time(items: str) -> None:
    octets = bytes.fromhex("005373") + LISTS["list8"](bytes.fromhex(items), 9)
    assert find_absolute_expiry(octets, 0, len(octets)) is None
    assert find_absolute_expiry(b"", 0, 0) is None


SECTIONS: list[dict[str, Any]] = [
    {"header": Header(ttl=1)},
    {"delivery_annotations": {Symbol("d"): "x" * 300}},
    {"message_annotations": {Symbol("m"): [1, {}]}},
]


@pytest.mark.parametrize("body", [(), (Data(b"x"),), (AmqpValue("v"),)])
@pytest.mark.parametrize("to", [None, "", "a", "é", "amqp://host:5672/" + "x" * 300])
def test_to_behind_any_sections(to: str | None, body: Any) -> None:
    for count in range(len(SECTIONS) + 1):
        for chosen in itertools.combinations(SECTIONS, count):
            before = {name: value for each in chosen for name, value in each.items()}
            message = Message(properties=Properties(to=to), body=body, **before)
            assert to_of(encode_message(message)) == to
            without = Message(body=body, application_properties={"to": "wrong"}, **before)
            assert to_of(encode_message(without)) is None


@given(messages())
def test_to_and_ttl_of_any_message(message: Message) -> None:
    octets = encode_message(message)
    expected_to = message.properties.to if message.properties else None
    assert to_of(octets) == expected_to
    ttl = message.header.ttl if message.header else None
    found = ttl_of(octets)
    assert (None if found is None else found.ttl_ms) == ttl
    header = header_of(octets)
    assert (header is None) == (message.header is None)
    if message.header is not None:
        assert header.priority == min(message.header.priority, 9)
    for short in cut_short(octets[:200]):
        assert to_of(short) in {None, expected_to}
        ttl_of(short)


@given(st.binary(max_size=40), st.sampled_from([b"", b"\x00\x53\x70", b"\x00\x53\x73\xc0"]))
def test_anything_else_has_neither(octets: bytes, start: bytes) -> None:
    for find in (ttl_of, to_of):
        find(start + octets)


def test_what_is_no_utf_8_is_no_address() -> None:
    assert to_of(bytes.fromhex("005373c00603 40 40 a1 01 ff")) is None


def test_what_is_written_over_a_ttl_is_read_back() -> None:
    octets = bytearray(encode_message(Message(header=Header(ttl=70_000), body=(Data(b"x"),))))
    found = ttl_of(bytes(octets))
    octets[found.ttl_at : found.ttl_at + found.width] = (5).to_bytes(found.width, "big")
    value, _ = decode_value(bytes(octets))
    assert isinstance(value, Described)
    assert isinstance(value.value, list)
    assert value.value[2] == 5


@pytest.mark.parametrize("descriptor", DESCRIPTORS)
@pytest.mark.parametrize(
    ("items", "count", "expected"),
    [
        ("41", 1, True),
        ("5601", 1, True),
        ("415004", 2, True),
        ("42", 1, False),
        ("5600", 1, False),
        ("405004", 2, False),
        ("", 0, False),
        # of another type, and none
        ("5201", 1, False),
        ("5602", 1, False),
    ],
)
def test_whether_a_message_is_durable(
    descriptor: str, items: str, count: int, expected: bool
) -> None:
    for enclose in LISTS.values():
        octets = bytes.fromhex(descriptor) + enclose(bytes.fromhex(items), count) + b"\x00\x53\x75"
        assert is_durable(b"before" + octets, 6, 6 + len(octets)) is expected
    for other in ("", "005375a00178", "005370", "005373c00403404041", "ffffffff"):
        assert not is_durable(bytes.fromhex(other), 0, len(other) // 2)


# The user-id.


def user_of(octets: bytes, *, is_whole: bool = True) -> bytes | None:
    """Return what find_user_id() finds, with other octets before and behind."""
    view = memoryview(BEFORE + octets + AFTER)
    return find_user_id(view, len(BEFORE), len(BEFORE) + len(octets), is_whole=is_whole)


HEADS = {
    "nothing": b"",
    "header": bytes.fromhex("005370c00100"),
    "annotations": bytes.fromhex("005370c00100005371c10100005372c10100"),
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("descriptor", DESCRIPTORS_OF_PROPERTIES)
@pytest.mark.parametrize("make", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize(
    ("field", "user"),
    [
        ("a003616461", b"ada"),
        ("b000000003616461", b"ada"),
        ("a000", b""),
        ("40", b""),
        # nothing but binary is a user-id
        ("a103616461", None),
        ("a303616461", None),
        ("43", None),
        ("45", None),
        ("00a003616461", None),
        # longer than the list
        ("a0ff616461", None),
        ("b0ffffffff616461", None),
    ],
)
def test_user_ids(head: bytes, descriptor: str, make: Any, field: str, user: bytes | None) -> None:
    items = b"\x40" + bytes.fromhex(field)
    assert user_of(head + bytes.fromhex(descriptor) + make(items, 2)) == user


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        HEADS["header"],
        HEADS["annotations"] + bytes.fromhex("005373c00100"),
        bytes.fromhex("00537345"),
        bytes.fromhex("005373c0020140"),
        bytes.fromhex("005375a003") + b"abc",
        bytes.fromhex("005374c10100"),
    ],
    ids=["nothing", "header", "empty", "list0", "one field", "data", "application-properties"],
)
def test_messages_without_a_user_id(octets: bytes) -> None:
    assert user_of(octets) == b""


@given(messages(), st.binary(max_size=300), st.data())
def test_a_user_id_is_found_or_it_cannot_be_told(
    message: Message, user: bytes, data: st.DataObject
) -> None:
    properties = attrs.evolve(message.properties or Properties(), user_id=user)
    octets = encode_message(attrs.evolve(message, properties=properties))
    assert user_of(octets) == user
    # wherever its first frame ends
    cut = data.draw(st.integers(0, len(octets) - 1))
    assert user_of(octets[:cut], is_whole=False) in (user, None)


def test_the_first_octets_do_not_tell_whether_there_is_a_user_id() -> None:
    octets = encode_message(Message(properties=Properties(user_id=b"ada"), body=(Data(b"x"),)))
    found = [user_of(octets[:end], is_whole=False) for end in range(len(octets))]
    assert set(found) == {None, b"ada"}
    assert found == sorted(found, key=lambda each: each is not None)


@given(st.binary(max_size=60), st.booleans())
def test_any_octets_have_a_user_id_or_none(octets: bytes, is_whole: bool) -> None:
    found = user_of(octets, is_whole=is_whole)
    assert found is None or found in octets
