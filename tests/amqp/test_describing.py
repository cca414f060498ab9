"""Frames in words: fields by the specification's names, nothing secret, nothing long."""

from __future__ import annotations

import random

import pytest

from router.amqp.constants import Descriptor, SaslCode
from router.amqp.describing import LONGEST_FIELD, Describer, Words, show
from router.amqp.encode import encode_value
from router.amqp.framing import AMQP_HEADER, SASL_HEADER, encode_frame
from router.amqp.performatives import (
    Accepted,
    Attach,
    Close,
    Composite,
    Disposition,
    Error,
    Open,
    SaslChallenge,
    SaslInit,
    SaslOutcome,
    SaslResponse,
    Source,
    Transfer,
)
from router.amqp.types import Array, Described, Symbol, UInt, ULong
from router.amqp.watching import Watcher


def words(octets: bytes, *, from_start: bool = True) -> list[Words]:
    """Describe each frame and header in the octets."""
    describer = Describer(from_start=from_start)
    return [describer.describe(seen) for seen in Watcher().feed(octets)]


def text(performative: Composite | None, payload: bytes = b"") -> str:
    """One frame in words."""
    (told,) = words(encode_frame(0, performative, payload))
    return told.text


@pytest.mark.parametrize(
    ("performative", "told"),
    [
        (
            Open("ada", hostname="host", properties={Symbol("product"): "x"}),
            (
                '@open(16) [container-id="ada", hostname="host", max-frame-size=4294967295, '
                'channel-max=65535, properties={:product="x"}]'
            ),
        ),
        (
            Attach("l", 0, role=True, source=Source(address="q"), initial_delivery_count=0),
            (
                '@attach(18) [name="l", handle=0, role=receiver, snd-settle-mode=2, '
                'rcv-settle-mode=0, source=@source(40) [address="q", durable=0, '
                "expiry-policy=:session-end, timeout=0, dynamic=false], "
                "incomplete-unsettled=false, initial-delivery-count=0]"
            ),
        ),
        (
            Disposition(role=False, first=3, last=4, settled=True, state=Accepted()),
            (
                "@disposition(21) [role=sender, first=3, last=4, settled=true, "
                "state=@accepted(36) [], batchable=false]"
            ),
        ),
        (
            Close(Error(Symbol("amqp:internal-error"), description='a "b"')),
            (
                "@close(24) [error=@error(29) [condition=:amqp:internal-error, "
                'description="a \\"b\\""]]'
            ),
        ),
        (None, "empty frame"),
    ],
)
def test_fields_stand_in_order_under_their_names(performative: Composite, told: str) -> None:
    assert text(performative).replace('\\"', '"') == told.replace('\\"', '"')


def test_of_a_payload_the_begin_is_shown_and_the_size() -> None:
    told = text(Transfer(0, delivery_id=1, delivery_tag=b"\0\1"), b"\0Sw\xa1\x05hello" + bytes(100))
    assert told.startswith('@transfer(20) [handle=0, delivery-id=1, delivery-tag=b"\\x00\\x01"')
    assert '] (110) "\\x00Sw\\xa1\\x05hello\\x00' in told
    assert told.endswith('"...')
    (cut,) = words(encode_frame(0, Transfer(0), bytes(10_000)))
    assert cut.payload_bytes == 10_000


@pytest.mark.parametrize(
    "secret",
    [
        SaslInit(Symbol("PLAIN"), b"\0ada\0sesame", "host"),
        SaslChallenge(b"sesame"),
        SaslResponse(b"sesame"),
        SaslOutcome(SaslCode.OK, b"sesame"),
    ],
)
def test_what_proves_who_a_peer_is_is_never_shown(secret: Composite) -> None:
    header, told, after = words(SASL_HEADER + encode_frame(0, secret, frame_type=1) + AMQP_HEADER)
    assert (header.text, after.text) == ("SASL 1.0.0", "AMQP 1.0.0")
    assert "octets, not shown>" in told.text
    assert "sesame" not in repr(told)
    assert "sesame" not in repr(told.values)


@pytest.mark.parametrize("from_start", [True, False])
def test_what_cannot_be_read_may_be_secret(from_start: bool) -> None:
    begun = SASL_HEADER if from_start else b""
    for nonsense in (
        encode_frame(0, frame_type=1)[:-8] + b"\0\0\0\x0e\2\1\0\0sesame",
        b"\0\0\0\x11\2\1\0\0\xa1\x07sesame!",
        b"PLAIN ada sesame",
    ):
        assert "sesame" not in "".join(
            each.text for each in words(begun + nonsense, from_start=from_start)
        )
    # once AMQP is spoken, it helps to see it
    told = words(AMQP_HEADER + b"GET / HTTP/1.1\r\n", from_start=from_start)
    assert told[-1].text == 'not AMQP (not a frame; rest of the stream ignored: "GET / HT")'


def test_unknown_and_broken_frames_are_told() -> None:
    (unknown,) = words(b"\0\0\0\x0c\2\0\0\0\0S\x99E")
    assert unknown.text == "frame (no known performative: @153 [])"
    (broken,) = words(b"\0\0\0\x0a\2\0\0\0\0S")
    assert broken.text.startswith("frame (10 octets, cannot be read: ")
    (long,) = words(encode_frame(0, Open("x" * 60_000)))
    assert long.text == "frame (60040 octets, too long to be shown)"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "null"),
        ([1, True, 1.5, UInt(3)], "[1, true, 1.5, 3]"),
        (Array([Symbol("a"), Symbol("b")]), "[:a, :b]"),
        ({"k": b"\0"}, '{"k"=b"\\x00"}'),
        ("a\nb\x1b", '"a\\nb\\x1b"'),
        (Described(Symbol("x"), 1), "@:x 1"),
        ([[[[[[[1]]]]]]], "[[[[[[...]]]]]]"),
        (list(range(40)), f"[{', '.join(map(str, range(32)))}, ...]"),
    ],
)
def test_values_are_shown(value: object, told: str) -> None:
    assert show(value) == told


def test_long_texts_are_cut() -> None:
    assert len(show("x" * 10_000)) == LONGEST_FIELD + 5


def test_whatever_comes_is_told_in_a_line() -> None:
    chance = random.Random(4)
    frames = [encode_frame(0, Attach("l", 0, role=True, source=Source(address="q")))]
    frames.append(encode_frame(0, Transfer(0, delivery_tag=b"t"), b"payload"))
    for _ in range(3000):
        frame = bytearray(chance.choice(frames))
        for _ in range(chance.randrange(1, 6)):
            frame[chance.randrange(8, len(frame))] = chance.randrange(256)
        for told in words(bytes(frame)):
            assert told.text.isprintable()
            assert len(told.text) < 20_000


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ([Symbol("\0ada\0secret")], "mechanism=<not shown>"),
        ([Symbol("PLAIN"), b"x", b"\0secret"], "hostname=<not shown>"),
        ([Symbol("PLAIN"), b"x", "\0secret"], "hostname=<not shown>"),
        ([Symbol("PLAIN"), "\0secret"], "initial-response=<not shown>"),
    ],
    ids=["mechanism", "octets as host", "text as host", "text"],
)
def test_a_response_at_a_wrong_place_is_not_shown(items: list[object], told: str) -> None:
    body = encode_value(Described(ULong(int(Descriptor.SASL_INIT)), items))
    (found,) = words(frame_around(body))
    assert told in found.text
    assert "secret" not in found.text


def test_what_follows_a_sasl_frame_is_not_shown() -> None:
    body = encode_value(Described(ULong(int(Descriptor.SASL_INIT)), [Symbol("PLAIN")]))
    (found,) = words(frame_around(body + b"\0ada\0secret"))
    assert found.text == "@sasl-init(65) [mechanism=:PLAIN] (11) <not shown>"


def frame_around(body: bytes) -> bytes:
    """Return a SASL frame with this body."""
    return (len(body) + 8).to_bytes(4, "big") + b"\x02\x01\x00\x00" + body


def test_where_tokens_are_sent_no_octets_are_shown() -> None:
    secret = b"SharedAccessSignature"
    unknown = encode_value(Described(ULong(0x99), [secret]))
    broken = b"\x00\x53\x14" + b"\xa1\xff" + secret
    frames = [
        AMQP_HEADER,
        encode_frame(0, Open("ada")),
        encode_frame(0, Transfer(0, delivery_tag=b"t"), secret),
        encode_frame(0, Transfer(0, delivery_tag=b"t"), secret * 500),
        # what is no performative, cannot be read, and is no frame
        (8 + len(unknown)).to_bytes(4, "big") + b"\x02\0\0\0" + unknown,
        (8 + len(broken)).to_bytes(4, "big") + b"\x02\0\0\0" + broken,
        secret,
    ]

    def told(*, has_tokens: bool) -> list[str]:
        describer = Describer(from_start=True, has_tokens=has_tokens)
        return [describer.describe(seen).text for seen in Watcher().feed(b"".join(frames))]

    hidden, shown = told(has_tokens=True), told(has_tokens=False)
    assert "Shared" not in "".join(hidden)
    assert hidden[2].endswith("(21) <not shown>")
    assert hidden[3].endswith("(10500) <not shown>")
    assert len(hidden) == len(shown) == len(frames)
    # so that there was something to hide
    assert [number for number, text in enumerate(shown) if "Shared" in text] == [2, 3, 4, 6]
