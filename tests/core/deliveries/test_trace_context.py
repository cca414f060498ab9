"""The trace context of sampled deliveries, which is passed from router to router."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import attrs
import pytest
from core.deliveries.test_sampling import ABSENT, rows_of, sampled
from hypothesis import given, strategies as st

from router.amqp.encode import encode_value
from router.amqp.message import Data, Header, Message, encode_message
from router.amqp.performatives import Accepted
from router.amqp.types import Described, Symbol, UByte, ULong
from router.core.deliveries import trace_context

from support.far_routers import Mesh

KEY = Symbol("x-opt-trioute.trace")
ID = bytes(range(16))


def annotated(value: Any) -> bytes:
    """Delivery annotations with this trace."""
    return encode_value(Described(ULong(0x71), {KEY: value}))


def joined(*names: str) -> Mesh:
    """Routers, each joined to the next."""
    mesh = Mesh(*names)
    for one, other in pairwise(names):
        mesh.join(one, other)
    mesh.learn()
    return mesh


def line(*names: str) -> tuple[Mesh, dict[str, Any]]:
    """Routers in a line, each of which samples; only the first one chooses."""
    mesh = joined(*names)
    samplers = {
        name: sampled(mesh[name], share=float(name == names[0]), seed=number)
        for number, name in enumerate(names)
    }
    return mesh, samplers


@pytest.mark.parametrize("header", [None, Header(durable=True, ttl=60_000)])
def test_routers_on_the_way_record_the_same_delivery(header: Header | None) -> None:
    mesh, samplers = line("a", "b", "c")
    message = encode_message(Message(header=header, body=(Data(b"x"),)))
    receiver = mesh["c"].client().receiver("q", 10)
    client = mesh["a"].client()
    sender = client.sender("q")
    mesh.run()
    sender.send(message)
    mesh.run()
    assert [each.payload for each in receiver.received] == [message]
    receiver.settle(Accepted())
    mesh.run()
    found = {name: sampler.take() for name, sampler in samplers.items()}
    rows = {name: rows_of(each) for name, each in found.items()}
    assert [len(each) for each in rows.values()] == [1, 1, 1]
    (first,), (second,), (third,) = rows.values()
    for name in ("trace_high", "trace_low", "threshold", "outcome"):
        assert first[name] == second[name] == third[name]
    assert [each["hop"] for each in (first, second, third)] == [1, 2, 3]
    container = client.connection.remote_open.container_id
    for name, row in (("b", second), ("c", third)):
        texts = found[name].texts
        assert texts[row["ingress"]] == client.connection.settings.container_id
        assert texts[row["origin"]] == container
        assert texts[row["address"]] == "q"
        assert row["forward_ns"] != ABSENT


def test_long_names_are_cut() -> None:
    mesh, samplers = line("a", "b")
    receiver = mesh["b"].client().receiver("q", 10)
    client = mesh["a"].client()
    told = client.connection.remote_open
    assert told is not None
    client.connection.remote_open = attrs.evolve(told, container_id="c" * 100)
    sender = client.sender("q")
    mesh.run()
    sender.send(encode_message(Message(body=(Data(b"x"),))))
    mesh.run()
    receiver.settle(Accepted())
    mesh.run()
    rows = samplers["b"].take()
    (row,) = rows_of(rows)
    assert rows.texts[row["origin"]] == "c" * 64


def test_a_message_that_had_to_wait_keeps_its_trace() -> None:
    mesh, samplers = line("a", "b")
    # the socket between them takes little at a time
    mesh.slow("a", "b", 20_000)
    receiver = mesh["b"].client().receiver("q", 100)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    count = 0
    while mesh["a"].forwarder.backlog.held_bytes == 0:
        sender.send(encode_message(Message(body=(Data(b"%d" % count * 20_000),))))
        count += 1
    mesh.slow("a", "b", 1_000_000)
    mesh.run()
    assert len(receiver.received) == count
    receiver.settle(Accepted())
    mesh.run()
    assert [row["hop"] for row in rows_of(samplers["b"].take())] == [2] * count
    assert len(rows_of(samplers["a"].take())) == count


def test_deliveries_that_are_not_sampled_are_not_changed() -> None:
    """Octet for octet, on the connection between routers as well."""
    carried: dict[bool, bytes] = {}
    for samples in (False, True):
        mesh = joined("a", "b")
        if samples:
            sampled(mesh["a"], share=1e-9)
        (wire,) = [each for each in mesh.wires if each.router is mesh["a"]]
        heard = bytearray()
        hear = wire.other.hear

        def overhear(octets: bytes, hear: Any = hear, heard: bytearray = heard) -> None:
            heard.extend(octets)
            hear(octets)

        wire.other.hear = overhear  # type: ignore[method-assign]
        receiver = mesh["b"].client().receiver("q", 100)
        sender = mesh["a"].client().sender("q")
        mesh.run()
        for number in range(50):
            sender.send(encode_message(Message(body=(Data(b"%d" % number),))))
        mesh.run()
        assert len(receiver.received) == 50
        carried[samples] = bytes(heard)
    assert carried[True] == carried[False]
    assert b"49" in carried[True]


def test_nothing_is_told_a_router_that_does_not_understand_it() -> None:
    mesh = Mesh("a", "b")
    mesh.features["b"] = ("lanes",)
    mesh.join("a", "b")
    mesh.learn()
    sampler, other = sampled(mesh["a"]), sampled(mesh["b"])
    receiver = mesh["b"].client().receiver("q", 10)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    sender.send(encode_message(Message(body=(Data(b"x"),))))
    mesh.run()
    receiver.settle(Accepted())
    mesh.run()
    assert len(rows_of(sampler.take())) == 1
    assert rows_of(other.take()) == []


def test_a_client_cannot_pass_its_deliveries_off_as_sampled() -> None:
    mesh, samplers = line("a", "b")
    receiver = mesh["b"].client().receiver("q", 10)
    sender = mesh["b"].client().sender("q")
    mesh.run()
    trace = [UByte(1), 1.0, "a", "me", ID]
    sender.send(annotated(trace) + encode_message(Message(body=(Data(b"x"),))))
    receiver.settle(Accepted())
    assert rows_of(samplers["b"].take()) == []


def test_a_router_without_a_sampler_passes_a_trace_on() -> None:
    mesh = joined("a", "b", "c")
    first, last = sampled(mesh["a"]), sampled(mesh["c"], share=0)
    receiver = mesh["c"].client().receiver("q", 10)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    sender.send(encode_message(Message(body=(Data(b"x"),))))
    mesh.run()
    receiver.settle(Accepted())
    mesh.run()
    (sent,), (came,) = rows_of(first.take()), rows_of(last.take())
    assert (came["trace_low"], came["hop"]) == (sent["trace_low"], 3)


GOOD: list[Any] = [UByte(3), 0.25, "a", "client", ID]


def test_a_trace_is_read() -> None:
    sample = trace_context.read(annotated(GOOD))
    assert sample is not None
    assert (sample.hop, sample.threshold) == (4, 2**62)
    assert (sample.ingress, sample.origin) == ("a", "client")
    assert sample.high.to_bytes(8, "big") + sample.low.to_bytes(8, "big") == ID
    assert trace_context.read(annotated([*GOOD, "of a later version"])) is not None


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, 3),
        (0, UByte(0)),
        (0, UByte(255)),
        (1, 0.0),
        (1, 1.5),
        (1, float("nan")),
        (1, "x"),
        (2, b"a"),
        (2, "a" * 65),
        (3, None),
        (4, ID[:15]),
        (4, "x" * 16),
    ],
)
def test_a_trace_that_is_none_is_ignored(place: int, value: Any) -> None:
    trace = list(GOOD)
    trace[place] = value
    assert trace_context.read(annotated(trace)) is None


@given(st.binary(max_size=80))
def test_any_octets_are_a_trace_or_none(octets: bytes) -> None:
    assert trace_context.read(octets) is None
    cut = annotated(GOOD)[: len(octets)]
    assert trace_context.read(cut) is None or len(cut) == len(annotated(GOOD))
