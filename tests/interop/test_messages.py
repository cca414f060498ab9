"""Messages cross between proton and rhea both ways, and the bare message stays as it was."""

from __future__ import annotations

import base64
import itertools
import uuid
from collections.abc import Callable
from typing import Any, cast

import pytest
from proton import (
    UNDESCRIBED,
    Array,
    Data,
    Described,
    Message,
    byte,
    char,
    decimal32,
    decimal64,
    decimal128,
    float32,
    int32,
    short,
    symbol,
    timestamp,
    ubyte,
    uint,
    ulong,
    ushort,
)

from router.amqp.encode import encode_value
from router.amqp.message import bare_message

from support.proton_peers import ProtonPeers
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess

pytestmark = pytest.mark.both_builds

SIZES = [0, 1, 100, 10_000, 100_000, 1_000_000, 10_000_000]


def bare(octets: bytes) -> bytes:
    """Return the bare message: from the properties to the end of the body."""
    begin, end = bare_message(octets)
    return octets[begin:end]


def a_message(body: Any, **fields: Any) -> bytes:
    """Encode a message with content in every section that Proton writes."""
    fields.setdefault("id", uuid.UUID(int=7))
    fields.setdefault("subject", "subject")
    fields.setdefault("properties", {"key": "value", "number": int32(-3), "none": None})
    message = Message(
        body=body,
        address="somewhere",
        reply_to="elsewhere",
        correlation_id=ulong(2**40),
        content_type=symbol("application/octet-stream"),
        user_id=b"\x00\xff",
        annotations={symbol("x-opt-test"): "annotation"},
        instructions={symbol("x-opt-hop"): "instruction"},
        durable=True,
        priority=7,
        ttl=600,
        **fields,
    )
    return bytes(message.encode())


def a_body(size: int) -> bytes:
    """Octets that no shift or repetition leaves alike."""
    return b"".join(i.to_bytes(4, "big") for i in range(size // 4 + 1))[:size]


Cross = Callable[[bytes], bytes]
"""Send the octets of a message through a router, and return those that came out."""

Receive = Callable[[], bytes]
"""Wait for the next message, and return its octets."""


@pytest.fixture(params=["proton-proton", "proton-rhea", "rhea-proton", "rhea-rhea"])
def cross(
    request: pytest.FixtureRequest, router: RouterProcess, proton: ProtonPeers, address: str
) -> Cross:
    """Messages cross from one client to another; the sender is told that they were accepted."""
    sender_is, receiver_is = request.param.split("-")
    rhea: RheaPeer | None = None
    if "rhea" in request.param:
        rhea = request.getfixturevalue("rhea")
        rhea.connect(router.port, username="anonymous")
    if receiver_is == "rhea":
        assert rhea is not None
        receive = rhea_receives(rhea, address)
    else:
        receive = proton_receives(proton, router, address)
    if sender_is == "rhea":
        assert rhea is not None
        return rhea_sends(rhea, address, receive)
    return proton_sends(proton, router, address, receive)


def rhea_receives(rhea: RheaPeer, address: str) -> Receive:
    """Attach a receiver of rhea; return a function that gets its next message."""
    rhea.receiver(address)
    count = itertools.count(1)
    return lambda: rhea.messages(next(count))[-1]


def proton_receives(proton: ProtonPeers, router: RouterProcess, address: str) -> Receive:
    """Attach a receiver of Proton; return a function that gets its next message."""
    receiver = proton.connect(router.url()).receiver(address, credit=100)
    count = itertools.count(1)
    return lambda: receiver.get(next(count))[-1].octets


def rhea_sends(rhea: RheaPeer, address: str, receive: Receive) -> Cross:
    """From rhea to whoever receives."""
    rhea.sender(address)
    count = itertools.count(1)

    def cross(octets: bytes) -> bytes:
        rhea.send(octets)
        found = receive()
        rhea.wait("accepted", next(count))
        return found

    return cross


def proton_sends(
    proton: ProtonPeers, router: RouterProcess, address: str, receive: Receive
) -> Cross:
    """From proton to whoever receives."""
    sender = proton.connect(router.url()).sender(address)

    def cross(octets: bytes) -> bytes:
        sent = sender.send(octets)
        found = receive()
        assert sender.settled(sent).outcome == "accepted"
        return found

    return cross


@pytest.mark.spec("0.2-4", "3.2-2", "3.2.4-1", "B2.2.1-1", "G2.2-1")
def test_bodies_of_any_size_cross_unchanged(cross: Cross) -> None:
    for size in SIZES:
        sent = a_message(a_body(size))
        assert bare(cross(sent)) == bare(sent), size


EVERY_TYPE: dict[str, Any] = {
    "null": None,
    "true": True,
    "false": False,
    "ubyte": ubyte(200),
    "ushort": ushort(60000),
    "uint0": uint(0),
    "uint": uint(2**32 - 1),
    "ulong0": ulong(0),
    "ulong": ulong(2**64 - 1),
    "byte": byte(-100),
    "short": short(-30000),
    "int": int32(-(2**31)),
    "long": -(2**63),
    "float": float32(1.5),
    "double": 1e300,
    "decimal32": decimal32(123456),
    "decimal64": decimal64(2**60),
    "decimal128": decimal128(bytes(range(16))),
    "char": char("€"),
    "timestamp": timestamp(1_700_000_000_123),
    "uuid": uuid.UUID(int=2**127 + 5),
    "binary": b"\x00\xff" * 200,
    "string": "grüße " * 100,
    "symbol": symbol("x:y"),
    "list": [1, "two", [symbol("three")], None],
    "map": {"a": 1, symbol("b"): [2], ulong(3): {"deep": {}}},
    "array": Array(cast(Any, UNDESCRIBED), Data.INT, 1, 2, 3),
    "described array": Array(symbol("d"), Data.SYMBOL, symbol("a"), symbol("b")),
    "described": Described(ulong(2**50), ["x"]),
    "empty list": [],
    "empty map": {},
}


@pytest.mark.spec("1.6.23-3", "3.2-2")
def test_values_of_every_type_cross_unchanged(cross: Cross) -> None:
    for name, value in EVERY_TYPE.items():
        sent = a_message(value)
        assert bare(cross(sent)) == bare(sent), name


def section(descriptor: int, value: bytes) -> bytes:
    """One section of a message."""
    return bytes([0x00, 0x53, descriptor]) + value


DATA, SEQUENCE = 0x75, 0x76


@pytest.mark.spec("3.2-1", "3.2-2")
def test_bodies_of_several_sections_cross_unchanged(cross: Cross) -> None:
    # Without a body of its own, proton writes no body section at all.
    head = a_message(None)
    for body in [
        b"",
        section(DATA, encode_value(b"one")) + section(DATA, encode_value(b"two")),
        section(DATA, encode_value(b"")) * 100,
        section(SEQUENCE, encode_value(["one", 2])),
        section(SEQUENCE, encode_value([1])) + section(SEQUENCE, encode_value([])),
    ]:
        assert bare(cross(head + body)) == bare(head + body), body


def test_other_message_formats_cross_unread(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    """A batch, as another vendor's format has it, is no AMQP message at its top."""
    rhea.connect(router.port, username="anonymous")
    rhea.receiver(address)
    rhea.sender(address)
    rhea.send(b"no AMQP message at all", format=0x80013700)
    (found,) = rhea.wait("message")
    assert found["format"] == 0x80013700
    assert base64.b64decode(found["octets"]) == b"no AMQP message at all"


@pytest.mark.spec("3.2.3-1", "3.2.3-2", "3.2.10-2")
def test_annotations_and_header_arrive(cross: Cross) -> None:
    found = Message()
    found.decode(cross(a_message("x", properties={"some": "thing"})))
    assert found.annotations is not None
    assert found.annotations[symbol("x-opt-test")] == "annotation"
    assert found.durable
    assert found.priority == 7
    assert 0 < found.ttl <= 600


@pytest.mark.spec("2.6.12-2")
def test_both_clients_are_told_the_senders_delivery_tags(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    address = f"multicast/{address}"
    received = proton.connect(router.url()).receiver(address, 10)
    rhea.connect(router.port, username="anonymous")
    rhea.receiver(address)
    sender = proton.connect(router.url()).sender(address)
    # lock tokens of Azure's have 16 octets; Proton counts in decimal digits
    tags = ["0123456789abcdef", "1", "2", "fedcba9876543210"]
    sender.link.tag_generator = iter(tags)
    for tag in tags:
        sender.send(Message(tag))
    assert [each.delivery.tag for each in received.get(4)] == tags
    heard = rhea.wait("message", 4)
    assert [bytes.fromhex(each["tag"]).decode() for each in heard] == tags
