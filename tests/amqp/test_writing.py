"""The hand-written writers write the octets of the table-driven codec; the buffer loses none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from router.amqp.composite import encode_composite
from router.amqp.constants import MIN_MAX_FRAME_SIZE, Descriptor
from router.amqp.framing import encode_frame
from router.amqp.performatives import (
    Accepted,
    Disposition,
    Error,
    Flow,
    Modified,
    Rejected,
    Released,
    Transfer,
)
from router.amqp.types import Symbol
from router.amqp.writing import Output, write_disposition, write_flow, write_transfer

from support.examples import examples

UINTS = st.sampled_from([0, 1, 255, 256, 2**31, 2**32 - 1]) | st.integers(0, 2**32 - 1)
CHANNELS = st.sampled_from([0, 1, 255, 256, 65535])
OVERHEAD = 72  # of a transfer, which sessions take off the peer's frame size


def written(output: Output) -> bytes:
    return bytes(output.waiting())


@examples(400)
@given(
    channel=CHANNELS,
    handle=UINTS,
    first=st.booleans(),
    delivery_id=UINTS,
    tag=st.none() | st.binary(max_size=32),
    word=st.binary(max_size=8),
    message_format=UINTS,
    settled=st.booleans(),
    more=st.booleans(),
    aborted=st.booleans(),
    payload=st.binary(max_size=600),
    data=st.data(),
)
@pytest.mark.spec("2.3.1-1", "2.6.12-1", "2.7.5-1", "2.7.5-3", "2.7.5-5")
def test_transfers(
    channel: int,
    handle: int,
    first: bool,
    delivery_id: int,
    tag: bytes | None,
    word: bytes,
    message_format: int,
    settled: bool,
    more: bool,
    aborted: bool,
    payload: bytes,
    data: st.DataObject,
) -> None:
    start = data.draw(st.integers(0, len(payload)))
    count = data.draw(st.integers(0, len(payload) - start))
    output = Output()
    write_transfer(
        output, channel, handle, first, delivery_id, tag, len(word),
        int.from_bytes(word, "big"), message_format, settled, more, aborted,
        memoryview(payload), start, count,
    )  # fmt: skip
    begun: dict[str, Any] = {}
    if first:
        made = (word or b"\xfe" + delivery_id.to_bytes(4, "big")) if tag is None else tag
        begun = {
            "delivery_id": delivery_id,
            "delivery_tag": made,
            "message_format": message_format,
        }
    expected = Transfer(handle, settled=settled, more=more, aborted=aborted, **begun)
    part = payload[start : start + count]
    assert written(output) == encode_frame(channel, expected, part)
    assert len(written(output)) <= count + OVERHEAD


LONG = Rejected(Error(Symbol("amqp:internal-error"), description="x" * 300))
STATES = [Modified(delivery_failed=True), Rejected(Error(Symbol("x"))), LONG]
BORDER = [
    Rejected(Error(Symbol("x"), description="y" * length)) for length in (215, 220, 225, 230, 235)
]


@examples(400)
@given(
    channel=CHANNELS,
    from_receiver=st.booleans(),
    first=UINTS,
    last=UINTS,
    settled=st.booleans(),
    state=st.sampled_from([None, Accepted(), Released(), *STATES, *BORDER]),
)
def test_dispositions(
    channel: int, from_receiver: bool, first: int, last: int, settled: bool, state: Any
) -> None:
    expected = encode_frame(channel, Disposition(from_receiver, first, last, settled, state))
    as_octets = b"" if state is None else encode_composite(state)
    code = 0 if state is None else int(type(state).CODE)
    ways = [(b"..", 1, 0)] if state is None or state in (Accepted(), Released()) else []
    if state is not None:
        ways.append((b".." + as_octets + b"..", 2, len(as_octets)))
    for octets, start, count in ways:
        output = Output()
        write_disposition(
            output, channel, from_receiver, first, last, settled, code,
            memoryview(octets), start, count,
        )  # fmt: skip
        assert written(output) == expected


@pytest.mark.parametrize(
    "code", [Descriptor.ACCEPTED, Descriptor.REJECTED, Descriptor.RELEASED, Descriptor.MODIFIED]
)
def test_a_state_may_be_its_code_alone(code: Descriptor) -> None:
    output = Output()
    write_disposition(output, 0, True, 1, 1, True, int(code), b"", 0, 0)
    assert bytes((0x00, 0x53, code, 0xC0, 0x01, 0x00)) in written(output)


@examples(300)
@given(
    channel=CHANNELS,
    numbers=st.lists(UINTS, min_size=8, max_size=8),
    has_link=st.booleans(),
    drain=st.booleans(),
    echo=st.booleans(),
)
@pytest.mark.spec("2.7.4-4", "2.7.4-8", "2.7.4-11", "2.7.4-16")
def test_flows(channel: int, numbers: list[int], has_link: bool, drain: bool, echo: bool) -> None:
    output = Output()
    one, two, three, four, five, six, seven, eight = numbers
    write_flow(
        output, channel, one, two, three, four, has_link, five, six, seven, eight, drain, echo
    )
    fields: dict[str, Any] = {
        "next_incoming_id": one,
        "incoming_window": two,
        "next_outgoing_id": three,
        "outgoing_window": four,
        "echo": echo,
    }
    if has_link:
        fields |= {"handle": five, "delivery_count": six, "link_credit": seven}
        fields |= {"available": eight, "drain": drain}
    expected = encode_frame(channel, Flow(**fields))
    if not has_link:
        # drain is not set then (section 2.7.4), where the table's codec writes its default
        expected = expected[:-3] + b"\x40" + expected[-2:]
    assert written(output) == expected


def test_the_smallest_frame_size_holds_all_of_them() -> None:
    """A flow or a plain disposition is never larger than what every peer takes (section 2.8.19)."""
    output = Output()
    top = 2**32 - 1
    write_flow(output, 65535, top, top, top, top, True, top, top, top, top, True, True)
    write_disposition(output, 65535, True, top, top, True, int(Descriptor.RELEASED), b"", 0, 0)
    assert len(written(output)) < MIN_MAX_FRAME_SIZE


def test_frames_follow_one_another() -> None:
    output = Output()
    expected = b""
    for number in range(300):
        size = 2 + number % 7
        write_transfer(
            output, 0, 0, True, number, None, size, number, 0, False, False, False,
            memoryview(b"x" * 50), 0, 50,
        )  # fmt: skip
        tag = number.to_bytes(size, "big")
        expected += encode_frame(0, Transfer(0, number, tag, 0, settled=False), b"x" * 50)
        if number % 7 == 6:
            assert written(output)[:100] == expected[:100]
            output.sent(100)
            expected = expected[100:]
    assert written(output) == expected


def test_no_octet_past_the_payload_is_read() -> None:
    payload = memoryview(b"12345678")
    for start, count in ((0, 9), (8, 1), (4, 5), (-1, 1), (0, -1), (2**40, 1)):
        output = Output()
        with pytest.raises(IndexError):
            write_transfer(
                output, 0, 0, True, 0, None, 1, 0, 0, False, False, False, payload, start, count
            )
        # the frame that could not be written was not begun
        assert output.size() == 0


class OutputMachine(RuleBasedStateMachine):
    """The buffer beside a plain byte string."""

    def __init__(self) -> None:
        super().__init__()
        self.output = Output()
        self.model = b""
        self.most = 0

    @rule(data=st.binary(max_size=40), times=st.sampled_from([1, 2, 100, 30_000]))
    def append(self, data: bytes, times: int) -> None:
        self.output.append(data * times)
        self.model += data * times
        self.most = max(self.most, len(self.model))

    @rule(share=st.floats(0, 1))
    def send(self, share: float) -> None:
        count = int(len(self.model) * share)
        self.output.sent(count)
        self.model = self.model[count:]

    @rule()
    def send_all(self) -> None:
        self.output.sent(len(self.model))
        self.model = b""

    @rule()
    def trim(self) -> None:
        self.output.trim()
        if not self.model:
            assert len(self.output.octets) == 0

    @rule(count=st.integers(0, 100_000))
    def reserve(self, count: int) -> None:
        self.output.reserve(count)
        assert len(self.output.octets) - self.output.end >= count

    @rule()
    def clear(self) -> None:
        self.output.clear()
        self.model = b""

    @invariant()
    def holds_what_was_written(self) -> None:
        assert self.output.size() == len(self.model)
        assert written(self.output) == self.model

    @invariant()
    def takes_no_more_memory_than_it_needs(self) -> None:
        assert len(self.output.octets) <= max(4096, 4 * (self.most + 100_000))


TestOutput = OutputMachine.TestCase
TestOutput.settings = settings(examples(50), stateful_step_count=25)


def test_a_steady_stream_does_not_grow_the_buffer() -> None:
    output = Output()
    for _ in range(2000):
        output.append(b"x" * 1000)
        output.sent(900 if output.size() > 1500 else 500)
        output.sent(max(0, output.size() - 1000))
    assert len(output.octets) <= 8192


def test_the_memory_of_a_large_pass_is_given_back() -> None:
    output = Output()
    output.append(bytes(3_000_000))
    output.sent(2_999_999)
    assert len(output.octets) >= 3_000_000
    output.sent(1)
    assert len(output.octets) == 0
    output.append(b"x")
    assert written(output) == b"x"
