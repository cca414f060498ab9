"""Connections under a policy: who is let in, what is counted, and what a new policy changes."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from router.amqp.message import Message, encode_message
from router.amqp.performatives import Begin, Close, Open, Source, Target
from router.amqp.redirects import Redirect
from router.amqp.sections import Data, Properties
from router.config.policy_kinds import normal_hostname
from router.control.policy.gate import CONNECTION_DISALLOWED, peer_of, tenant_named
from router.core.addresses.access import Access
from router.core.addresses.redirects import Redirects
from router.core.addresses.tenants import Tenant
from router.core.link_routes.route_outlets import LinkRouteRule

from support.examples import seeds
from support.in_memory import Client
from support.policed import Policed, PolicedClient, group, refusal, vhost

OPEN: dict[str, Any] = {"sources": ("*",), "targets": ("*",), "allow_dynamic_source": True}
LIMITED = "amqp:resource-limit-exceeded"
UNAUTHORIZED = "amqp:unauthorized-access"


def message_to(address: str) -> bytes:
    """Return a message with this address in its properties."""
    return encode_message(Message(properties=Properties(to=address), body=(Data(b"x"),)))


# Opens.


def test_a_peer_without_a_virtual_host_is_refused() -> None:
    router = Policed(vhost("a.com", default=OPEN))
    client = router.peer("b.com")
    (close,) = [each for each in client.heard if isinstance(each, Close)]
    assert close.error is not None
    assert close.error.condition == LIMITED
    assert close.error.description == CONNECTION_DISALLOWED
    assert router.denials == [("connection", "no vhost has the host name 'b.com'")]
    assert (router.gate.unknown_denied, router.gate.totals.total_denied) == (1, 1)
    assert not router.gate.admitted
    # the session that it began with the same octets does not exist
    assert not client.connection.local_sessions


def test_connections_are_counted_while_they_are_open() -> None:
    router = Policed(vhost("a.com", default=OPEN))
    clients = [router.peer("a.com", user=user) for user in ("ada", "ada", None)]
    counts = router.gate.counts["a.com"]
    assert (counts.approved, counts.current, counts.denied) == (3, 3, 0)
    assert counts.by_user == {"ada": 2, "anonymous": 1}
    assert counts.by_host == {"127.0.0.1": 3}
    clients[0].close()
    clients[1].lose()
    assert (counts.approved, counts.current) == (3, 1)
    assert counts.by_user == {"anonymous": 1}
    clients[2].close()
    assert not counts.by_host
    assert not router.gate.admitted


def test_no_policy_applies_to_connections_between_routers() -> None:
    router = Policed()
    client = router.peer("b.com", is_policed=False)
    assert client.condition() == ""
    assert client.connection.access is None
    assert not router.gate.admitted


def test_without_virtual_hosts_every_address_may_be_used() -> None:
    router = Policed(enable_vhost_policy=False)
    client = router.peer("b.com")
    assert client.connection.access is None
    assert refusal(client.receiver("q")) == ""


@pytest.mark.parametrize(
    ("settings", "whose"),
    [
        ({"max_connections": 2}, "the vhost"),
        ({"max_connections_per_user": 2}, "user 'ada'"),
        ({"max_connections_per_host": 2}, "host 127.0.0.1"),
    ],
)
def test_each_limit_on_connections(settings: dict[str, int], whose: str) -> None:
    router = Policed(vhost("a.com", default=OPEN, **settings))
    first, second = (router.peer("a.com", user="ada") for _ in range(2))
    for _ in range(3):
        assert router.peer("a.com", user="ada").condition() == LIMITED
    (limit,) = settings
    name = f"maxConnections{limit.removeprefix('max_connections').title().replace('_', '')}"
    assert router.denials == 3 * [("connection", f"{whose} has 2 connections; {name} is 2")]
    assert router.gate.counts["a.com"].denied == 3
    second.close()
    assert router.peer("a.com", user="ada").condition() == ""
    first.lose()
    assert router.peer("a.com", user="ada").condition() == ""


def test_a_group_has_limits_of_its_own() -> None:
    groups = {"few": group(users=("ada",), max_connections_per_user=1, **OPEN)}
    router = Policed(vhost("a.com", groups=groups, default=OPEN, max_connections_per_user=2))
    assert router.peer("a.com", user="ada").condition() == ""
    assert router.peer("a.com", user="ada").condition() == LIMITED
    assert [router.peer("a.com", user="bob").condition() for _ in range(3)] == ["", "", LIMITED]


def test_all_connections_have_a_limit_even_without_virtual_hosts() -> None:
    router = Policed(enable_vhost_policy=False, max_connections=2)
    clients = [router.peer(f"{number}.com") for number in range(4)]
    assert [each.condition() for each in clients] == ["", "", LIMITED, LIMITED]
    router.peer("x", is_policed=False)
    clients[0].close()
    assert router.peer("a.com").condition() == ""


def test_the_hostname_is_that_of_the_listener_the_open_or_tls() -> None:
    router = Policed(enable_vhost_policy=False)
    client = router.peer("open.com", user="ada", host="::1")
    peer = peer_of(client.connection)
    assert (peer.hostname, peer.user, peer.host) == ("open.com", "ada", "::1")
    client = router.peer(None)
    client.connection.requested_host = "tls.com"
    assert peer_of(client.connection).hostname == "tls.com"
    client = router.peer("open.com", policy_vhost="listener.com")
    assert peer_of(client.connection).hostname == "listener.com"


def test_a_group_lowers_the_limits_of_a_connection() -> None:
    settings = {
        "max_frame_size": 2048,
        "max_sessions": 3,
        "max_session_window": 20_480,
        "connection_buffer_bytes": 65_536,
    }
    router = Policed(vhost("a.com", default={**OPEN, **settings, "management": "none"}))
    client = router.peer("a.com", max_frame_size=4096, held_limit_bytes=1_000_000)
    (opened,) = [each for each in client.heard if isinstance(each, Open)]
    (begun,) = [each for each in client.heard if isinstance(each, Begin)]
    assert (opened.max_frame_size, opened.channel_max) == (2048, 2)
    assert begun.incoming_window == 10
    assert client.connection.settings.held_limit_bytes == 65_536
    assert client.connection.settings.management == "none"
    # another group has the limit of the listener
    router.apply(vhost("a.com", default=OPEN))
    other = router.peer("a.com", held_limit_bytes=1_000_000)
    assert other.connection.settings.held_limit_bytes == 1_000_000


def test_a_group_may_raise_the_limits_of_a_listener() -> None:
    settings = {"max_frame_size": 2**20, "max_sessions": 32768, "max_session_window": 2**40}
    router = Policed(vhost("a.com", default={**OPEN, **settings}))
    client = router.peer("a.com", max_frame_size=4096, channel_max=10)
    limits = client.connection.settings
    assert (limits.max_frame_size, limits.channel_max) == (2**20, 32767)
    assert limits.window_limit == 2**20


# Connections that this router opens.


def dialled(router: Policed, name: str | None, **settings: Any) -> PolicedClient:
    """Return the peer of a connection that the router has opened, as for a connector."""
    client = PolicedClient(router, None, "127.0.0.1", policy_vhost=name, **settings)
    client.connection.is_client = True
    router.clients.append(client)
    client.connection.start()
    client.carry()
    client.open()
    return client


def test_the_peer_of_a_connector_is_subject_to_its_group() -> None:
    router = Policed(vhost("a.com", groups={"$connector": group(sources=("q",))}))
    client = dialled(router, "a.com")
    assert refusal(client.receiver("q")) == ""
    assert refusal(client.receiver("secret")) == UNAUTHORIZED
    counts = router.gate.counts["a.com"]
    assert (counts.approved, counts.current, counts.receivers_denied) == (1, 1, 1)
    client.close()
    assert counts.current == 0


def test_a_connector_whose_virtual_host_is_gone_is_closed() -> None:
    router = Policed(vhost("a.com", default=OPEN))
    client = dialled(router, "a.com")
    assert client.condition() == LIMITED
    assert not router.gate.admitted


def test_connectors_do_not_count_against_the_limit_of_all() -> None:
    router = Policed(
        vhost("a.com", groups={"$connector": group()}, default=OPEN), max_connections=1
    )
    dialled(router, "a.com")
    assert router.peer("a.com").condition() == ""
    assert router.peer("a.com").condition() == LIMITED
    assert dialled(router, "a.com").condition() == ""


def test_a_connector_without_a_virtual_host_is_free() -> None:
    router = Policed(vhost("a.com", default=OPEN))
    client = dialled(router, None)
    assert client.connection.access is None


# Tenants.


@pytest.mark.parametrize(
    ("hostname", "tenant"),
    [
        ("a.com", "a.com"),
        ("A.Com.", "a.com"),
        ("a.com:5671", "a.com"),
        (" a.com ", "a.com"),
        ("[::1]:5671", "[::1]"),
        ("a.com..", "a.com"),
        ("\u24d0.com", "\u24d0.com"),
    ],
)
def test_hostnames_of_tenants(hostname: str, tenant: str) -> None:
    assert tenant_named(normal_hostname(hostname)) == Tenant(tenant)


@pytest.mark.parametrize(
    "hostname",
    [
        "",
        ".",
        ":1",
        "a/b",
        "a.com/",
        "/",
        "$default",
        "$management",
        "_local",
        "_topo",
        "_edge",
        ".a.com",
        "amqp:",
        "AMQPS:",
        "amqp:b.com",
        "a\0b",
        "a\nb",
        "a\u202eb",
    ],
)
def test_hostnames_that_cannot_be_those_of_tenants(hostname: str) -> None:
    assert tenant_named(normal_hostname(hostname)) is None
    router = Policed(enable_vhost_policy=False)
    assert router.tenant(hostname).condition() == LIMITED


def test_all_names_of_a_virtual_host_have_one_address_space() -> None:
    router = Policed(vhost("a.com", aliases=("b.com", "*.com"), default=OPEN),
                     enable_vhost_name_patterns=True)  # fmt: skip
    receiver = router.tenant("A.com:5672").receiver("q", credit=5)
    for name in ("b.com", "x.com.", "a.com"):
        router.tenant(name).sender("q").send(b"x")
    assert len(receiver.received) == 3
    assert [each.name for each in router.table.addresses()] == ["a.com/q"]


def test_a_tenant_has_the_access_of_its_group_too() -> None:
    router = Policed(vhost("a.com", default={"sources": ("q",)}))
    client = router.tenant("a.com")
    assert refusal(client.receiver("q")) == ""
    for text in ("a.com/q", "p", "a.com/p", "amqp://a.com/p", "_local/q"):
        assert refusal(client.receiver(text)) == UNAUTHORIZED


MOVED = "amqp:connection:redirect"


def redirecting(*vhosts: Any, **settings: Any) -> Policed:
    """Return a router that redirects the hosts b.com, x.org and moved.net."""
    redirects = Redirects()
    for name in ("b.com", "x.org", "moved.net"):
        redirects.add_host(name, Redirect(f"new.{name}", "10.0.0.2", 5672))
    return Policed(*vhosts, router={"redirects": redirects}, **settings)


def test_only_users_of_a_virtual_host_learn_where_it_has_moved() -> None:
    ada = {"its": group(users=("ada",), **OPEN)}
    few = group(users=("bob",), remote_hosts=("10.0.0.0/8",), **OPEN)
    router = redirecting(
        vhost("a.com", default=OPEN),
        vhost("b.com", groups={**ada, "few": few}),
        vhost("y.org", aliases=("*.org",), groups=ada),
        enable_vhost_name_patterns=True,
    )
    for name in ("b.com", "B.com", "x.org"):
        assert router.peer(name, user="ada").condition() == MOVED
        assert router.peer(name, user="eve").condition() == LIMITED
        assert router.peer(name).condition() == LIMITED
    assert router.peer("b.com", user="bob").condition() == LIMITED
    # the listener decides to which one its peers belong: not to that of the name
    assert router.tenant("b.com", user="ada", policy_vhost="a.com").condition() == ""
    assert router.tenant("a.com", user="ada", policy_vhost="b.com").condition() == ""
    assert router.tenant("b.com", user="ada", policy_vhost="b.com").condition() == MOVED
    # a host of no virtual host is nobody's
    assert router.peer("moved.net", user="eve").condition() == MOVED
    # whom the policy does not concern is not asked
    assert router.peer("b.com", is_policed=False).condition() == MOVED


def test_the_default_virtual_host_has_no_host_of_its_own() -> None:
    router = redirecting(vhost("$default", default=OPEN))
    assert router.peer("b.com").condition() == MOVED


def test_a_tenant_of_a_listener_does_not_learn_where_another_has_moved() -> None:
    router = redirecting(enable_vhost_policy=False)
    assert router.tenant("b.com").condition() == MOVED
    assert router.tenant("b.com", policy_vhost="a.com").condition() == ""
    assert router.tenant("b.com", policy_vhost="B.com.").condition() == MOVED
    assert router.peer("b.com", policy_vhost="a.com").condition() == MOVED


# A new policy.


def test_links_and_connections_that_are_no_longer_allowed_end() -> None:
    router = Policed(vhost("a.com", default=OPEN), vhost("b.com", default=OPEN))
    a, b = router.peer("a.com"), router.peer("b.com")
    kept, lost = a.receiver("q"), a.receiver("p")
    router.apply(vhost("a.com", default={"sources": ("q",)}))
    assert (refusal(kept), refusal(lost)) == ("", UNAUTHORIZED)
    assert a.condition() == ""
    assert b.condition() == LIMITED
    counts = router.gate.counts["a.com"]
    # it was approved when it opened, and not once more
    assert (counts.approved, counts.current) == (1, 1)


def test_a_policy_applies_to_links_that_were_attached_without_any() -> None:
    router = Policed(enable_vhost_policy=False)
    client = router.peer("a.com")
    receiver, sender = client.receiver("secret", credit=5), client.sender("secret")
    relay, kept = client.sender(None), client.sender("q")
    node = client.receiver(None, source=Source(dynamic=True))
    router.apply(vhost("a.com", default={"targets": ("q",), "max_senders": 1}))
    for link in (receiver, sender, relay, node):
        assert refusal(link) == UNAUTHORIZED
    assert refusal(kept) == ""
    access = client.connection.access
    assert (access.senders, access.receivers) == (1, 0)
    assert refusal(client.sender("q")) == LIMITED


def test_a_policy_applies_to_links_that_were_recovered_by_their_names() -> None:
    router = Policed(enable_vhost_policy=False)
    client = router.peer("a.com", container="c")
    for address in ("q", "secret"):
        link = client.sender(address, name=address, target=Target(address=address, timeout=10))
        link.detach(closed=False)
    kept, lost = (client.sender(None, name=name, target=None) for name in ("q", "secret"))
    router.apply(vhost("a.com", default={"targets": ("q",)}))
    assert (refusal(kept), refusal(lost)) == ("", UNAUTHORIZED)


def test_the_routers_own_links_are_not_subject_to_a_policy() -> None:
    router = Policed(enable_vhost_policy=False)
    way = router.forwarder.link_routes.add(LinkRouteRule("in", "in", False, "q"))
    broker = router.peer("a.com", role="route-container")
    router.forwarder.link_routes.open(way, broker.connection)
    client = router.peer("a.com", user="ada")
    link = client.sender("q")
    groups = {"it": group(users=("ada",), targets=("q",))}
    router.apply(vhost("a.com", groups=groups, default={}))
    assert refusal(link) == ""
    assert broker.connection.access.senders == broker.connection.access.receivers == 0


def test_a_link_that_awaits_its_container_is_refused_by_a_new_policy() -> None:
    router = Policed(vhost("a.com", default=OPEN))
    way = router.forwarder.link_routes.add(LinkRouteRule("in", "in", False, "q"))
    broker = router.client(role="route-container")
    router.forwarder.link_routes.open(way, broker.connection)
    client = router.peer("a.com")
    link = client.sender("q")
    assert link.attach is None
    assert client.connection.access.senders == 1
    router.apply(vhost("a.com", default={"targets": ("p",)}))
    assert refusal(link) == UNAUTHORIZED
    assert client.connection.access.senders == 0
    assert router.forwarder.link_routes.links == 0


@pytest.mark.parametrize("most", [0, 1, 5, 9])
def test_only_as_many_links_stay_as_are_allowed(most: int) -> None:
    router = Policed(vhost("a.com", default=OPEN))
    client = router.peer("a.com")
    links = [client.receiver("q") for _ in range(9)]
    router.apply(vhost("a.com", default={**OPEN, "max_receivers": most}))
    assert [refusal(link) for link in links].count("") == most
    assert client.connection.access.receivers == most


def test_the_right_to_manage_is_that_of_the_new_group() -> None:
    router = Policed(vhost("a.com", default={**OPEN, "management": "change"}))
    connection = router.peer("a.com", management="read").connection
    assert connection.settings.management == "change"
    limits = connection.settings.max_frame_size, connection.settings.channel_max
    for default, management in (({"management": "none"}, "none"), ({}, "read")):
        router.apply(vhost("a.com", default={**OPEN, **default, "max_frame_size": 512}))
        assert connection.settings.management == management
    router.apply(vhost("a.com", default={**OPEN, "management": "none"}))
    router.apply(enable_vhost_policy=False)
    assert connection.settings.management == "read"
    # what the peer was told in the open remains
    assert limits == (connection.settings.max_frame_size, connection.settings.channel_max)


def test_messages_are_judged_anew() -> None:
    router = Policed(vhost("a.com", default={**OPEN, "allow_anonymous_sender": True}))
    receiver = router.client().receiver("q", credit=9)
    sender = router.peer("a.com").sender(None)
    sender.send(message_to("q"))
    router.apply(vhost("a.com", default={"allow_anonymous_sender": True}))
    sending = sender.send(message_to("q"))
    assert sending.outcome.error.condition == UNAUTHORIZED
    router.apply(vhost("a.com", default={**OPEN, "allow_anonymous_sender": True}))
    sender.send(message_to("q"))
    router.apply(enable_vhost_policy=False)
    sender.send(message_to("q"))
    assert len(receiver.received) == 3


def test_a_tenant_that_would_become_another_is_closed() -> None:
    router = Policed(vhost("a.com", aliases=("b.com",), default=OPEN))
    first, second = router.tenant("a.com"), router.tenant("b.com")
    router.apply(vhost("a.com", default=OPEN), vhost("b.com", default=OPEN))
    assert first.condition() == ""
    assert second.condition() == LIMITED
    router.apply(vhost("a.com", aliases=("b.com",), default=OPEN))
    assert first.condition() == ""
    router.apply(enable_vhost_policy=False)
    assert first.condition() == ""
    assert first.connection.access.tenant == Tenant("a.com")


def test_counts_of_virtual_hosts_that_are_gone_are_forgotten() -> None:
    router = Policed()
    for number in range(50):
        router.apply(vhost(f"{number}.com", default=OPEN))
        router.peer(f"{number}.com").close()
    assert len(router.gate.counts) == 1


def test_a_rule_of_others_stays_with_the_access() -> None:
    class Never:
        def link_refusal(self, access: Any, request: Any) -> Any:
            return None

        def message_refusal(self, access: Any, name: str) -> Any:
            return None

    router = Policed(vhost("a.com", default=OPEN))
    client = router.peer("a.com")
    rule = Never()
    client.connection.access.rules = (*client.connection.access.rules, rule)
    router.apply(vhost("a.com", default=OPEN))
    assert client.connection.access.rules[1:] == (rule,)
    router.apply(enable_vhost_policy=False)
    assert client.connection.access.rules == (rule,)


# Counts.


def test_links_are_counted_right_within_one_read() -> None:
    router = Policed(vhost("a.com", default={**OPEN, "max_senders": 1}))
    client = router.peer("a.com")
    for _ in range(20):
        link = client.sender("q")
        assert refusal(link) == ""
        over = client.sender("q")
        assert refusal(over) == LIMITED
        link.detach()
    assert client.connection.access.senders == 0


class Model:
    """Clients that come and go, with the links that each should have."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.limits = {"max_senders": 3, "max_receivers": 2}
        self.router = Policed(vhost("a.com", default={**OPEN, **self.limits}, max_connections=6,
                                    max_connections_per_user=3))  # fmt: skip
        self.there: dict[PolicedClient, list[Any]] = {}

    def step(self) -> None:
        """Do something at random."""
        act = self.random.choice(["open", "close", "lose", "attach", "attach", "attach", "detach",
                                  "end", "apply"])  # fmt: skip
        if act == "open":
            user = self.random.choice(["ada", "bob", "eve"])
            mine = [each for each in self.there if each.connection.user == user]
            client = self.router.peer("a.com", user=user, container=f"c{self.random.randrange(3)}")
            allowed = len(self.there) < 6 and len(mine) < 3
            assert (client.condition() == "") is allowed
            if allowed:
                self.there[client] = []
        elif act == "apply":
            self.limits = {
                "max_senders": self.random.randrange(1, 5),
                "max_receivers": self.random.randrange(1, 5),
            }
            self.router.apply(vhost("a.com", default={**OPEN, **self.limits}, max_connections=6,
                                    max_connections_per_user=3))  # fmt: skip
        elif self.there:
            self._act_on(self.random.choice(list(self.there)), act)

    def _act_on(self, client: PolicedClient, act: str) -> None:
        if act in ("close", "lose"):
            getattr(client, act)()
            del self.there[client]
        elif act == "attach":
            address = self.random.choice(["q", "p", "$x", None])
            is_sender = self.random.random() < 0.5
            name = f"{is_sender}{self.random.randrange(4)}"
            attach = client.sender if is_sender else client.receiver
            if all(link.name != name or refusal(link) or not link.attached
                   for link in self.there[client]):  # fmt: skip
                self.there[client].append(attach(address, name=name))
        elif act == "detach":
            links = [link for link in self.there[client] if link.attached and not refusal(link)]
            if links:
                self.random.choice(links).detach()
        elif act == "end" and self.random.random() < 0.3:
            client.close()
            del self.there[client]

    def compare(self) -> None:
        """Compare the counts of connections and links with what is there."""
        counts = self.router.gate.counts["a.com"]
        assert counts.current == len(self.there) == len(self.router.gate.admitted)
        assert counts.by_user == Counter(each.connection.user for each in self.there)
        for client, links in self.there.items():
            access = client.connection.access
            left = [link for link in links if link.attached and not refusal(link)]
            senders = sum(type(link).__name__ == "SendingLink" for link in left)
            assert (access.senders, access.receivers) == (senders, len(left) - senders)
            assert senders <= self.limits["max_senders"]
            assert len(left) - senders <= self.limits["max_receivers"]


@pytest.mark.parametrize("seed", seeds(10))
def test_counts_are_right_after_anything(seed: int) -> None:
    model = Model(seed)
    model.router.peer("a.com").close()
    for _ in range(150):
        model.step()
        model.compare()
    for client in list(model.there):
        client.close()
    counts = model.router.gate.counts["a.com"]
    assert counts.current == 0
    assert not counts.by_user
    assert not counts.by_host


def test_an_access_of_an_ended_connection_holds_nothing() -> None:
    router = Policed(vhost("a.com", default=OPEN))
    client: Client = router.peer("a.com")
    client.receiver("q")
    client.sender("q")
    access: Access = client.connection.access
    client.lose()
    assert not access.links
    assert access.senders == 0
    assert not router.gate.admitted
