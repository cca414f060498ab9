"""A message that is sent once more differs in what the last outcome said, and in nothing else."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from router.amqp.message import (
    AmqpValue,
    Data,
    Header,
    Message,
    Properties,
    bare_message,
    decode_message,
    encode_message,
)
from router.amqp.revision import (
    change_annotations,
    encode_entry,
    revise,
    take_annotations,
    without_ttl,
    write_ttl,
)
from router.amqp.types import Symbol
from router.errors import AmqpError

K, L = Symbol("x-opt-k"), Symbol("x-opt-l")
BARE: dict[str, Any] = {"properties": Properties(to="q"), "body": (Data(b"a"), Data(b"b"))}


@pytest.mark.parametrize(
    "message",
    [
        Message(body=(AmqpValue(None),)),
        Message(Header(durable=True), **BARE),
        Message(Header(ttl=5), message_annotations={K: 1}, footer={L: 2}, **BARE),
    ],
)
def test_what_has_nothing_to_change_goes_as_it_came(message: Message) -> None:
    octets = encode_message(message)
    assert revise(octets, 0, failed=False, annotations=None) == octets


@pytest.mark.spec("3.4.5-2")
@pytest.mark.parametrize(
    ("header", "failed", "count"),
    [
        (None, True, 1),
        (Header(delivery_count=3, durable=True, priority=7), True, 4),
        (Header(delivery_count=0xFFFFFFFF), True, 0xFFFFFFFF),
        (Header(delivery_count=3, first_acquirer=True), False, 3),
    ],
)
@pytest.mark.parametrize("noted", [None, {K: "old"}])
def test_the_header_is_written_anew(
    header: Header | None, failed: bool, count: int, noted: dict[Any, Any] | None
) -> None:
    octets = encode_message(Message(header, message_annotations=noted, **BARE))
    again = revise(octets, 0, failed=failed, annotations=None)
    assert again is not None
    found = decode_message(again)
    expected = attrs.evolve(header or Header(), delivery_count=count, first_acquirer=False)
    assert found.header == expected
    assert found.message_annotations == noted
    assert again[slice(*bare_message(again))] == octets[slice(*bare_message(octets))]


@pytest.mark.spec("3.4.5-1")
@pytest.mark.parametrize("header", [None, Header(durable=True)])
@pytest.mark.parametrize(
    ("noted", "merged"),
    [
        (None, {K: "new", L: [1]}),
        ({K: "old"}, {K: "new", L: [1]}),
        ({Symbol("x-opt-m"): 1}, {Symbol("x-opt-m"): 1, K: "new", L: [1]}),
    ],
)
def test_annotations_are_merged(
    header: Header | None, noted: dict[Any, Any] | None, merged: dict[Any, Any]
) -> None:
    octets = encode_message(Message(header, message_annotations=noted, footer={L: 2}, **BARE))
    again = revise(octets, 0, failed=False, annotations={K: "new", L: [1]})
    assert again is not None
    found = decode_message(again)
    assert found.message_annotations == merged
    assert found.footer == {L: 2}
    assert again[slice(*bare_message(again))] == octets[slice(*bare_message(octets))]


@pytest.mark.parametrize(("elapsed_ms", "left"), [(0, 100), (40, 60), (99, 1), (100, None)])
def test_the_ttl_goes_on(elapsed_ms: int, left: int | None) -> None:
    octets = encode_message(Message(Header(ttl=100), **BARE))
    again = revise(octets, elapsed_ms, failed=False, annotations=None)
    header = None if again is None else decode_message(again).header
    assert (None if header is None else header.ttl) == left


@pytest.mark.parametrize("octets", [b"x", b"\x00\x53\x70", b"\x00\x53\x70\xc0\x02\x01\xa1"])
def test_what_cannot_be_read_is_not_sent_again(octets: bytes) -> None:
    assert revise(octets, 0, failed=False, annotations=None) is None


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


@pytest.mark.parametrize("after", ["", "40", "427000000001"])
@pytest.mark.parametrize("descriptor", DESCRIPTORS)
@pytest.mark.parametrize("enclose", LISTS.values(), ids=list(LISTS))
@pytest.mark.parametrize("ttl", ["43", "5200", "52ff", "7000000007", "70fffffffe"])
def test_a_ttl_can_be_taken_out(after: str, descriptor: str, enclose: Any, ttl: str) -> None:
    count = {"": 3, "40": 4, "427000000001": 5}[after]
    body = b"\x00\x53\x75\xa0\x01x"

    def message(its_ttl: str) -> bytes:
        items = bytes.fromhex("415007" + its_ttl + after)
        return bytes(bytes.fromhex(descriptor) + enclose(items, count) + body)

    assert without_ttl(message(ttl)) == message("40")
    assert without_ttl(message("40")) == message("40")


def test_what_has_no_ttl_is_left_alone() -> None:
    for octets in (b"", bytes.fromhex("00537045"), bytes.fromhex("005375a00178")):
        assert without_ttl(octets) == octets


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("43", "43"),
        ("5205", "5203"),
        ("7000010000", "7000000003"),
    ],
)
def test_a_ttl_is_written_over_a_longer_one(before: str, after: str) -> None:
    octets = bytearray.fromhex("4140" + before + "00")
    write_ttl(octets, 3, 0 if before == "43" else 3)
    assert octets.hex() == "4140" + after + "00"


# What annotations may look like, and what is left of them without those that begin with x-opt-qd.:
# every way to write a map, a key and a value.
USERS = [
    "a30178 5401",
    "b30000000178 7100000001",
    "5305 40",
    "8000000000000000ff a1026162",
    "a30179 00a301 7a c003025401".replace(" ", ""),
    "a3017a d10000000400000000",
    "a1017a e0040154 0101".replace(" ", ""),
]
OWN = [
    "a30b" + b"x-opt-qd.to".hex() + "a10171",
    "b30000000e" + b"x-opt-qd.trace".hex() + "45",
    "a109" + b"x-opt-qd.".hex() + "40",
]
BODY = "00537740"


def map8(*entries: str) -> str:
    items = bytes.fromhex("".join(entries))
    return f"c1{len(items) + 1:02x}{2 * len(entries):02x}{items.hex()}"


def map32(*entries: str) -> str:
    items = bytes.fromhex("".join(entries))
    return f"d1{len(items) + 4:08x}{2 * len(entries):08x}{items.hex()}"


def is_own(key: str) -> bool:
    return key.startswith("x-opt-qd.")


@pytest.mark.parametrize("header", ["", "005370c0020141"])
@pytest.mark.parametrize("descriptor", ["005372", "00800000000000000072"])
@pytest.mark.parametrize("encode", [map8, map32])
@pytest.mark.parametrize("users", [USERS, USERS[:1], USERS[3:5]])
@pytest.mark.parametrize("at", [0, 1, 99])
def test_what_is_taken_leaves_the_rest_octet_for_octet(
    header: str, descriptor: str, encode: Any, users: list[str], at: int
) -> None:
    both = [*users[:at], *OWN, *users[at:]]
    octets = bytes.fromhex(header + descriptor + encode(*both) + BODY)
    left, taken = take_annotations(octets, is_own)
    assert left == bytes.fromhex(header + descriptor + encode(*users) + BODY)
    assert [entry.octets for entry in taken] == [bytes.fromhex(each) for each in OWN]
    assert [entry.value() for entry in taken] == ["q", [], None]
    assert take_annotations(left, is_own) == (left, ())


@pytest.mark.parametrize("encode", [map8, map32])
def test_a_section_in_which_nothing_is_left_is_none(encode: Any) -> None:
    octets = bytes.fromhex("005370c0020141" + "005372" + encode(*OWN) + BODY)
    assert take_annotations(octets, is_own)[0] == bytes.fromhex("005370c0020141" + BODY)


@pytest.mark.parametrize("encode", [map8, map32])
def test_an_empty_map_stays_as_it_is(encode: Any) -> None:
    octets = bytes.fromhex("005372" + encode() + BODY)
    assert take_annotations(octets, is_own) == (octets, ())


@pytest.mark.parametrize("header", ["", "005370c0020141"])
def test_what_is_added_comes_last(header: str) -> None:
    entry = encode_entry("x-opt-a", "b").hex()
    for users in ([], USERS):
        for encode in (map8, map32):
            octets = bytes.fromhex(header + "005372" + encode(*users) + BODY)
            changed = change_annotations(octets, is_own, [bytes.fromhex(entry)] * 2)
            assert changed.hex() == header + "005372" + encode(*users, entry, entry) + BODY
    added = change_annotations(bytes.fromhex(header + BODY), is_own, [bytes.fromhex(entry)])
    assert added.hex() == header + "005372" + map8(entry) + BODY


@pytest.mark.parametrize(("size", "encode"), [(254, map8), (255, map32), (70000, map32)])
def test_a_map_that_grows_gets_a_larger_size(size: int, encode: Any) -> None:
    octets = bytes.fromhex("005372" + map8(USERS[0]) + BODY)
    entry = bytes.fromhex("a301 62 b0".replace(" ", ""))
    length = size - len(bytes.fromhex(USERS[0])) - len(entry) - 4
    entry += length.to_bytes(4, "big") + bytes(length)
    changed = change_annotations(octets, is_own, [entry])
    assert changed.hex() == "005372" + encode(USERS[0], entry.hex()) + BODY


def test_a_map_with_many_entries_gets_a_larger_count() -> None:
    entries = ["43 40".replace(" ", "")] * 127
    octets = bytes.fromhex("005372c1ff fe".replace(" ", "") + "".join(entries) + BODY)
    entry = "4441"
    changed = change_annotations(octets, is_own, [bytes.fromhex(entry)])
    assert changed.hex() == "005372" + map32(*entries, entry) + BODY


@pytest.mark.parametrize(
    "annotations",
    [
        "c10101",  # an odd count
        "c1020140",
        "c10102",  # fewer entries than it counts
        "c1020240",
        "c103004040",  # more than it counts
        "c100",
        "d100000000",
        "d10000000300000000",
        "c10302a301",  # a key that ends outside
        "c1040240a302",
        "c103023f40",  # no value
        "c103024000",
    ],
)
def test_annotations_that_are_no_map(annotations: str) -> None:
    octets = bytes.fromhex("005372" + annotations)
    with pytest.raises(AmqpError, match="amqp:decode-error"):
        take_annotations(octets, is_own)
    assert revise(octets, 0, failed=False, annotations={K: 1}) is None


def test_merged_annotations_leave_the_others_octet_for_octet() -> None:
    old = encode_entry(K, "old").hex()
    octets = bytes.fromhex("005372" + map32(USERS[1], old, *USERS[3:]) + BODY)
    again = revise(octets, 0, failed=False, annotations={K: "new"})
    new = encode_entry(K, "new").hex()
    assert again is not None
    assert again.hex() == "005372" + map32(USERS[1], *USERS[3:], new) + BODY


def test_what_follows_the_annotations_may_have_come_in_part() -> None:
    head = bytes.fromhex("005370c0020141" + "005372" + map8(USERS[0]))
    entry = encode_entry("x-opt-a", "b")
    expected = bytes.fromhex("005370c0020141" + "005372" + map8(USERS[0], entry.hex()))
    for rest in (b"", b"\x00", b"\x00\x53", b"\x00\x53\x73\xc0", b"\x00\x80\x00"):
        assert change_annotations(head + rest, is_own, [entry]) == expected + rest
    head = bytes.fromhex("005370c0020141")
    expected = bytes.fromhex("005370c0020141" + "005372" + map8(entry.hex()))
    for rest in (b"", b"\x00", b"\x00\x53", b"\x00\x53\x73\xc0", b"\x00\x80\x00"):
        assert change_annotations(head + rest, is_own, [entry]) == expected + rest
