"""Crowds: who is oldest, newest and next, and which host has most."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from router.fairness import HostFairQueue, counted_host


def crowd_of(*members: str) -> HostFairQueue[str]:
    """Members such as a1: the first by its host, a, in this order."""
    crowd: HostFairQueue[str] = HostFairQueue()
    for member in members:
        crowd.add(member[0], member)
    return crowd


def test_members_are_found_by_host_in_the_order_in_which_they_came() -> None:
    crowd = crowd_of("a1", "b1", "a2", "a3")
    assert (len(crowd), crowd.count("a"), crowd.count("b"), crowd.count("c")) == (4, 3, 1, 0)
    assert (crowd.oldest("a"), crowd.newest("a")) == ("a1", "a3")
    assert crowd.largest() == "a"
    assert crowd.discard("a", "a1")
    assert not crowd.discard("a", "a1")
    assert not crowd.discard("c", "c1")
    assert (len(crowd), crowd.oldest("a")) == (3, "a2")


def test_nobody_is_in_an_empty_one() -> None:
    crowd = crowd_of("a1")
    assert crowd.discard("a", "a1")
    assert len(crowd) == 0
    assert crowd.next(lambda _: True) is None
    with pytest.raises(LookupError):
        crowd.largest()


def test_hosts_take_turns() -> None:
    crowd = crowd_of("a1", "a2", "a3", "b1", "c1", "b2")
    order = [crowd.next(lambda _: True) for _ in range(6)]
    assert order == ["a1", "b1", "c1", "a2", "b2", "a3"]
    assert len(crowd) == 0


def test_hosts_that_may_not_are_passed_over_and_keep_their_turn() -> None:
    crowd = crowd_of("a1", "b1", "b2")
    assert crowd.next(lambda host: host != "a") == "b1"
    assert crowd.next(lambda host: host == "c") is None
    assert crowd.next(lambda _: True) == "a1"
    assert crowd.next(lambda _: True) == "b2"


@settings(max_examples=200)
@given(moves=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4), st.booleans())))
def test_the_largest_is_the_one_with_most_whoever_comes_and_goes(
    moves: list[tuple[str, int, bool]],
) -> None:
    crowd: HostFairQueue[int] = HostFairQueue()
    there: dict[str, set[int]] = {}
    for host, member, comes in moves:
        members = there.setdefault(host, set())
        if comes and member not in members:
            crowd.add(host, member)
            members.add(member)
        elif not comes:
            assert crowd.discard(host, member) == (member in members)
            members.discard(member)
        sizes = {host: len(members) for host, members in there.items()}
        assert {host: crowd.count(host) for host in there} == sizes
        if any(sizes.values()):
            assert sizes[crowd.largest()] == max(sizes.values())


@pytest.mark.parametrize(
    ("address", "owner"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("::1", "::/64"),
        ("fe80::1%eth0", "fe80::1%eth0"),
        ("FE80::2", "FE80::2"),
        ("64:ff9b::c000:207", "64:ff9b::c000:207"),
        ("fd00::1%2", "fd00::/64"),
        ("no:address", "no:address"),
    ],
)
def test_an_address_of_ipv6_counts_as_its_network(address: str, owner: str) -> None:
    assert counted_host(address) == owner
