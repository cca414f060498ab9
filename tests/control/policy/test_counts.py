"""Counts of refusals: each counts once in total, and links by the attribute that refuses, too."""

from __future__ import annotations

import random
from typing import Any

import pytest

from router.amqp.performatives import End, Source, Target
from router.control.policy.counts import PolicyCounts, VhostCounts
from router.control.policy.vhost_rule import Denial
from router.engine.account import CONNECTION_BYTES, LINK_BYTES, SESSION_BYTES
from router.engine.shared_accounts import SharedAccount

from support.examples import seeds
from support.policed import LOOPBACK, Policed, PolicedClient, group, refusal, vhost
from support.transcripts import On, begin

OPEN: dict[str, Any] = {"sources": ("*",), "targets": ("*",), "allow_dynamic_source": True}


@pytest.mark.parametrize(
    ("what", "attribute", "counted"),
    [
        ("connection", "", {"denied"}),
        ("session", "maxSessions", {"sessions_denied"}),
        ("state", "maxStateBytesPerUser", {"state_denied"}),
        ("sender", "targets", {"senders_denied", "targets_denied"}),
        ("sender", "maxSenders", {"senders_denied"}),
        ("sender", "allowAnonymousSender", {"senders_denied", "anonymous_senders_denied"}),
        ("receiver", "sources", {"receivers_denied", "sources_denied"}),
        ("receiver", "allowDynamicSource", {"receivers_denied", "dynamic_sources_denied"}),
        ("message", "targets", {"messages_denied"}),
        ("message size", "maxMessageSize", {"large_messages_denied"}),
        ("something else", "", {"messages_denied"}),
    ],
)
def test_a_refusal_counts_once(what: str, attribute: str, counted: set[str]) -> None:
    counts = PolicyCounts()
    counts.count(Denial(what, "", attribute=attribute))
    names = [name for name in dir(counts) if name.endswith("denied") and name != "total_denied"]
    found = {name for name in names if getattr(counts, name) == 1}
    assert found - {"links_denied"} == counted
    assert counts.total_denied == 1
    assert counts.links_denied == (what in ("sender", "receiver"))


def test_connections_come_and_go() -> None:
    counts = VhostCounts()
    counts.enter("ann", "10.0.0.1")
    counts.enter("ann", "10.0.0.2")
    assert (counts.current, counts.by_user, len(counts.by_host)) == (2, {"ann": 2}, 2)
    for host in ("10.0.0.1", "10.0.0.2"):
        counts.leave("ann", host)
    # whoever has gone takes no room
    assert (counts.current, counts.by_user, counts.by_host) == (0, {}, {})
    assert counts.approved == 0


# What the connections of a virtual host, a user or a host have together.

LIMITED = "amqp:resource-limit-exceeded"
SUFFIXES = ["", "_per_user", "_per_host"]


def setting_of(name: str) -> str:
    """Return a setting's name in files."""
    first, *others = name.split("_")
    return first + "".join(each.title() for each in others)


def shared(router: Policed, suffix: str) -> SharedAccount:
    """Return the account of the virtual host, of ada, or of the host of all clients."""
    keys = {"": ("", ""), "_per_user": ("PerUser", "ada"), "_per_host": ("PerHost", LOOPBACK)}
    return router.gate.counts["a.com"].shared[keys[suffix]]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_limit_on_links_of_several_connections(suffix: str) -> None:
    router = Policed(vhost("a.com", default=OPEN, **{f"max_links{suffix}": 3}))
    first, second = (router.peer("a.com", user="ada") for _ in range(2))
    links: list[Any] = [first.receiver("q"), first.sender("q"), second.receiver("q")]
    assert [refusal(link) for link in links] == ["", "", ""]
    assert refusal(second.sender("q")) == LIMITED
    assert refusal(first.receiver(None, source=Source(dynamic=True))) == LIMITED
    ((what, reason), *_) = router.denials
    setting = setting_of(f"max_links{suffix}")
    assert what == "sender"
    assert reason.endswith(f"has 3 links; {setting} is 3")
    # others have their own
    other = router.peer("a.com", user="bob", host="127.0.0.9")
    assert refusal(other.sender("q")) == ("" if suffix else LIMITED)
    links[0].detach()
    assert refusal(second.sender("q")) == ""
    second.lose()
    assert [refusal(first.sender("q")) for _ in range(3)] == ["", "", LIMITED]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_limit_on_sessions_of_several_connections(suffix: str) -> None:
    router = Policed(vhost("a.com", default=OPEN, **{f"max_sessions{suffix}": 3}))
    first, second = (router.peer("a.com", user="ada") for _ in range(2))
    first.say(On(1, begin()))
    assert ends(first) == []
    for client, channel in ((first, 2), (second, 1), (second, 2)):
        client.say(On(channel, begin()))
        assert ends(client)[-1] == (LIMITED, "session disallowed by local policy")
    # what was refused holds no place, though the peers have not answered
    assert shared(router, suffix).sessions == 3
    assert router.gate.counts["a.com"].sessions_denied == 3
    setting = setting_of(f"max_sessions{suffix}")
    assert router.denials[0][1].endswith(f"has 3 sessions; {setting} is 3")
    first.say(On(1, End()))
    first.say(On(3, begin()))
    second.lose()
    first.say(On(4, begin()))
    assert len(ends(first)) == 1
    assert shared(router, suffix).sessions == 3


def ends(client: PolicedClient) -> list[tuple[str, str | None]]:
    """Return the errors with which sessions of a client were ended, in order."""
    found = [each.error for each in client.heard if isinstance(each, End)]
    return [(str(each.condition), each.description) for each in found if each is not None]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_limit_on_state_of_several_connections(suffix: str) -> None:
    limit = 2 * CONNECTION_BYTES + 2 * SESSION_BYTES + 10 * LINK_BYTES
    router = Policed(vhost("a.com", default=OPEN, **{f"max_state_bytes{suffix}": limit}))
    first, second = (router.peer("a.com", user="ada") for _ in range(2))
    refused: list[str] = []
    for number in range(12):
        link = (first, second)[number % 2].receiver("q")
        refused.append(refusal(link))
    assert refused[:8] == [""] * 8
    assert refused[-1] == LIMITED
    setting = setting_of(f"max_state_bytes{suffix}")
    assert router.gate.counts["a.com"].state_denied == refused.count(LIMITED)
    assert router.denials[0][0] == "state"
    assert f"{setting} is {limit}" in router.denials[0][1]
    # there is no room for another connection, which would hold more than a link
    third = router.peer("a.com", user="ada")
    assert third.condition() == LIMITED
    third.lose()
    assert shared(router, suffix).total == sum(
        each.connection.account.total for each in (first, second)
    )
    for client in (first, second):
        client.lose()
    assert router.gate.counts["a.com"].shared == {}


def test_a_suspended_link_counts_for_its_user_after_its_connection() -> None:
    router = Policed(vhost("a.com", default=OPEN))
    client = router.peer("a.com", user="ada", container="c")
    target = Target(address="q", timeout=10)
    client.sender("q", name="n", target=target).detach(closed=False)
    client.close()
    client.lose()
    account = shared(router, "_per_user")
    assert (account.connections, account.links, account.sessions) == (0, 0, 0)
    assert account.total > 0
    again = router.peer("a.com", user="ada", container="c")
    assert shared(router, "_per_user") is account
    again.lose()


def test_refused_connections_leave_no_account() -> None:
    router = Policed(vhost("a.com", default=OPEN, max_connections=0))
    for number in range(5):
        client = router.peer("a.com", user=f"user-{number}", host=f"127.0.0.{number}")
        assert client.condition() == LIMITED
    assert router.gate.counts["a.com"].shared == {}


def test_what_there_was_before_the_policy_counts() -> None:
    router = Policed(enable_vhost_policy=False)
    client, other = router.peer("a.com", user="ada"), router.peer("b.com", is_policed=False)
    client.say(On(1, begin()))
    links = [client.receiver("q") for _ in range(5)]
    other.receiver("q")
    router.apply(vhost("a.com", default=OPEN, max_links_per_user=9, max_sessions=2))
    account = shared(router, "_per_user")
    assert (account.connections, account.sessions, account.links) == (1, 2, 5)
    assert account.total == client.connection.account.total
    assert other.connection.account.member is None
    client.say(On(2, begin()))
    assert len(ends(client)) == 1
    # as many as are allowed stay; the sessions stay as they are
    router.apply(vhost("a.com", default=OPEN, max_links_per_user=2, max_sessions=1))
    assert [refusal(link) for link in links].count("") == 2
    assert len(ends(client)) == 1
    router.apply(enable_vhost_policy=False)
    assert (account.connections, account.links, account.total) == (0, 0, 0)
    assert refusal(client.receiver("q")) == ""


def test_the_peers_of_connectors_do_not_count() -> None:
    router = Policed(vhost("a.com", groups={"$connector": group(**OPEN)}, max_links=1))
    client = PolicedClient(router, None, LOOPBACK, policy_vhost="a.com")
    client.connection.is_client = True
    router.clients.append(client)
    client.connection.start()
    client.carry()
    client.open()
    assert [refusal(client.receiver("q")) for _ in range(3)] == [""] * 3


@pytest.mark.parametrize("seed", seeds(10))
def test_shared_accounts_are_right_after_anything(seed: int) -> None:
    chance = random.Random(seed)
    router = Policed()
    policies: list[dict[str, Any]] = [{"max_links": 5}, {"max_links_per_user": 2}, {}]
    router.apply(vhost("a.com", default=OPEN), vhost("b.com", default=OPEN))
    clients: list[PolicedClient] = []
    for _ in range(150):
        act = chance.choice(["open", "close", "lose", "attach", "attach", "detach", "begin",
                             "apply"])  # fmt: skip
        if act == "open" or not clients:
            name, user = chance.choice(["a.com", "b.com"]), chance.choice(["ada", "bob"])
            client = router.peer(name, user=user)
            clients.append(client)
            continue
        client = chance.choice(clients)
        if act in ("close", "lose"):
            client.close() if act == "close" else client.lose()
            client.lose()
            clients.remove(client)
        elif act == "attach":
            attach: Any = chance.choice([client.sender, client.receiver])
            attach(chance.choice(["q", "$x"]))
        elif act == "detach":
            attached = [link for link in client.links if link.attached and not refusal(link)]
            if attached:
                chance.choice(attached).detach()
        elif act == "begin":
            channel = chance.randrange(1, 9)
            if client.connection.sessions.find(channel) is None:
                client.say(On(channel, begin()))
        else:
            router.apply(*(vhost(name, default=OPEN, **chance.choice(policies))
                           for name in ("a.com", "b.com")))  # fmt: skip
        for name in ("a.com", "b.com"):
            there = [each for each in clients if each.hostname == name]
            account = router.gate.counts_of(router.gate.policy.vhosts[name]).shared.get(("", ""))
            if account is None:
                assert not there
                continue
            links = sum(len(each.connection.access.links) for each in there)
            sessions = sum(len(each.connection.local_sessions) for each in there)
            total = sum(each.connection.account.total for each in there)
            found = (account.connections, account.sessions, account.links, account.total)
            assert found == (len(there), sessions, links, total)
