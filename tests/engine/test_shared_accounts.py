"""Sessions, links and state of several connections are counted and limited together."""

from __future__ import annotations

import random
from typing import Any

import pytest

from router.engine.account import Account, Ledger
from router.engine.shared_accounts import (
    SESSION_DISALLOWED,
    Excess,
    Member,
    SharedAccount,
    SharedLimits,
)
from router.errors import Scope

from support.examples import seeds

ALL = SharedLimits(3, 2, 1000)


def joined(*accounts: SharedAccount, total: int = 0) -> tuple[Account, Member, list[Any]]:
    """Return the account and the part of a connection, and what it was refused."""
    account = Account(Ledger())
    account.charge("links", total)
    member = account.member = Member(total)
    refused: list[Any] = []
    member.denied = lambda what, excess: refused.append((what, excess))
    member.move(accounts)
    return account, member, refused


def numbers(account: SharedAccount) -> tuple[int, int, int, int]:
    """Return all numbers of an account."""
    return account.connections, account.sessions, account.links, account.total


def test_what_members_have_adds_up() -> None:
    vhost, user = SharedAccount("the vhost", ALL), SharedAccount("user 'ada'", ALL)
    first, mine, _ = joined(vhost, user, total=5)
    second, other, _ = joined(vhost)
    first.charge("links", 10)
    second.charge("sessions", 7)
    mine.session_begun("session")
    mine.session_begun("session")
    mine.links_changed(2)
    other.links_changed(1)
    assert (numbers(vhost), numbers(user)) == ((2, 1, 3, 22), (1, 1, 2, 15))
    first.release("links", 10)
    mine.session_ended("session")
    mine.session_ended("unknown")
    assert (numbers(vhost), numbers(user)) == ((2, 0, 3, 12), (1, 0, 2, 5))


def test_a_member_takes_along_what_it_has() -> None:
    first, second = SharedAccount("first", ALL), SharedAccount("second", ALL)
    _, member, _ = joined(first, total=9)
    member.session_begun("session")
    member.links_changed(2)
    member.move((second,))
    assert (numbers(first), numbers(second)) == ((0, 0, 0, 0), (1, 1, 2, 9))
    member.move((second,))
    assert numbers(second) == (1, 1, 2, 9)


def test_state_that_outlives_its_connection_stays_charged() -> None:
    forgotten: list[str] = []
    shared = SharedAccount("all", ALL, lambda: forgotten.append("all"))
    account, member, _ = joined(shared, total=9)
    member.session_begun("session")
    member.links_changed(2)
    member.leave()
    member.leave()
    # what comes late changes nothing
    member.links_changed(-1)
    member.session_begun("another")
    assert (numbers(shared), forgotten) == ((0, 0, 0, 9), [])
    account.release("links", 9)
    assert (numbers(shared), forgotten) == ((0, 0, 0, 0), ["all"])


def test_links_and_sessions_have_limits() -> None:
    free, limited = SharedAccount("free", SharedLimits()), SharedAccount("user 'ada'", ALL)
    limited.limits = SharedLimits(3, 2, suffix="PerUser")
    account, member, refused = joined(free, limited)
    assert member.link_excess() is None
    member.links_changed(2)
    assert member.link_excess() == Excess(
        "maxLinksPerUser", "user 'ada' has 2 links; maxLinksPerUser is 2"
    )
    for name in range(3):
        member.session_begun(name)
        assert account.session_refusal() is None
    member.session_begun("more")
    refusal = account.session_refusal()
    assert refusal is not None
    assert (refusal.scope, refusal.condition) == (Scope.SESSION, "amqp:resource-limit-exceeded")
    assert refusal.description == SESSION_DISALLOWED
    reason = "user 'ada' has 3 sessions; maxSessionsPerUser is 3"
    assert refused == [("session", Excess("maxSessionsPerUser", reason))]


@pytest.mark.parametrize(
    ("total", "of_others", "scope"),
    [(1000, 0, Scope.LINK), (1130, 0, Scope.SESSION), (1260, 0, Scope.CONNECTION),
     # a connection that has little is not to blame
     (100, 1200, Scope.LINK), (600, 700, Scope.CONNECTION)],
)  # fmt: skip
def test_state_has_a_limit(total: int, of_others: int, scope: Scope) -> None:
    shared = SharedAccount("the vhost", ALL)
    joined(shared, total=of_others)
    account, _, refused = joined(shared, total=total)
    refusal = account.refusal(1)
    assert refusal is not None
    assert refusal.scope is scope
    assert refusal.description == (
        "links, names and other state are limited to 1000 octets (maxStateBytes)"
    )
    ((what, excess),) = refused
    assert (what, excess.setting) == ("state", "maxStateBytes")


def test_there_is_room_up_to_the_limit() -> None:
    shared = SharedAccount("the vhost", ALL)
    account, _, refused = joined(shared, total=400)
    joined(shared, total=500)
    assert account.refusal(100) is None
    assert account.refusal(101) is not None
    assert len(refused) == 1


@pytest.mark.parametrize("seed", seeds(20))
def test_sums_are_right_after_anything(seed: int) -> None:
    chance = random.Random(seed)
    shared = [SharedAccount(f"{number}", ALL) for number in range(4)]
    members: dict[Member, dict[str, Any]] = {}
    for step in range(300):
        act = chance.choice(["join", "leave", "move", "links", "charge", "begin", "end"])
        if act == "join" or not members:
            account, member, _ = joined()
            members[member] = {"account": account, "links": 0, "total": 0, "sessions": [], "in": ()}
            continue
        member = chance.choice(list(members))
        has = members[member]
        if act == "leave":
            member.leave()
            has["account"].charge("links", -has["total"])
            del members[member]
        elif act == "move":
            has["in"] = tuple(chance.sample(shared, chance.randrange(4)))
            member.move(has["in"])
        elif act == "links":
            by = chance.randrange(-has["links"], 5)
            has["links"] += by
            member.links_changed(by)
        elif act == "charge":
            by = chance.randrange(-has["total"], 50)
            has["total"] += by
            has["account"].charge("links", by)
        elif act == "begin":
            has["sessions"].append(step)
            member.session_begun(step)
        elif has["sessions"]:
            member.session_ended(has["sessions"].pop())
    for each in shared:
        there = [has for has in members.values() if each in has["in"]]
        assert numbers(each) == (
            len(there),
            sum(len(has["sessions"]) for has in there),
            sum(has["links"] for has in there),
            sum(has["total"] for has in there),
        )
