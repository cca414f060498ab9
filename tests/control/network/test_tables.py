"""A table of addresses is what its origin made it, however that came here."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from router.control.network.codec import CHUNK_BYTES
from router.control.network.digests import table_digest
from router.control.network.messages import REMOVED, MobileTable, MobileUpdate
from router.control.network.steps import do_all
from router.control.network.tables import Assembly, Table, chunks, interest_of, terms_of
from router.core.routers.routing_state import Interest

from support.traced import traced_bytes

CHANGES = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "Hc", "Id/1"]), st.sampled_from([0, 1, 0x12, REMOVED])
        ),
        max_size=4,
        unique_by=lambda change: change[0],
    ),
    max_size=12,
)


def take(table: Table, messages: tuple[MobileUpdate | MobileTable, ...]) -> None:
    """Bring a table up to date."""
    assembly = None
    for message in messages:
        if isinstance(message, MobileUpdate):
            assert message.base <= table.seq < message.seq
            table.apply(message)
        else:
            assembly = assembly or Assembly(message)
            assert assembly.belongs(message)
            if assembly.add(message):
                assert assembly.is_right
                do_all(table.replace(assembly))


@given(CHANGES, st.data())
def test_whoever_asks_gets_what_the_origin_has(
    turns: list[list[tuple[str, int]]], data: st.DataObject
) -> None:
    origin, follower = Table("A", 1), Table("A", 1)
    for turn in turns:
        origin.tell(turn)
        if data.draw(st.booleans()):
            take(follower, origin.since(follower.seq))
            assert follower.entries == origin.entries
    take(follower, origin.since(follower.seq))
    assert (follower.seq, follower.entries) == (origin.seq, origin.entries)
    assert follower.digest == origin.digest == table_digest(origin.entries.items())
    assert follower.edges == origin.edges == sum(key[0] in "HI" for key in origin.entries)
    assert follower.is_right
    assert origin.since(origin.seq) == ()


def test_only_what_is_a_change_is_told() -> None:
    table = Table("A", 1)
    assert [each.keys for each in table.tell([("a", 1), ("b", 1)])] == [("a", "b")]
    assert [each.keys for each in table.tell([("a", 1), ("b", 0)])] == [("b",)]
    assert table.tell([("c", REMOVED)]) == []
    assert table.seq == 2


def test_who_has_missed_a_few_is_told_those_and_who_has_missed_many_is_told_all() -> None:
    table = Table("A", 1)
    for number in range(600):
        table.tell([(f"key {number}", 1)])
    assert len(table.since(598)) == 2
    assert all(isinstance(each, MobileUpdate) for each in table.since(598))
    assert all(isinstance(each, MobileTable) for each in table.since(1))
    assert table.whole() is table.since(0)


def test_a_table_comes_in_parts_of_bounded_size() -> None:
    parts = list(chunks((f"{number:0100}", 1) for number in range(1000)))
    assert sum(map(len, parts)) == 1000
    assert {sum(5 + len(key) for key, _ in part) // CHUNK_BYTES for part in parts[:-1]} == {1}


def test_a_table_that_is_not_what_was_announced_is_not_right() -> None:
    table = Table("A", 1)
    table.tell([("a", 1)])
    (part,) = table.whole()
    wrong = Assembly(part)
    assert wrong.add(MobileTable("A", 1, 1, part.digest, 0, 1, ("b",), b"\1"))
    assert not wrong.is_right
    table.declared += 1
    assert not table.is_right


def test_terms_are_an_octet() -> None:
    for terms in (0, 1, 2, 3, 4, 0x10, 0x14):
        assert terms_of(interest_of(terms)) == terms
    assert interest_of(0x12) == Interest(2, shows=True)
    assert interest_of(REMOVED) is None
    assert terms_of(None) == REMOVED


@pytest.mark.parametrize("end", ["", "\u00e9", "\U0001f600"], ids=["ascii", "latin", "widest"])
def test_a_table_takes_no_more_than_is_reckoned(end: str) -> None:
    table = Table("b", 1)

    def take_all() -> None:
        keys = tuple(f"M0{number}{'x' * 1000}{end}" for number in range(600))
        table.apply(MobileUpdate("b", 1, 0, 1, 0, keys, bytes([1]) * len(keys)))

    assert traced_bytes(take_all) < table.octets
