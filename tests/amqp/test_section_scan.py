"""Sections followed through frames: what is let through, what is found wrong, what is noted."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from router.amqp.constants import Descriptor
from router.amqp.message import Header, Message, encode_message, section_spans
from router.amqp.peek import PRIORITY, find_header
from router.amqp.reading import TransferFrame
from router.amqp.section_scan import SectionScan, is_plain, priority_in

from support.examples import examples
from support.wire import messages

BEFORE = b"\xff" * 7

HEADER = bytes.fromhex("005370c0020141")
DELIVERY = bytes.fromhex("005371c10100")
MESSAGE = bytes.fromhex("005372d10000000400000000")
PROPERTIES = bytes.fromhex("00537345")
APPLICATION = bytes.fromhex("005374c10100")
DATA = bytes.fromhex("005375a0026162")
SEQUENCE = bytes.fromhex("005376c0020141")
VALUE = bytes.fromhex("00537740")
FOOTER = bytes.fromhex("005378c10100")


def frame_of(payload: bytes, *, more: bool = False) -> TransferFrame:
    """Return a transfer with this payload, and other octets before and behind it."""
    frame = TransferFrame()
    frame.more = more
    frame.octets = memoryview(BEFORE + payload + b"\x00\x53\x70")
    frame.payload_at = len(BEFORE)
    frame.end = len(BEFORE) + len(payload)
    return frame


def scanned(*payloads: bytes) -> SectionScan:
    """Scan a message whose frames carry these payloads."""
    scan = SectionScan()
    for number, payload in enumerate(payloads, 1):
        if not scan.feed(frame_of(payload, more=number < len(payloads))):
            return scan
    scan.finish()
    return scan


def octets_of(sections: str) -> bytes:
    """Sections by their initials, in this order."""
    known = dict(
        zip(
            "HDMPABSVF",
            [HEADER, DELIVERY, MESSAGE, PROPERTIES, APPLICATION, DATA, SEQUENCE, VALUE, FOOTER],
            strict=True,
        )
    )
    return b"".join(known[each] for each in sections)


@pytest.mark.parametrize(
    "sections",
    [
        "",
        "H",
        "V",
        "HV",
        "HDMPABF",
        "HDMPABBBF",
        "HDMPASSF",
        "DV",
        "MV",
        "PV",
        "AV",
        "HB",
        "BF",
        "VF",
    ],
)
def test_sections_in_their_order(sections: str) -> None:
    octets = octets_of(sections)
    for at in range(len(octets) + 1):
        assert scanned(octets[:at], octets[at:]).problem == ""
    assert scanned(*(octets[at : at + 1] for at in range(len(octets)))).problem == ""


@pytest.mark.parametrize(
    ("sections", "problem"),
    [
        ("HH", "the header section after the header section"),
        ("DH", "the header section after the delivery-annotations section"),
        ("PMV", "the message-annotations section after the properties section"),
        ("AAV", "the application-properties section after the application-properties section"),
        ("VV", "the amqp-value section after the amqp-value section"),
        ("BV", "the amqp-value section after the data section: a body has one kind of section"),
        ("BS", "the amqp-sequence section after the data section: a body has one kind of section"),
        ("SB", "the data section after the amqp-sequence section"),
        ("BFF", "the footer section after the footer section"),
        ("BFB", "the data section after the footer section"),
        ("BP", "the properties section after the data section"),
    ],
)
def test_sections_out_of_order(sections: str, problem: str) -> None:
    octets = octets_of(sections)
    assert scanned(octets).problem == problem
    for at in range(len(octets)):
        assert scanned(octets[:at], octets[at:]).problem == problem


@pytest.mark.parametrize(
    ("octets", "problem"),
    [
        ("40", "octet 0x40 where a section begins"),
        ("005370c10100", "constructor 0xc1 in the header section"),
        ("005371c00100", "constructor 0xc0 in the delivery-annotations section"),
        ("00537240", "constructor 0x40 in the message-annotations section"),
        ("005373a000", "constructor 0xa0 in the properties section"),
        ("005375a100", "constructor 0xa1 in the data section"),
        ("005376f0", "constructor 0xf0 in the amqp-sequence section"),
        ("00537712", "constructor 0x12 in the amqp-value section"),
        ("0053770053013f", "constructor 0x3f in the amqp-value section"),
        ("00532445", "descriptor 0x24 does not name a section"),
        ("00800000000100000070c00100", "descriptor 0xffff does not name a section"),
        ("00a30161c00100", "descriptor 0x00 does not name a section"),
        ("00b3ffffffff61", "a descriptor of 4294967295 octets does not name a section"),
        ("005201", "constructor 0x52 where a section's descriptor belongs"),
    ],
)
def test_sections_of_no_kind(octets: str, problem: str) -> None:
    assert scanned(bytes.fromhex(octets)).problem == problem
    cut = [bytes.fromhex(octets[at : at + 2]) for at in range(0, len(octets), 2)]
    assert scanned(*cut).problem == problem


@pytest.mark.parametrize(
    "octets",
    [
        "0080000000000000007740",
        "00a310" + b"amqp:amqp-value:".hex() + "2a40",
        "00537700a30161a1026162",
        "0053770000530153025303",
        "00537798" + "00" * 16,
        "005377e00601 52 0102 0304".replace(" ", ""),
        "005377f00000000600000001" + "4100",
    ],
)
def test_bodies_of_every_shape(octets: str) -> None:
    if octets.startswith("00a310"):
        name = b"amqp:amqp-value:*"
        octets = "00a3" + f"{len(name):02x}" + name.hex() + "40"
    whole = bytes.fromhex(octets)
    assert scanned(whole).problem == ""
    assert scanned(*(whole[at : at + 1] for at in range(len(whole)))).problem == ""


def test_a_message_must_not_end_inside_of_a_section() -> None:
    octets = octets_of("HDMPA") + DATA
    ends = {0}
    for section in (HEADER, DELIVERY, MESSAGE, PROPERTIES, APPLICATION, DATA):
        ends.add(max(ends) + len(section))
    for at in range(len(octets) + 1):
        problem = scanned(octets[:at]).problem
        assert (problem == "") is (at in ends)
        assert problem == "" or problem.startswith("the message ends inside the ")


def test_a_nested_value_costs_no_memory() -> None:
    scan = SectionScan()
    scan.feed(frame_of(b"\x00\x53\x77", more=True))
    for _ in range(100):
        assert scan.feed(frame_of(bytes(1000), more=True))
        assert scan.pending == b""
    assert not scan.finish()


def sent_on(*payloads: bytes) -> tuple[bytes, SectionScan]:
    """Return what is sent on of a message, and its scan.

    The first part that is sent must contain the whole head.
    """
    scan = SectionScan()
    sent = []
    noted = b""
    for number, payload in enumerate(payloads, 1):
        assert scan.feed(frame_of(payload, more=number < len(payloads))), scan.problem
        if not scan.is_headed:
            continue
        frame = scan.frame
        assert frame.payload_at <= frame.end
        sent.append(bytes(memoryview(frame.octets)[frame.payload_at : frame.end]))
        if len(sent) == 1:
            noted = bytes(memoryview(frame.octets)[scan.annotations_at : scan.annotations_end])
    assert scan.finish()
    whole = b"".join(sent)
    spans = {span.descriptor: span for span in section_spans(whole)}
    head = [span.end for kind, span in spans.items() if kind <= Descriptor.MESSAGE_ANNOTATIONS]
    assert len(sent[0]) >= max(head, default=0)
    annotations = spans.get(Descriptor.MESSAGE_ANNOTATIONS)
    assert noted == (whole[annotations.value_at : annotations.end] if annotations else b"")
    return whole, scan


@pytest.mark.parametrize("before", [b"", HEADER])
@pytest.mark.parametrize("behind", [b"", PROPERTIES, MESSAGE + PROPERTIES, DATA, MESSAGE])
@pytest.mark.parametrize(
    "annotations", [DELIVERY, bytes.fromhex("005371d10000001000000002a3037a61 7aa10568656c6c6f")]
)
def test_delivery_annotations_go_no_further(
    before: bytes, annotations: bytes, behind: bytes
) -> None:
    whole = before + annotations + behind
    assert sent_on(whole)[0] == before + behind
    for one in range(len(whole) + 1):
        for two in range(one, len(whole) + 1):
            assert sent_on(whole[:one], whole[one:two], whole[two:])[0] == before + behind
    assert sent_on(*(whole[at : at + 1] for at in range(len(whole))))[0] == before + behind


def test_a_new_message_begins_with_nothing() -> None:
    scan = scanned(HEADER + DELIVERY + b"\x40")
    assert scan.problem
    scan.start()
    assert scan.feed(frame_of(DATA))
    assert (scan.annotations_end, scan.cut_end) == (0, 0)
    assert scan.is_headed
    assert scan.finish()


@given(messages(), st.data())
@examples(200)
def test_any_message_in_any_pieces(message: Message, data: st.DataObject) -> None:
    octets = encode_message(message)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(octets)), max_size=5)))
    edges = [0, *cuts, len(octets)]
    pieces = [octets[a:b] for a, b in pairwise(edges)]
    delivery = [
        octets[span.begin : span.end]
        for span in section_spans(octets)
        if span.descriptor is Descriptor.DELIVERY_ANNOTATIONS
    ]
    expected = octets.replace(delivery[0], b"", 1) if delivery else octets
    assert sent_on(*pieces)[0] == expected


@given(messages())
@examples(200)
def test_what_is_plain_is_sound_and_left_as_it_is(message: Message) -> None:
    octets = encode_message(message)
    assert scanned(octets).problem == ""
    if is_plain(frame_of(octets)):
        assert sent_on(octets)[0] == octets


@pytest.mark.parametrize("sections", ["", "H", "HMPAB", "MPAB", "PAB", "BF", "HPSF", "B"])
def test_most_messages_are_plain(sections: str) -> None:
    octets = octets_of(sections).replace(PROPERTIES, bytes.fromhex("005373c00100"))
    assert is_plain(frame_of(octets))
    for at in range(1, len(octets)):
        assert not is_plain(frame_of(octets[:at])) or not scanned(octets[:at]).problem


@pytest.mark.parametrize("sections", ["HH", "DB", "BB", "SS", "V", "BV", "FB", "PMB", "SB"])
def test_what_is_out_of_the_ordinary_is_not_plain(sections: str) -> None:
    assert not is_plain(frame_of(octets_of(sections)))


@given(st.integers(0, 40), st.integers(0, 255))
@examples(500)
def test_no_changed_octet_makes_a_fault_plain(at: int, octet: int) -> None:
    whole = bytearray(HEADER + MESSAGE + APPLICATION + DATA + FOOTER)
    whole[at % len(whole)] = octet
    if is_plain(frame_of(bytes(whole))):
        assert scanned(bytes(whole)).problem == ""


def told_by_the_header(octets: bytes) -> int:
    header = find_header(octets, 0, len(octets))
    return PRIORITY if header is None else header.priority


@given(messages())
def test_the_priority_of_any_message_is_what_its_header_says(message: Message) -> None:
    octets = encode_message(message)
    said = None if message.header is None else message.header.priority
    assert priority_in(frame_of(octets)) == (PRIORITY if said is None else min(said, 9))


HEADED = encode_message(Message(header=Header(durable=True, priority=7, ttl=3), body=()))


@examples(200)
@given(st.integers(0, len(HEADED) - 1), st.integers(0, 255), st.integers(0, len(HEADED)))
def test_a_header_with_a_fault_has_the_priority_that_it_waits_with(
    at: int, octet: int, cut: int
) -> None:
    changed = HEADED[:at] + bytes([octet]) + HEADED[at + 1 :]
    for octets in (changed, HEADED[:cut], changed[:cut]):
        assert priority_in(frame_of(octets)) == told_by_the_header(octets)


@pytest.mark.parametrize("priority", range(12))
@pytest.mark.parametrize("durable", ["40", "41", "42", "5601", "5600", "57"])
@pytest.mark.parametrize("form", ["c0{:02x}{:02x}", "d0{:08x}{:08x}"])
def test_priorities_in_each_form(priority: int, durable: str, form: str) -> None:
    fields = f"{durable}50{priority:02x}"
    size = len(fields) // 2 + (1 if form.startswith("c0") else 4)
    octets = bytes.fromhex("005370" + form.format(size, 2) + fields)
    assert priority_in(frame_of(octets)) == told_by_the_header(octets)
    assert priority_in(frame_of(octets)) == (min(priority, 9) if durable != "57" else PRIORITY)
