"""Maps that are kept as they came: what is read of them, and what they take."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from router.amqp.constants import Condition, TerminusExpiryPolicy
from router.amqp.decode import decode_value
from router.amqp.encode import encode_value
from router.amqp.encoded import (
    FRAME_LIMITS,
    EncodedMap,
    decode_map,
    decoded,
    entries_of,
    tags_of,
)
from router.amqp.framing import decode_frame_body, encode_frame
from router.amqp.performatives import (
    Accepted,
    Attach,
    DeleteOnClose,
    Modified,
    Open,
    Received,
    Source,
)
from router.amqp.types import Described, Symbol, UInt, ULong
from router.errors import AmqpError

PROPERTIES: dict[Any, Any] = {
    Symbol("product"): "x",
    Symbol("nested"): {Symbol("a"): [1, None]},
    Symbol("n" * 300): None,
}


def kept(frame: Any) -> Any:
    """Encode a frame, and decode it as a connection does."""
    octets = encode_frame(0, frame)
    return decode_frame_body(octets, 8, None, FRAME_LIMITS, EncodedMap)[0]


def test_what_is_kept_reads_like_the_map_that_it_is() -> None:
    properties = kept(Open("peer", properties=PROPERTIES)).properties
    assert isinstance(properties, EncodedMap)
    assert len(properties) == len(PROPERTIES)
    assert properties == PROPERTIES
    assert properties == kept(Open("other", properties=PROPERTIES)).properties
    assert properties != {}
    assert properties["product"] == properties.get(Symbol("product")) == "x"
    assert properties.get("n" * 300, 1) is None
    assert properties.get("none", 1) == 1
    assert "product" in properties
    assert "none" not in properties
    with pytest.raises(KeyError):
        properties["none"]
    assert decoded(properties) == decoded(PROPERTIES) == PROPERTIES
    assert decoded(None) == {}


def test_a_map_is_read_one_entry_after_the_other() -> None:
    unsettled = {b"%d" % number: Accepted() for number in range(3)}
    for given in (unsettled, kept(Attach("a", 0, False, unsettled=unsettled)).unsettled):
        entries = entries_of(given)
        assert next(entries) == (b"0", Accepted())
        assert list(entries) == [(b"1", Accepted()), (b"2", Accepted())]
    assert list(entries_of(None)) == []


def test_the_tags_of_a_map_are_read_whatever_the_states_are() -> None:
    unsettled = {b"": None, b"short": Accepted(), b"x" * 300: Received(1, 2)}
    for given in (unsettled, kept(Attach("a", 0, False, unsettled=unsettled)).unsettled):
        assert tags_of(given) == set(unsettled)
    assert tags_of(None) == set()


def test_nobody_takes_it_for_a_dict() -> None:
    properties: Any = kept(Open("peer", properties=PROPERTIES)).properties
    for take in (dict, list, iter):
        with pytest.raises(TypeError):
            take(properties)
    with pytest.raises(TypeError):
        dict(**properties)


def test_a_map_within_can_stay_as_it_is_too() -> None:
    properties = kept(Open("peer", properties=PROPERTIES)).properties
    assert isinstance(properties.get_map("nested"), EncodedMap)
    assert properties.get_map("nested") == {Symbol("a"): [1, None]}
    assert properties.get_map("none") is None
    with pytest.raises(ValueError, match="not a map"):
        properties.get_map("product")


@pytest.mark.spec("1.6.23-3")
def test_it_is_written_as_it_came() -> None:
    frame = Attach("link", 0, False, properties=PROPERTIES, source=Source(filter=PROPERTIES))
    assert encode_frame(0, kept(frame)) == encode_frame(0, frame)
    inside = kept(Open("peer", properties=PROPERTIES)).properties
    assert decode_value(encode_value({Symbol("there"): inside}))[0] == {Symbol("there"): PROPERTIES}


def test_values_are_of_the_types_of_their_field() -> None:
    states = {b"0": Accepted(), b"1": None, b"2": Received(1, 2), b"3": Described(ULong(1), [])}
    attach = kept(Attach("link", 0, False, unsettled=states))
    assert attach.unsettled == states
    assert attach.unsettled[b"2"] == Received(1, 2)
    policy = {Symbol("lifetime-policy"): DeleteOnClose()}
    source = Source(
        dynamic=True, dynamic_node_properties=policy, expiry_policy=TerminusExpiryPolicy.NEVER
    )
    read = kept(Attach("link", 0, True, source=source)).source
    assert read.dynamic_node_properties["lifetime-policy"] == DeleteOnClose()
    assert read == source


def test_keys_that_are_strings_become_symbols() -> None:
    octets = encode_frame(0, Open("peer", properties={Symbol("a"): 1, Symbol("b"): 2}))
    octets = octets.replace(b"\xa3\x01a", b"\xa1\x01a")
    read: Any = decode_frame_body(octets, 8, None, FRAME_LIMITS, EncodedMap)[0]
    assert read.properties.octets == encode_value({Symbol("a"): 1, Symbol("b"): 2})
    octets = octets.replace(b"\xa3\x01b", b"\xa3\x01a")
    with pytest.raises(AmqpError, match="twice"):
        decode_frame_body(octets, 8, None, FRAME_LIMITS, EncodedMap)


@pytest.mark.spec("2.7.3-8")
def test_a_null_is_no_delivery_tag() -> None:
    fields: list[Any] = ["link", UInt(0), True, *[None] * 4, {None: None}]
    body = encode_value(Described(ULong(0x12), fields))
    with pytest.raises(AmqpError) as caught:
        decode_frame_body(body, 0, None, FRAME_LIMITS, EncodedMap)
    assert caught.value.condition == Condition.DECODE_ERROR


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (7, {b"tag": "no state"}),
        (7, {"no tag": None}),
        (7, {b"tag": Described(ULong(0x10), [])}),
        (13, {UInt(1): None}),
        (13, []),
    ],
)
def test_what_does_not_belong_there_is_refused_as_ever(place: int, value: Any) -> None:
    fields: list[Any] = ["link", UInt(0), True, *[None] * 11]
    fields[place] = value
    body = encode_value(Described(ULong(0x12), fields))
    errors = []
    for limits in ((), (FRAME_LIMITS, EncodedMap)):
        with pytest.raises(AmqpError) as caught:
            decode_frame_body(body, 0, None, *limits)
        errors.append(caught.value.condition)
    assert errors[0] == errors[1]


def test_a_map_of_its_own_is_read_or_refused() -> None:
    assert decode_map(encode_value(PROPERTIES)) == PROPERTIES
    with pytest.raises(AmqpError):
        decode_map(encode_value([1]))


def test_a_default_outcome_has_annotations_that_are_kept() -> None:
    outcome = Modified(message_annotations={Symbol("a"): "b"})
    assert kept(Attach("l", 0, True, source=Source(default_outcome=outcome))).source == Source(
        default_outcome=outcome
    )


def test_what_a_frame_says_beside_its_maps_is_limited() -> None:
    many = tuple(Symbol(f"c{n}") for n in range(2000))
    octets = encode_frame(0, Attach("link", 0, True, desired_capabilities=many))
    with pytest.raises(AmqpError) as caught:
        decode_frame_body(octets, 8, None, FRAME_LIMITS, EncodedMap)
    assert caught.value.condition == "amqp:resource-limit-exceeded"


@pytest.mark.parametrize(
    "said",
    [
        {"properties": {Symbol("x"): [[]] * 60_000}},
        {"unsettled": {n.to_bytes(4, "big"): None for n in range(9000)}},
        {"source": Source(filter={Symbol(f"key-{n}"): "a value" for n in range(2000)})},
        {"properties": {Symbol("x"): [Symbol("")] * 60_000}},
    ],
)
def test_what_is_kept_takes_little_more_than_its_octets(said: dict[str, Any]) -> None:
    octets = encode_frame(0, Attach("link", 0, True, **said))
    decode_frame_body(octets, 8, None, FRAME_LIMITS, EncodedMap)
    tracemalloc.start()
    frame = decode_frame_body(octets, 8, None, FRAME_LIMITS, EncodedMap)
    taken, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert frame[0] is not None
    assert taken < 1.1 * len(octets) + 2048
    # the keys of one map at a time are looked at for whether one comes twice
    assert most < 30 * len(octets)


def test_an_outline_names_the_first_keys_and_their_descriptors() -> None:
    filters = {
        Symbol("null"): None,
        Symbol("selector"): Described(Symbol("apache.org:selector-filter:string"), "a = 1"),
        Symbol("number"): Described(ULong(0x468C00000004), "a = 1"),
        Symbol("plain"): [1, 2],
        Symbol("list"): Described([1], 2),
        Symbol("last"): 1,
    }
    source = kept(Attach("link", 0, role=True, source=Source("q", filter=filters))).source
    found, others = source.filter.outline(4)
    assert found == [
        ("selector", "apache.org:selector-filter:string"),
        ("number", 0x468C00000004),
        ("plain", None),
        ("list", None),
    ]
    assert others == 1
    assert source.filter.outline(9)[1] == 0


def test_an_outline_decodes_no_large_value() -> None:
    large = {Symbol("x"): Described(Symbol("y"), [[] for _ in range(50_000)])}
    filters = EncodedMap(encode_value(large))
    tracemalloc.start()
    try:
        assert filters.outline(4) == ([("x", "y")], 0)
        assert tracemalloc.get_traced_memory()[1] < 20_000
    finally:
        tracemalloc.stop()
