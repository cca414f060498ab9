"""Repeated link state is decoded once, with the same result as that of the general decoder."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.amqp.encode import encode_value
from router.amqp.types import Described, Symbol, UInt, ULong
from router.control.network import codec, link_state_codec
from router.control.network.messages import Aged, LinkState, LinkStateUpdate
from router.control.network.steps import Steps, do_all
from router.errors import AmqpError

IDS = st.text(min_size=1, max_size=20)
STATES = st.builds(
    LinkState,
    IDS,
    st.integers(0, 2**40),
    st.integers(0, 300),
    st.dictionaries(IDS, st.integers(1, 400), max_size=30),
)
AGED = st.builds(Aged, STATES, st.sampled_from((0, 1, 255, 256, 2**32 - 1)))
UPDATES = st.lists(AGED, max_size=5).map(lambda each: LinkStateUpdate(tuple(each)))


def reader() -> link_state_codec.LinkStateCodec:
    """One that remembers nothing yet."""
    return link_state_codec.LinkStateCodec(codec._STATE.read, codec._STATE.write)


def generally(message: LinkStateUpdate) -> bytes:
    """Encode a message with the general writer."""
    kind = codec._KINDS[message.opcode]
    return encode_value(Described(ULong(0x77), [Symbol("LSU"), *kind.write(message)]))


def read_generally(octets: bytes) -> Any:
    """Decode a message with the general reader; return None if it is wrong."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "_HEARSAY", _Deaf())
        try:
            return codec.decode_control(octets)
        except AmqpError:
            return None


class _Deaf:
    def decode(self, octets: bytes) -> Steps[None]:
        """Leave it to the general reader."""
        yield 1


@given(UPDATES)
def test_it_writes_and_reads_what_is_said_in_general(message: LinkStateUpdate) -> None:
    octets = reader().encode(message)
    assert octets == generally(message)
    found = do_all(reader().decode(octets))
    assert found == message
    # now it knows how it is written
    assert reader().encode(found) == octets


@given(UPDATES, st.data())
def test_what_is_damaged_is_read_as_in_general_or_left_to_it(
    message: LinkStateUpdate, data: Any
) -> None:
    octets = bytearray(generally(message))
    for _ in range(data.draw(st.integers(1, 3))):
        octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    octets = octets[: data.draw(st.integers(len(octets) - 3, len(octets)))]
    found = do_all(reader().decode(bytes(octets)))
    if found is not None:
        assert read_generally(bytes(octets)) == found


def test_what_is_heard_again_is_the_same() -> None:
    one = reader()
    state = LinkState("A", 5, 7, {"B": 1}, options={"features": ["x"]})
    first = do_all(one.decode(one.encode(LinkStateUpdate((Aged(state, 1),)))))
    again = do_all(one.decode(one.encode(LinkStateUpdate((Aged(state, 70_000),)))))
    assert first is not None
    assert again is not None
    assert again.states[0].state is first.states[0].state
    assert again.states[0].age_ms == 70_000


def test_it_remembers_no_more_than_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_state_codec, "MOST_REMEMBERED", 3)
    one = reader()
    large = LinkState("large", 5, 7, {f"neighbour-{n}": 1 for n in range(200)})
    for state in (*(LinkState(f"r{n}", 1, n, {}) for n in range(8)), large):
        message = LinkStateUpdate((Aged(state, 0),))
        assert do_all(one.decode(one.encode(message))) == message
        assert len(one._known) <= 3
    assert not any(b"large" in octets for octets in one._known)


def test_what_later_versions_add_is_left_to_the_general_reader() -> None:
    state = codec._STATE.write(LinkState("A", 1, 2, {"B": 3}))
    assert isinstance(state, list)
    state.append("more")
    octets = encode_value(Described(ULong(0x77), [Symbol("LSU"), [[state, UInt(4)]], "and more"]))
    assert do_all(reader().decode(octets)) is None
    assert codec.decode_control(octets) == LinkStateUpdate(
        (Aged(LinkState("A", 1, 2, {"B": 3}), 4),)
    )
    # within what a router says it is read, and not passed on
    octets = encode_value(Described(ULong(0x77), [Symbol("LSU"), [[state, UInt(4)]]]))
    found = do_all(reader().decode(octets))
    assert found == codec.decode_control(octets)
    assert found is not None
    assert b"more" not in reader().encode(found)


@pytest.mark.parametrize("links", [2, 100])
def test_the_more_octets_there_are_the_fewer_routers_are_read_in_a_step(links: int) -> None:
    neighbours = {f"router-{number}": 1 for number in range(links)}
    states = (LinkState(f"r{number}", 1, 1, neighbours) for number in range(64))
    message = LinkStateUpdate(tuple(Aged(state, 0) for state in states))
    octets = generally(message)
    known = reader()
    steps = list(known.decode(octets))
    assert max(steps) < 2 * link_state_codec.AT_ONCE + len(octets) // 64 // link_state_codec.OCTETS
    assert sum(steps) + link_state_codec.AT_ONCE >= len(octets) // link_state_codec.OCTETS
    if links == 2:
        # what was heard before takes less
        assert sum(known.decode(octets)) < sum(steps)


def test_the_oldest_is_forgotten_for_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_state_codec, "MOST_REMEMBERED", 2)
    known = reader()
    for name in ("a", "b", "c"):
        do_all(known.decode(generally(LinkStateUpdate((Aged(LinkState(name, 1, 1, {}), 0),)))))
    assert len(known._known) == 2
    before = list(known._known)
    do_all(known.decode(generally(LinkStateUpdate((Aged(LinkState("c", 1, 1, {}), 0),)))))
    assert list(known._known) == before
