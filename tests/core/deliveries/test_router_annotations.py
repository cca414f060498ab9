"""The router's own annotations: who sees them, who is believed, and that no others are touched.

Messages are made of octets here, and what comes out is compared octet for octet.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.amqp.constants import Condition, ReceiverSettleMode
from router.amqp.message import (
    AmqpValue,
    Header,
    Message,
    Properties,
    decode_message,
    encode_message,
)
from router.amqp.performatives import Modified, Rejected, Released
from router.amqp.revision import encode_entry
from router.amqp.types import Symbol
from router.core.addresses.rules import AddressRule
from router.core.deliveries.router_annotations import CONNECTION, INGRESS, TO, TRACE
from router.core.forwarding.intake import MAX_HEAD_BYTES
from router.core.model.address import MULTICAST

from support.examples import examples
from support.in_memory import ReceivingLink, Router, SendingLink
from support.transcripts import OPAQUE

STRIP: dict[str, dict[str, bool]] = {
    "in": {"honours_annotations": False, "shows_annotations": True},
    "out": {"honours_annotations": True, "shows_annotations": False},
    "both": {"honours_annotations": False, "shows_annotations": False},
    "no": {"honours_annotations": True, "shows_annotations": True},
}
HERE = "0/router"

HEADER = bytes.fromhex("005370 c0020141")
DELIVERY = bytes.fromhex("005371 c10602 a30161 5501")
BARE = encode_message(Message(properties=Properties(subject="s"), body=(AmqpValue("b"),)))
# in encodings that the router itself would not choose
USERS = [
    bytes.fromhex("b30000000178 7100000001"),
    bytes.fromhex("8000000000000000ff b100000000"),
    bytes.fromhex("a30179 d00000000700000001 a10178"),
    bytes.fromhex("a30a 782d6f70742d75736572 a1 01 75".replace(" ", "")),
]
COME = [
    encode_entry(INGRESS, "0/far"),
    encode_entry(TRACE, ["0/far", "0/near"]),
    encode_entry(TO, "elsewhere"),
    encode_entry("x-opt-qd.stream", 1),
]
# as they leave, of a message that came with nothing that counts
FRESH = [encode_entry(TO, "q"), encode_entry(INGRESS, HERE), encode_entry(TRACE, [HERE])]
EXTENDED = [
    encode_entry("x-opt-qd.stream", 1),
    encode_entry(TO, "q"),
    encode_entry(INGRESS, "0/far"),
    encode_entry(TRACE, ["0/far", "0/near", HERE]),
]


def map8(entries: list[bytes]) -> bytes:
    items = b"".join(entries)
    return bytes((0xC1, len(items) + 1, 2 * len(entries))) + items


def map32(entries: list[bytes]) -> bytes:
    items = b"".join(entries)
    sizes = (len(items) + 4).to_bytes(4, "big") + (2 * len(entries)).to_bytes(4, "big")
    return b"\xd1" + sizes + items


def section(entries: list[bytes], *, wide: bool = False) -> bytes:
    """Message annotations in a map32, or in a map8 as long as they fit."""
    if not entries:
        return b""
    fits = not wide and len(b"".join(entries)) < 255
    return b"\x00\x53\x72" + (map8(entries) if fits else map32(entries))


def leaving(sender: str, receiver: str, *, come: list[bytes] | None = None) -> list[bytes]:
    """Return the router's own annotations as a receiver gets them."""
    if receiver in ("out", "both"):
        return []
    return EXTENDED if sender in ("out", "no") and come else FRESH


def attach(
    router: Router, sender: str, receiver: str, credit: int = 10, **client: Any
) -> tuple[SendingLink, ReceivingLink]:
    """Attach a sender and a receiver of q, behind listeners with this stripAnnotations."""
    taking = router.client(**STRIP[receiver], **client).receiver("q", credit)
    return router.client(**STRIP[sender]).sender("q"), taking


def send_in_pieces(sender: SendingLink, pieces: list[bytes]) -> Any:
    """Send the frames of one delivery."""
    sending = sender.send(pieces[0], more=len(pieces) > 1, message_format=0)
    for number, piece in enumerate(pieces[1:], 2):
        if sending.is_over:
            break
        sender.go_on(piece, more=number < len(pieces))
    return sending


@pytest.mark.spec("3.2.3-1", "3.2.3-2", "3.2.10-2", "3.2-1", "3.2.10-4")
@pytest.mark.parametrize("receiver", STRIP)
@pytest.mark.parametrize("sender", STRIP)
@pytest.mark.parametrize("come", [[], COME], ids=["none", "some"])
@pytest.mark.parametrize("users", [[], USERS[:1], USERS])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("header", [b"", HEADER])
def test_what_comes_in_and_what_leaves(
    sender: str, receiver: str, come: list[bytes], users: list[bytes], wide: bool, header: bytes
) -> None:
    router = Router()
    sending, receiving = attach(router, sender, receiver)
    # a router's own need not be the last
    came = header + section([*users[:1], *come, *users[1:]], wide=wide) + BARE
    sending.send(came)
    own = leaving(sender, receiver, come=come)
    has_map = bool(users or come)
    expected = header + section([*users, *own], wide=wide and bool(users or (own and has_map)))
    if not users and come:
        # the section that held nothing else went with them, and is made anew
        expected = header + section(own)
    assert receiving.take() == expected + BARE


PIECES = st.lists(st.integers(0, 600), max_size=6)


@pytest.mark.spec("1.6.23-3")
@given(
    st.sampled_from(sorted(STRIP)),
    st.sampled_from(sorted(STRIP)),
    st.lists(st.sampled_from(USERS), unique=True),
    st.booleans(),
    st.sampled_from([b"", HEADER]),
    st.sampled_from([b"", DELIVERY]),
    st.booleans(),
    PIECES,
)
@examples(300)
def test_users_annotations_stay_octet_for_octet(
    sender: str,
    receiver: str,
    users: list[bytes],
    has_come: bool,
    header: bytes,
    delivery: bytes,
    waits: bool,
    cuts: list[int],
) -> None:
    router = Router()
    come = COME if has_come else []
    sending, receiving = attach(router, sender, receiver, window=1 if waits else 1000)
    if waits:
        sending.send(b"", message_format=OPAQUE)
        assert receiving.take() == b""
    entries = [*come[:2], *users, *come[2:]]
    octets = header + delivery + section(entries) + BARE
    places = [0, *sorted(min(cut, len(octets)) for cut in cuts), len(octets)]
    pieces = [octets[a:b] for a, b in itertools.pairwise(places)]
    send_in_pieces(sending, pieces)
    assert len(receiving.received) == 1
    receiving.client.open_window(1000)
    own = leaving(sender, receiver, come=come)
    wide = len(b"".join(entries)) >= 255 and bool(users)
    assert receiving.take() == header + section([*users, *own], wide=wide) + BARE
    assert router.forwarder.intake.held_bytes == 0
    assert router.forwarder.backlog.held_bytes == 0


@pytest.mark.parametrize("users", [[], USERS])
@pytest.mark.parametrize("header", [b"", HEADER, HEADER + DELIVERY])
@pytest.mark.parametrize(("sender", "receiver"), [("in", "no"), ("no", "in"), ("both", "both")])
def test_wherever_the_first_frame_ends(
    sender: str, receiver: str, header: bytes, users: list[bytes]
) -> None:
    octets = header + section([*users, *COME]) + BARE
    own = leaving(sender, receiver, come=COME)
    wide = bool(users) and len(b"".join([*users, *COME])) >= 255
    expected = header.removesuffix(DELIVERY) + section([*users, *own], wide=wide) + BARE
    router = Router()
    sending, receiving = attach(router, sender, receiver, 1000)
    for at in range(len(octets) + 1):
        send_in_pieces(sending, [octets[:at], octets[at:]])
        receiving.settle()
        assert receiving.take() == expected


@pytest.mark.parametrize("receiver", ["in", "no"])
@pytest.mark.parametrize("size", [1, 2, 7, 600])
def test_what_leaves_in_small_frames(receiver: str, size: int) -> None:
    router = Router()
    sending, receiving = attach(router, "both", receiver, max_frame_size=512, window=2000)
    octets = HEADER + section([*USERS, encode_entry("x-opt-long", "l" * 2000)]) + BARE
    sending.client.open_window(1000)
    send_in_pieces(sending, [octets[at : at + size] for at in range(0, len(octets), size)])
    assert receiving.received[0].frames > 4
    expected = section([*USERS, encode_entry("x-opt-long", "l" * 2000), *FRESH])
    assert receiving.take() == HEADER + expected + BARE
    assert router.table.total().bytes_in == len(octets)
    assert router.table.total().bytes_out == len(HEADER + expected + BARE)


def test_a_map_that_grows_gets_room() -> None:
    router = Router()
    sending, receiving = attach(router, "both", "no")
    entry = encode_entry("x-opt-user", "u" * 230)
    sending.send(b"\x00\x53\x72" + map8([entry]) + BARE)
    assert receiving.take() == b"\x00\x53\x72" + map32([entry, *FRESH]) + BARE


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        (encode_entry(TRACE, "0/far"), FRESH),
        (encode_entry(TRACE, ["0/far", 1]), FRESH),
        (encode_entry(TRACE, ["0/far", Symbol("0/near")]), FRESH),
        (encode_entry(TRACE, {"0/far": 1}), FRESH),
        # a list that says more than it holds
        (encode_entry(TRACE, [])[:-1] + bytes.fromhex("c00302a101"), FRESH),
        (encode_entry(INGRESS, 5), FRESH),
        (encode_entry(INGRESS, None), FRESH),
        (encode_entry(INGRESS, Symbol("0/far")), FRESH),
        (encode_entry(TO, ["q"]), FRESH),
        (encode_entry(TRACE, []), FRESH),
        # a string where the key's symbol belongs
        (b"\xa1" + encode_entry(INGRESS, "0/far")[1:], [FRESH[0], COME[0], FRESH[2]]),
    ],
)
@pytest.mark.parametrize("pieces", [1, 2, 1000])
@pytest.mark.spec("3.2.10-2")
def test_what_has_a_wrong_type_is_absent(entry: bytes, shown: list[bytes], pieces: int) -> None:
    router = Router()
    sending, receiving = attach(router, "no", "no")
    stripped = router.client(**STRIP["out"]).receiver("r", 10)
    sending.client.open_window(1000)
    octets = section([USERS[0], entry, USERS[1]]) + BARE
    size = -(-len(octets) // pieces)
    cut = [octets[at : at + size] for at in range(0, len(octets), size)]
    send_in_pieces(sending, cut)
    assert receiving.take() == section([*USERS[:2], *shown]) + BARE
    send_in_pieces(sending.client.sender("r"), cut)
    assert stripped.take() == section(USERS[:2]) + BARE


@pytest.mark.parametrize("strip", STRIP)
@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("pieces", [1, 2, 100])
@pytest.mark.parametrize(
    "annotations",
    ["c10101", "c1020140", "c103004040", "c10402404040", "c103024000", "d10000000300000000"],
)
def test_annotations_that_are_no_map_are_refused(
    strip: str, settled: bool, pieces: int, annotations: str
) -> None:
    router = Router()
    sending, receiving = attach(router, strip, strip)
    octets = HEADER + b"\x00\x53\x72" + bytes.fromhex(annotations) + BARE
    size = -(-len(octets) // pieces)
    sent = sending.send(octets[:size], more=pieces > 1, settled=settled, message_format=0)
    for at in range(size, len(octets), size):
        if sending.detached is None and not sent.is_over:
            sending.go_on(octets[at : at + size], more=at + size < len(octets))
    assert receiving.received == []
    assert router.table.total().malformed == 1
    if settled:
        assert sending.detached is not None
        assert sending.detached.error is not None
        assert sending.detached.error.condition == Condition.DECODE_ERROR
    else:
        assert isinstance(sent.outcome, Rejected)
        assert sent.outcome.error is not None
        assert sent.outcome.error.condition == Condition.DECODE_ERROR


@pytest.mark.parametrize("treatment", ["multicast", "closest"])
def test_each_receiver_sees_what_its_connection_shows(treatment: str) -> None:
    router = Router(default=treatment)
    sending = router.client(**STRIP["no"]).sender("q")
    receivers = {strip: router.client(**STRIP[strip]).receiver("q", 10) for strip in STRIP}
    for _ in range(1 if treatment == "multicast" else len(STRIP)):
        sending.send(HEADER + section([*USERS, *COME]) + BARE)
    for strip, receiving in receivers.items():
        own = leaving("no", strip, come=COME)
        wide = len(b"".join([*USERS, *COME])) >= 255
        assert receiving.take() == HEADER + section([*USERS, *own], wide=wide) + BARE


@pytest.mark.parametrize("more", [False, True])
def test_copies_that_wait_and_copies_that_do_not(more: bool) -> None:
    router = Router(default="multicast")
    assert router.table.treatment("q") == MULTICAST
    sending = router.client(**STRIP["both"]).sender("q")
    receivers = [
        router.client(**STRIP[strip]).receiver("q", credit)
        for strip, credit in itertools.product(STRIP, [0, 1])
    ]
    octets = HEADER + section(USERS) + BARE
    at = len(HEADER) + 5 if more else len(octets)
    sending.client.open_window(10)
    anonymous = sending.client.sender(None)
    whole = encode_message(Message(properties=Properties(to="q"), body=(AmqpValue("b"),)))
    octets = HEADER + section(USERS) + whole
    anonymous.send(octets[:at], more=at < len(octets))
    if at < len(octets):
        anonymous.go_on(octets[at:])
    for receiving, (strip, _) in zip(receivers, itertools.product(STRIP, [0, 1]), strict=True):
        receiving.grant(5)
        assert receiving.take() == HEADER + section([*USERS, *leaving("both", strip)]) + whole


@pytest.mark.spec("3.2.1-6")
@pytest.mark.parametrize("receiver", STRIP)
def test_what_waited_has_its_ttl_and_its_annotations(receiver: str) -> None:
    router = Router()
    taking = router.client(**STRIP[receiver]).receiver("q", 0)
    sending = router.client(**STRIP["no"]).sender(None)
    to_q = encode_message(Message(properties=Properties(to="q"), body=(AmqpValue("b"),)))
    header = encode_message(Message(header=Header(ttl=70000)))
    sending.send(header + section([*USERS, *COME[:2]]) + to_q)
    router.wait(10)
    taking.grant(1)
    left = encode_message(Message(header=Header(ttl=60000)))
    own = [] if receiver in ("out", "both") else [FRESH[0], *EXTENDED[2:]]
    wide = len(b"".join([*USERS, *COME[:2]])) >= 255
    assert taking.take() == left + section([*USERS, *own], wide=wide) + to_q


def test_an_anonymous_message_goes_where_a_router_said() -> None:
    router = Router()
    receivers = {name: router.client(**STRIP["no"]).receiver(name, 10) for name in ("q", "there")}
    to_q = encode_message(Message(properties=Properties(to="q"), body=(AmqpValue("b"),)))
    octets = section([encode_entry(TO, "there")]) + to_q
    # who is not believed cannot say so
    router.client(**STRIP["in"]).sender(None).send(octets)
    assert receivers["q"].take() == section(FRESH) + to_q
    router.client(**STRIP["out"]).sender(None).send(octets)
    there = [encode_entry(TO, "there"), *FRESH[1:]]
    assert receivers["there"].take() == section(there) + to_q
    sending = (
        router.client(**STRIP["out"]).sender(None).send(section([encode_entry(TO, "$x")]) + to_q)
    )
    assert isinstance(sending.outcome, Rejected)


GIVEN_BACK = [Released(), Modified(), Modified(message_annotations={Symbol("x-opt-more"): 1})]


@pytest.mark.parametrize("state", GIVEN_BACK)
@pytest.mark.parametrize(("first", "second"), list(itertools.product(STRIP, repeat=2)))
@pytest.mark.spec("3.4.5-1")
def test_what_is_offered_again_is_written_anew(first: str, second: str, state: Any) -> None:
    router = Router()
    giver = router.client(**STRIP[first]).receiver("q", 1)
    sending = router.client(**STRIP["no"]).sender("q")
    taker = router.client(**STRIP[second]).receiver("q", 1)
    users = USERS[:2]
    sending.send(HEADER + section([*users, *COME]) + BARE)
    receivers = [giver, taker]
    if taker.received:
        receivers.reverse()
        first, second = second, first
    for receiving, strip in zip(receivers, [first, second], strict=True):
        own = leaving("no", strip, come=COME)
        merged = (
            [encode_entry("x-opt-more", 1)]
            if receiving is receivers[1] and "more" in str(state)
            else []
        )
        assert receiving.take() == HEADER + section([*users, *merged, *own]) + BARE
        receiving.settle(state if receiving is receivers[0] else None)


def test_a_receiver_cannot_write_a_routers_annotations() -> None:
    router = Router()
    receivers = [router.client(**STRIP["no"]).receiver("q", 1) for _ in range(2)]
    router.client().sender("q").send(section(USERS) + BARE)
    first, second = sorted(receivers, key=lambda link: not link.received)
    first.settle(Modified(message_annotations={Symbol(TRACE): ["0/x"], Symbol(INGRESS): "0/x"}))
    assert second.take() == section([*USERS, *FRESH]) + BARE


@pytest.mark.parametrize("strip", STRIP)
def test_a_dead_letter_says_where_it_is_now(strip: str) -> None:
    router = Router([AddressRule(False, "q", "balanced", dead_letter="dead")])
    dead = router.client(**STRIP[strip]).receiver("dead", 10)
    router.client().receiver("q", 0)
    to_q = encode_message(Message(properties=Properties(to="q"), body=(AmqpValue("b"),)))
    header = encode_message(Message(header=Header(ttl=100)))
    router.client(**STRIP["out"]).sender(None).send(
        header + section([*USERS[:2], *COME[:2]]) + to_q
    )
    router.wait(1)
    found = dead.take()
    own = [] if strip in ("out", "both") else [encode_entry(TO, "dead"), *EXTENDED[2:]]
    letter = decode_message(found)
    assert letter.header is not None
    assert letter.header.ttl is None
    assert found.endswith(section([*USERS[:2], *own]) + to_q)


def test_a_message_of_another_format_is_not_looked_at() -> None:
    router = Router()
    sending, receiving = attach(router, "no", "no")
    for octets in (section([*USERS, *COME]), b"", b"\xff"):
        sending.send(octets, message_format=OPAQUE)
        assert receiving.take() == octets


@pytest.mark.parametrize("spare", [-1, 0])
def test_what_would_be_too_large_with_them_goes_without(spare: int) -> None:
    router = Router()
    size = len(section([*USERS, *FRESH]) + BARE)
    receiving = router.client(**STRIP["no"]).receiver("q", 5, max_message_size=size + spare)
    router.client().sender("q").send(section(USERS) + BARE)
    assert receiving.take() == section([*USERS, *FRESH] if spare == 0 else USERS) + BARE


def test_a_window_that_closes_on_the_way() -> None:
    router = Router()
    sending, receiving = attach(router, "no", "no", max_frame_size=512, window=2)
    octets = section([*USERS, encode_entry("x-opt-long", "l" * 3000), *COME]) + BARE
    sending.send(octets)
    while not receiving.received[0].complete:
        receiving.client.open_window(2)
    expected = section([*USERS, encode_entry("x-opt-long", "l" * 3000), *EXTENDED]) + BARE
    assert receiving.take() == expected
    assert router.forwarder.backlog.held_bytes == 0


# A head that is cut by a frame is kept until it is whole.


def test_nothing_is_sent_before_the_head_is_whole() -> None:
    router = Router()
    sending, receiving = attach(router, "both", "both")
    octets = HEADER + section(USERS)
    sending.send(octets[:-1], more=True, message_format=0)
    assert receiving.received == []
    assert router.forwarder.intake.held_bytes == len(octets) - 1
    sending.go_on(octets[-1:], more=True)
    assert receiving.received[0].payload == octets
    assert router.forwarder.intake.held_bytes == 0
    sending.go_on(BARE)
    assert receiving.take() == octets + BARE


@pytest.mark.parametrize("end", ["abort", "detach", "lose", "settle"])
def test_a_head_that_never_becomes_whole_is_forgotten(end: str) -> None:
    router = Router()
    sending, receiving = attach(router, "no", "no")
    sent = sending.send(HEADER, more=True)
    assert router.forwarder.intake.held_bytes == len(HEADER)
    match end:
        case "abort":
            sending.abort()
        case "detach":
            sending.detach()
        case "lose":
            sending.client.lose()
        case _:
            sending.go_on(BARE, settled=True)
            assert sent.settled
            assert receiving.received[0].settled
    assert router.forwarder.intake.held_bytes == 0
    assert len(receiving.received) == (end == "settle")
    other = router.client().sender("q")
    other.send(BARE)
    assert receiving.received[-1].payload == section(FRESH) + BARE


def test_a_later_frame_of_a_head_begins_nothing_anew() -> None:
    router = Router()
    sending, receiving = attach(router, "no", "both")
    sending.send(HEADER, more=True)
    sending.go_on(BARE, resume=True, rcv_settle_mode=ReceiverSettleMode.SECOND)
    assert receiving.take() == HEADER + BARE
    assert router.forwarder.intake.held_bytes == 0


def test_a_head_in_pieces_has_its_bounds() -> None:
    router = Router(limit_bytes=20 * MAX_HEAD_BYTES)
    sending, receiving = attach(router, "both", "both")
    size = MAX_HEAD_BYTES // 2
    entry = encode_entry("x-opt-long", "l" * (MAX_HEAD_BYTES * 2))
    octets = section([entry]) + BARE
    sending.client.open_window(1000)
    sent = send_in_pieces(sending, [octets[at : at + size] for at in range(0, len(octets), size)])
    assert isinstance(sent.outcome, Rejected)
    assert sent.outcome.error is not None
    assert sent.outcome.error.condition == Condition.RESOURCE_LIMIT_EXCEEDED
    assert router.forwarder.intake.held_bytes == 0
    # in one frame it may be as large as the frame
    other = router.client(**STRIP["both"]).sender("q")
    entry = encode_entry("x-opt-long", "l" * (MAX_HEAD_BYTES + 9))
    other.send(section([entry]) + BARE)
    assert receiving.take() == section([entry]) + BARE


def test_all_heads_together_have_their_bounds() -> None:
    router = Router(limit_bytes=8 * 3 * MAX_HEAD_BYTES)
    router.client().receiver("q", 100)
    piece = section([encode_entry("x-opt-long", "l" * MAX_HEAD_BYTES)])[: MAX_HEAD_BYTES - 1]
    senders = [router.client().sender("q") for _ in range(5)]
    sent = [sender.send(piece, more=True, message_format=0) for sender in senders]
    assert [isinstance(each.outcome, Rejected) for each in sent] == [False] * 3 + [True] * 2
    assert router.forwarder.intake.held_bytes == 3 * len(piece)
    for sender in senders:
        sender.client.lose()
    assert router.forwarder.intake.held_bytes == 0
    assert router.table.total().ingress == 2
    assert router.table.total().malformed == 2


@pytest.mark.parametrize("credit", [0, 5])
@pytest.mark.parametrize(
    "entry",
    [
        pytest.param("a302ff78 40", id="a symbol beyond ASCII"),
        pytest.param("a102fffe 40", id="a string that is no UTF-8"),
        pytest.param("5700 40", id="a format code that nobody knows"),
    ],
)
def test_a_receiver_is_not_blamed_for_annotations_that_cannot_be_read(
    entry: str, credit: int
) -> None:
    router = Router()
    router.client().receiver("q", 5)
    sender, receiver = attach(router, "both", "in", credit=credit)
    # to the one with credit, or as long as that has none to nobody
    waits = router.clients[0].links[0]
    assert isinstance(waits, ReceivingLink)
    waits.grant(0)
    octets = section([bytes.fromhex(entry)]) + BARE
    sending = sender.send(octets, message_format=0)
    receiver.grant(5)
    assert receiver.take() == octets
    receiver.settle()
    assert sending.is_over
    sender.send(BARE, message_format=0)
    assert receiver.take() == section(FRESH) + BARE


@pytest.mark.parametrize("sender", STRIP)
@pytest.mark.parametrize("waits", [False, True])
def test_the_router_itself_is_shown_whose_a_message_was(sender: str, waits: bool) -> None:
    router = Router()
    settings = {"is_own": True, "shows_annotations": True, "window": 1 if waits else 1000}
    own = router.client(**settings).receiver("q", 10)
    client = router.client(**STRIP[sender])
    client.connection.number = 300
    sending = client.sender("q")
    if waits:
        sending.send(b"", message_format=OPAQUE)
        assert own.take() == b""
    forged = encode_entry(CONNECTION, 1)
    for come in ([], [*COME, forged]):
        sending.send(HEADER + section([*USERS[:1], *come]) + BARE)
    own.client.open_window(1000)
    expected = HEADER + section([*USERS[:1], encode_entry(CONNECTION, 300)]) + BARE
    assert [own.take(), own.take()] == [expected, expected]
