"""The hand-written readers read what the table-driven codec reads, however it is encoded."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.amqp.composite import composite_from, encode_composite
from router.amqp.constants import Descriptor
from router.amqp.decode import decode_value
from router.amqp.framing import decode_frame_body
from router.amqp.performatives import (
    Accepted,
    Disposition,
    Flow,
    Modified,
    Received,
    Rejected,
    Released,
    Transfer,
)
from router.amqp.reading import Cursor, TransferFrame
from router.amqp.reading_disposition import DispositionFrame
from router.amqp.reading_flow import FlowFrame
from router.errors import AmqpError, Scope

from support.examples import examples
from support.wire import composites, cut_short

NO_VALUE = 2**64 - 1
ABSENT = 7
PAST = b"\xff" * 16


def cursor_at(octets: bytes, *, past: bytes = b"") -> Cursor:
    """Return a cursor over these octets, followed by others outside its range."""
    cursor = Cursor()
    cursor.move(memoryview(octets + past), 0, len(octets))
    return cursor


# The cursor's own steps.

UINTS = {"40": ABSENT, "43": 0, "5200": 0, "52ff": 255, "7000000000": 0, "70fffffffe": 2**32 - 2}
UBYTES = {"40": ABSENT, "5000": 0, "50ff": 255}
BOOLEANS = {"40": True, "41": True, "42": False, "5600": False, "5601": True}
BINARIES = {
    "40": None,
    "a000": b"",
    "a0026162": b"ab",
    "b000000000": b"",
    "b0000000026162": b"ab",
    "a0ff" + "61" * 255: b"a" * 255,
}
STRINGS = {"a100": b"", "a102c3a9": b"\xc3\xa9", "b100000001ff": b"\xff"}
NO_STRINGS = ["40", "43", "a30161", "45", "98" + "00" * 16, "0053104501"[:8], "c00100"]
DESCRIPTORS = {
    "00530045": 0,
    "0053ff45": 255,
    "0080000000000000001445": 0x14,
    "0080ffffffffffffffff45": 2**64 - 1,
    "004445": 0,
}
NO_DESCRIPTORS = ["45", "00a30161 45", "0040 45", "c00100", "", "00", "0053", "5300 45"]
LISTS = {"45": 0, "c00100": 0, "c0020140": 1, "d00000000400000000": 0, "d0000000050000000140": 1}


def left(cursor: Cursor) -> int:
    """Octets that have not been taken."""
    return int(cursor.end - cursor.at)


@pytest.mark.parametrize("past", [b"", PAST])
@pytest.mark.parametrize(("octets", "value"), UINTS.items())
def test_uints(octets: str, value: int, past: bytes) -> None:
    cursor = cursor_at(bytes.fromhex(octets), past=past)
    assert cursor.take_uint(ABSENT) == value
    assert left(cursor) == 0


@pytest.mark.parametrize("past", [b"", PAST])
@pytest.mark.parametrize(("octets", "value"), UBYTES.items())
def test_ubytes(octets: str, value: int, past: bytes) -> None:
    cursor = cursor_at(bytes.fromhex(octets), past=past)
    assert cursor.take_ubyte(ABSENT) == value
    assert left(cursor) == 0


@pytest.mark.parametrize("past", [b"", PAST])
@pytest.mark.parametrize(("octets", "value"), BOOLEANS.items())
def test_booleans(octets: str, value: bool, past: bytes) -> None:
    cursor = cursor_at(bytes.fromhex(octets), past=past)
    assert bool(cursor.take_boolean(True)) is value
    assert left(cursor) == 0
    assert not cursor_at(b"\x40").take_boolean(False)


@pytest.mark.parametrize("past", [b"", PAST])
@pytest.mark.parametrize(("octets", "value"), BINARIES.items())
def test_binaries(octets: str, value: bytes | None, past: bytes) -> None:
    whole = bytes.fromhex(octets)
    cursor = cursor_at(whole, past=past)
    assert bool(cursor.take_binary()) is (value is not None)
    assert whole[cursor.value_at : cursor.value_end] == (value or b"")
    assert left(cursor) == 0


@pytest.mark.parametrize(("octets", "value"), STRINGS.items())
def test_strings(octets: str, value: bytes) -> None:
    whole = bytes.fromhex(octets)
    cursor = cursor_at(whole)
    assert cursor.take_string()
    assert whole[cursor.value_at : cursor.value_end] == value


@pytest.mark.parametrize("octets", NO_STRINGS)
def test_what_is_no_string_is_stepped_over(octets: str) -> None:
    cursor = cursor_at(bytes.fromhex(octets))
    assert not cursor.take_string()
    assert left(cursor) == 0


@pytest.mark.parametrize(("octets", "code"), DESCRIPTORS.items())
def test_descriptors(octets: str, code: int) -> None:
    cursor = cursor_at(bytes.fromhex(octets))
    assert cursor.take_descriptor() == code
    assert left(cursor) == 1


@pytest.mark.parametrize("octets", NO_DESCRIPTORS)
def test_what_is_no_numeric_descriptor_stays(octets: str) -> None:
    cursor = cursor_at(bytes.fromhex(octets))
    assert cursor.take_descriptor() == NO_VALUE
    assert cursor.at == 0


@pytest.mark.parametrize(("octets", "count"), LISTS.items())
def test_lists_are_entered(octets: str, count: int) -> None:
    whole = bytes.fromhex(octets)
    cursor = cursor_at(whole, past=PAST)
    assert cursor.enter_list() == count
    assert cursor.value_end == len(whole)
    assert left(cursor) == count


TAKES = ["take_u8", "take_u32", "take_u64", "enter_list", "take_binary", "take_string", "skip"]
CAN_BE_ABSENT = ["take_uint", "take_ubyte", "take_boolean"]


def outcomes(octets: bytes, past: bytes) -> list[Any]:
    """Return the result of every cursor step on these octets."""
    found: list[Any] = []
    for name in [*TAKES, *CAN_BE_ABSENT]:
        cursor = cursor_at(octets, past=past)
        try:
            value = getattr(cursor, name)(*([False] if name in CAN_BE_ABSENT else []))
        except AmqpError as error:
            found.append((name, str(error.condition), error.scope))
        else:
            assert 0 <= cursor.at <= cursor.end
            found.append((name, value, cursor.at))
    return found


def refusals(found: list[Any]) -> set[Any]:
    """With what the steps that could not be made were refused."""
    return {tuple(each[1:]) for each in found if isinstance(each[1], str)}


@given(st.binary(max_size=12))
def test_no_step_sees_what_lies_past_the_end(octets: bytes) -> None:
    found = outcomes(octets, b"")
    assert found == outcomes(octets, PAST) == outcomes(octets, bytes(16))
    assert refusals(found) <= {("amqp:decode-error", Scope.CONNECTION)}


def test_every_constructor_is_taken_or_refused() -> None:
    for constructor, rest in itertools.product(range(256), (b"", b"\0", b"\0" * 20, b"\xff" * 20)):
        outcomes(bytes((constructor,)) + rest, b"")


@pytest.mark.parametrize(
    "octets",
    ["c000", "c0ff00", "c00101", "c0020240", "d000000003", "d0ffffffff00000000",
     "d00000000400000001", "d000000004ffffffff", "c10100", "40"],
)  # fmt: skip
def test_a_list_that_cannot_be_is_refused(octets: str) -> None:
    with pytest.raises(AmqpError, match="list"):
        cursor_at(bytes.fromhex(octets)).enter_list()


@pytest.mark.parametrize(
    ("at", "end"), [(-1, 4), (0, 5), (5, 5), (3, 2), (2**40, 2**40), (0, 2**62)]
)
def test_a_cursor_does_not_leave_its_memory(at: int, end: int) -> None:
    with pytest.raises(AmqpError):
        Cursor().move(memoryview(b"1234"), at, end)


def test_a_step_of_no_or_any_length() -> None:
    cursor = cursor_at(b"1234")
    cursor.advance(0)
    cursor.advance(4)
    for count in (1, -1, -4, 2**62):
        with pytest.raises(AmqpError):
            cursor.advance(count)
    assert cursor.at == 4


def test_descriptors_upon_descriptors_are_stepped_over_without_recursion() -> None:
    cursor = cursor_at(b"\x00\x43" * 100_000 + b"\x41")
    cursor.skip()
    assert left(cursor) == 0


# Whole frames, beside the table-driven codec.

STATES = st.sampled_from([Accepted(), Released(), Modified(True), Rejected(), Received(1, 2)])


def read(kind: Any, octets: bytes, past: bytes = b"") -> Any:
    """Read a frame's body by hand."""
    cursor = cursor_at(octets, past=past)
    assert cursor.take_descriptor() in {
        int(Descriptor.TRANSFER),
        int(Descriptor.DISPOSITION),
        int(Descriptor.FLOW),
    }
    frame = kind()
    if kind is not FlowFrame:
        frame.octets = memoryview(octets + past)
    frame.read(cursor)
    return frame


def composite_or_described(value: Any) -> Any:
    """Make a delivery state of a described value, as the table-driven codec does."""
    try:
        return composite_from(value, "a state")
    except AmqpError:
        return value


def check_transfer(octets: bytes, past: bytes = b"") -> None:
    expected, after = decode_frame_body(octets)
    assert isinstance(expected, Transfer)
    frame = read(TransferFrame, octets, past)
    whole = octets + past
    assert frame.handle == expected.handle
    assert bool(frame.has_delivery_id) is (expected.delivery_id is not None)
    if expected.delivery_id is not None:
        assert frame.delivery_id == expected.delivery_id
    assert bool(frame.has_delivery_tag) is (expected.delivery_tag is not None)
    if expected.delivery_tag is not None:
        assert whole[frame.tag_at : frame.tag_end] == expected.delivery_tag
    assert frame.message_format == (expected.message_format or 0)
    assert bool(frame.settled) is bool(expected.settled)
    assert bool(frame.more) is expected.more
    mode = expected.rcv_settle_mode
    assert frame.rcv_settle_mode == (-1 if mode is None else mode)
    assert frame.is_unusual == (mode is not None or expected.state is not None or expected.resume)
    assert (frame.state_end > 0) is (expected.state is not None)
    if expected.state is not None:
        state, _ = decode_value(whole[frame.state_at : frame.state_end])
        assert getattr(composite_or_described(state), "CODE", None) == getattr(
            expected.state, "CODE", None
        )
    for name in ("resume", "aborted", "batchable"):
        assert bool(getattr(frame, name)) is getattr(expected, name)
    assert whole[frame.payload_at : frame.end] == octets[after:]


def check_disposition(octets: bytes, past: bytes = b"") -> None:
    expected, _ = decode_frame_body(octets)
    assert isinstance(expected, Disposition)
    frame = read(DispositionFrame, octets, past)
    assert bool(frame.from_receiver) is expected.role
    assert frame.first == expected.first
    assert frame.last == (expected.first if expected.last is None else expected.last)
    assert bool(frame.settled) is expected.settled
    assert bool(frame.batchable) is expected.batchable
    state = octets[frame.state_at : frame.state_end]
    if expected.state is None:
        assert (frame.state_code, state, bool(frame.plain)) == (0, b"", True)
    elif frame.state_code == 0xFF:
        assert not frame.plain
        assert state
    else:
        assert frame.state_code == getattr(type(expected.state), "CODE", None)


def check_flow(octets: bytes, past: bytes = b"") -> None:
    expected, _ = decode_frame_body(octets)
    assert isinstance(expected, Flow)
    frame = read(FlowFrame, octets, past)
    for name in ("next_incoming_id", "handle", "delivery_count", "link_credit"):
        value = getattr(expected, name)
        assert bool(getattr(frame, f"has_{name}")) is (value is not None), name
        if value is not None:
            assert getattr(frame, name) == value, name
    for name in ("incoming_window", "next_outgoing_id", "outgoing_window"):
        assert getattr(frame, name) == getattr(expected, name), name
    assert frame.available == (expected.available or 0)
    assert bool(frame.drain) is expected.drain
    assert bool(frame.echo) is expected.echo


CHECKS: dict[type, Any] = {
    Transfer: check_transfer,
    Disposition: check_disposition,
    Flow: check_flow,
}
KINDS: dict[type, Any] = {
    Transfer: TransferFrame,
    Disposition: DispositionFrame,
    Flow: FlowFrame,
}


@pytest.mark.parametrize("past", [b"", PAST])
@pytest.mark.parametrize("kind", CHECKS)
@given(data=st.data())
@examples(150)
def test_any_fields(kind: Any, past: bytes, data: st.DataObject) -> None:
    frame = data.draw(composites(kind))
    payload = data.draw(st.binary(max_size=9)) if kind is Transfer else b""
    CHECKS[kind](encode_composite(frame) + payload, past)


# Each field in each encoding that it may have; None where it may not be null.
_UINT = ["43", "5200", "5207", "7000000000", "70ffffffff"]
_UINT_OR_NULL = ["40", *_UINT]
_BOOLEAN = ["40", "41", "42", "5600", "5601"]
_STATE = [
    "40",
    "00532445",
    "005324c00100",
    "005324d00000000400000000",
    "0080000000000000002445",
    "005326c00100",
    "005327c0020141",
    "005323c003024344",
    "00a312616d71703a61636365707465643a6c69737445",
    "00a3036e6577a10178",
    "0053ffc00100",
]
VARIANTS: dict[type, list[list[str]]] = {
    Transfer: [
        _UINT,
        _UINT_OR_NULL,
        ["40", "a000", "a0024142", "b0000000024142", "a020" + "41" * 32],
        _UINT_OR_NULL,
        _BOOLEAN,
        _BOOLEAN,
        ["40", "5000", "5001"],
        _STATE,
        _BOOLEAN,
        _BOOLEAN,
        _BOOLEAN,
    ],
    Disposition: [["41", "42", "5600", "5601"], _UINT, _UINT_OR_NULL, _BOOLEAN, _STATE, _BOOLEAN],
    Flow: [
        _UINT_OR_NULL,
        _UINT,
        _UINT,
        _UINT,
        _UINT_OR_NULL,
        _UINT_OR_NULL,
        _UINT_OR_NULL,
        _UINT_OR_NULL,
        _BOOLEAN,
        _BOOLEAN,
        ["40", "c10100", "c10602a301615207", "d10000000400000000"],
    ],
}
MANDATORY = {Transfer: 1, Disposition: 2, Flow: 4}


@st.composite
def bodies(draw: st.DrawFn, kind: Any) -> bytes:
    """Draw a frame's body with every field in any encoding, trailing ones left out or not."""
    variants = VARIANTS[kind]
    count = draw(st.integers(MANDATORY[kind], len(variants)))
    fields = [bytes.fromhex(draw(st.sampled_from(each))) for each in variants[:count]]
    items = b"".join(fields)
    code = bytes((kind.CODE,))
    descriptor = draw(st.sampled_from([b"\x00\x53" + code, b"\x00\x80" + bytes(7) + code]))
    if draw(st.booleans()) and len(items) < 250:
        return descriptor + bytes((0xC0, len(items) + 1, count)) + items
    sizes = (len(items) + 4).to_bytes(4, "big") + count.to_bytes(4, "big")
    return descriptor + b"\xd0" + sizes + items


@pytest.mark.parametrize("kind", CHECKS)
@given(data=st.data())
@examples(300)
def test_any_encoding(kind: Any, data: st.DataObject) -> None:
    CHECKS[kind](data.draw(bodies(kind)), data.draw(st.sampled_from([b"", PAST])))


@pytest.mark.parametrize("kind", CHECKS)
@given(data=st.data())
@examples(60)
def test_a_frame_cut_short_is_refused(kind: Any, data: st.DataObject) -> None:
    body = data.draw(bodies(kind))
    start = 3 if body[1] == 0x53 else 10
    for short in cut_short(body):
        for past in (b"", PAST, body[len(short) :]):
            if len(short) >= start:
                with pytest.raises(AmqpError):
                    read(KINDS[kind], short, past)


@pytest.mark.parametrize("kind", CHECKS)
@given(data=st.data())
@examples(300)
def test_a_damaged_frame_is_read_or_refused(kind: Any, data: st.DataObject) -> None:
    body = bytearray(data.draw(bodies(kind)))
    start = 3 if body[1] == 0x53 else 10
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(start, len(body) - 1))] = data.draw(st.integers(0, 255))
    octets = bytes(body)
    try:
        read(KINDS[kind], octets)
    except AmqpError:
        return
    # What was read stays the same whatever lies behind it.
    read(KINDS[kind], octets, PAST)


@pytest.mark.spec("1.3.4-1", "1.3.5-1")
@pytest.mark.parametrize(
    ("kind", "items", "count"),
    [
        (Transfer, "", 0),
        (Transfer, "40", 1),
        (Transfer, "43" + "40" * 11, 12),
        (Transfer, "4343a021" + "41" * 33, 3),
        (Transfer, "4343", 1),
        (Transfer, "43a000", 2),
        (Transfer, "43434040404044", 7),
        (Transfer, "434340404040" + "5002", 7),
        (Disposition, "", 0),
        (Disposition, "41", 1),
        (Disposition, "5601", 2),
        (Disposition, "4140", 2),
        (Disposition, "4043", 2),
        (Disposition, "4143" + "40" * 5, 7),
        (Disposition, "414343", 2),
    ],
)
@pytest.mark.parametrize("past", [b"", PAST, bytes(16)])
def test_fields_that_cannot_be_are_refused(kind: Any, items: str, count: int, past: bytes) -> None:
    octets = bytes.fromhex(items)
    body = bytes((0x00, 0x53, kind.CODE, 0xC0, len(octets) + 1, count)) + octets
    with pytest.raises(AmqpError) as caught:
        read(KINDS[kind], body, past)
    assert caught.value.scope is Scope.CONNECTION


def test_an_object_read_into_again_keeps_nothing() -> None:
    """One object reads all frames of a connection."""
    for kind in CHECKS:
        frame = KINDS[kind]()
        full = bytes.fromhex("".join(each[-1] for each in VARIANTS[kind]))
        least = bytes.fromhex("".join(each[0] for each in VARIANTS[kind][: MANDATORY[kind]]))
        octets = b""
        for items, count in ((full, len(VARIANTS[kind])), (least, MANDATORY[kind])):
            sizes = (len(items) + 4).to_bytes(4, "big") + count.to_bytes(4, "big")
            octets = b"\xd0" + sizes + items
            cursor = cursor_at(octets)
            frame.read(cursor)
        fresh = KINDS[kind]()
        fresh.read(cursor_at(octets))
        fields = [name for name in dir(fresh) if not name.startswith(("_", "octets"))]
        names = [name for name in fields if not callable(getattr(fresh, name))]
        told = [name for name in names if getattr(fresh, f"has_{name}", True)]
        for name in set(told) - {"tag_at", "tag_end"}:
            assert getattr(frame, name) == getattr(fresh, name), (kind, name)
