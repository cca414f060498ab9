"""Router properties in open, and the checks by which a peer is accepted as a router."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.performatives import Open
from router.amqp.types import Int, Symbol, UInt, ULong
from router.core.routers import membership
from router.core.routers.membership import (
    HIGHEST_VERSION,
    LARGEST_INSTANCE,
    LOWEST_VERSION,
    Membership,
    Peer,
    check_peer,
    instance_from,
)
from router.engine.settings import ConnectionSettings
from router.errors import AmqpError, Scope

MINE = Membership("A", "interior", 1000)
THEIRS = Membership("B", "interior", 2000, ("lanes",))
EDGE = Membership("E", "edge", 3000)
NOTHING: Any = object()


def opened(of: Membership, role: str = "inter-router", cost: int = 1, **changed: Any) -> Open:
    """Return the open of a router, with some of its properties changed or left out."""
    properties = {Symbol(key): value for key, value in of.properties(role, cost).items()}
    for name, value in changed.items():
        key = Symbol(getattr(membership, name))
        properties[key] = value
        if value is NOTHING:
            del properties[key]
    return Open(of.router, properties=properties)


def settings(role: str = "inter-router", cost: int = 1) -> ConnectionSettings:
    """Those of our end."""
    return ConnectionSettings("A", role=role, cost=cost)


def refused(
    remote: Open, role: str = "inter-router", *, is_client: bool = False, mine: Membership = MINE
) -> tuple[str, str]:
    """Why a peer is refused."""
    with pytest.raises(AmqpError) as raised:
        check_peer(mine, settings(role), is_client, remote)
    assert raised.value.scope is Scope.CONNECTION
    return raised.value.condition, raised.value.description


def test_clients_are_told_nothing() -> None:
    assert MINE.properties("normal", 5) == {}
    assert MINE.properties("route-container") == {}


def test_a_router_says_what_it_is() -> None:
    assert THEIRS.properties("inter-router", 7) == {
        "trioute.protocol": [UInt(LOWEST_VERSION), UInt(HIGHEST_VERSION)],
        "trioute.features": [Symbol("lanes")],
        "trioute.mode": Symbol("interior"),
        "trioute.instance": ULong(2000),
        "qd.inter-router-cost": Int(7),
    }
    assert "qd.inter-router-cost" not in THEIRS.properties("inter-router", 1)


@pytest.mark.parametrize("told", [1, 9])
def test_who_the_peer_is_and_what_the_connection_costs_by_it(told: int) -> None:
    peer = check_peer(MINE, settings(cost=5), False, opened(THEIRS, cost=told))
    assert peer == Peer("B", "interior", 2000, 1, frozenset({"lanes"}), told)


@pytest.mark.parametrize(
    ("role", "is_client", "mine", "theirs"),
    [
        ("inter-router", False, MINE, THEIRS),
        ("inter-router", True, MINE, THEIRS),
        ("edge", False, MINE, EDGE),
        ("edge", True, EDGE, THEIRS),
    ],
)
def test_who_goes_together(
    role: str, is_client: bool, mine: Membership, theirs: Membership
) -> None:
    peer = check_peer(mine, settings(role), is_client, opened(theirs, role))
    assert (peer.router, peer.mode) == (theirs.router, theirs.mode)


@pytest.mark.parametrize(
    ("role", "is_client", "mine", "theirs", "words"),
    [
        ("inter-router", False, MINE, EDGE, "the role inter-router, which is for an interior"),
        ("edge", False, MINE, THEIRS, "the role edge, which is for an edge router"),
        ("edge", True, EDGE, Membership("F", "edge", 1), "edge, which is for an interior router"),
    ],
)
def test_who_does_not(
    role: str, is_client: bool, mine: Membership, theirs: Membership, words: str
) -> None:
    condition, said = refused(opened(theirs, role), role, is_client=is_client, mine=mine)
    assert condition == "trioute:wrong-mode"
    assert words in said
    assert repr(theirs.router) in said


@pytest.mark.parametrize("properties", [None, {}, {Symbol("product"): "x"}])
@pytest.mark.parametrize("is_client", [False, True])
def test_clients_and_brokers_are_no_routers(properties: Any, is_client: bool) -> None:
    remote = Open("c" * 300, properties=properties)
    condition, said = refused(remote, is_client=is_client)
    assert condition == "trioute:not-a-router"
    assert said.startswith(f"the peer '{'c' * 100}' does not declare itself a router in its open; ")
    assert ("is not a listener with the role" in said) == is_client


@pytest.mark.parametrize(
    ("lowest", "highest", "version"), [(1, 1, 1), (0, 5, 1), (1, 2**32 - 1, 1)]
)
def test_the_highest_version_that_both_have_is_spoken(
    lowest: int, highest: int, version: int
) -> None:
    remote = opened(THEIRS, VERSIONS=[UInt(lowest), UInt(highest)])
    assert check_peer(MINE, settings(), True, remote).version == version


def test_other_versions_are_refused() -> None:
    condition, said = refused(opened(THEIRS, VERSIONS=[UInt(7), UInt(9)]))
    assert condition == "trioute:protocol-version"
    assert "supports versions 7 to 9" in said
    assert "and A supports 1 to 1" in said


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VERSIONS", 1),
        ("VERSIONS", []),
        ("VERSIONS", [1]),
        ("VERSIONS", [1, "2"]),
        ("VERSIONS", [True, True]),
        ("VERSIONS", [-1, 1]),
        ("MODE", "inner"),
        ("MODE", 5),
        ("INSTANCE", NOTHING),
        ("INSTANCE", -1),
        ("INSTANCE", 2**63),
        ("INSTANCE", "1"),
        ("COST", 0),
        ("COST", -5),
        ("COST", 2**31),
        ("COST", "1"),
        ("COST", True),
        ("FEATURES", "lanes"),
        ("FEATURES", [Symbol("x")] * 65),
    ],
)
def test_what_cannot_be_understood(name: str, value: Any) -> None:
    condition, said = refused(opened(THEIRS, **{name: value}))
    assert condition == "trioute:malformed-open"
    assert str(getattr(membership, name)) in said


@pytest.mark.parametrize("name", ["", "x" * 256, "ä" * 128, "a/b"])
def test_an_id_is_a_part_of_addresses(name: str) -> None:
    condition, said = refused(opened(Membership(name, "interior", 1)))
    assert condition == "trioute:malformed-open"
    assert "container-id" in said


@pytest.mark.parametrize(
    ("instance", "words"),
    [
        (1000, "the router A is connected to itself"),
        (1001, "has the same id as another router, which was started later"),
        (999, "has the same id as another router, which was started earlier"),
    ],
)
def test_no_two_routers_have_one_id(instance: int, words: str) -> None:
    condition, said = refused(opened(Membership("A", "interior", instance)))
    assert condition == "trioute:duplicate-id"
    assert words in said


def test_the_later_instance_is_the_larger_and_no_two_are_one() -> None:
    at = 1_800_000_000.25
    alike = {instance_from(at, f"token {number}") for number in range(100)}
    assert len(alike) == 100
    assert instance_from(at - 0.125, "a") < min(alike)
    assert max(alike) < instance_from(at + 0.125, "a")
    assert instance_from(0.0, "") >= 1
    assert instance_from(8_000_000_000.0, "a") <= LARGEST_INSTANCE


def test_features_that_are_not_known_are_no_harm() -> None:
    remote = opened(THEIRS, FEATURES=[Symbol("a"), "b", 5])
    assert check_peer(MINE, settings(), True, remote).features == frozenset({"a"})
    remote = opened(THEIRS, FEATURES=NOTHING)
    assert check_peer(MINE, settings(), True, remote).features == frozenset()
