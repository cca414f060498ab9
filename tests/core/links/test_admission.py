"""Links that an access allows, and those that it does not or no longer allow."""

from __future__ import annotations

import attrs
import pytest

from router.amqp.message import Message, encode_message
from router.amqp.performatives import Source, Target
from router.amqp.sections import Data, Properties
from router.amqp.types import Symbol
from router.core.addresses.access import Access, LinkRequest
from router.core.links import admission, attach
from router.engine.deferred import ITEMS_AT_ONCE
from router.engine.link import Link
from router.engine.states import SessionState
from router.errors import AmqpError, Scope

from support.in_memory import Client, Router


@attrs.define
class Only:
    """Rule that allows the addresses in `allowed`, and records what was requested."""

    allowed: set[str | None]
    requests: list[LinkRequest] = attrs.field(factory=list)

    def link_refusal(self, access: Access, request: LinkRequest) -> AmqpError | None:
        self.requests.append(request)
        if request.address in self.allowed:
            return None
        return AmqpError("amqp:unauthorized-access", "not allowed", Scope.LINK)

    def message_refusal(self, access: Access, name: str) -> AmqpError | None:
        if name in self.allowed:
            return None
        return AmqpError("amqp:unauthorized-access", "not allowed", Scope.LINK)


def limited(*allowed: str | None) -> tuple[Router, Client, Only]:
    """Return a router with a client that may use only these addresses."""
    router = Router()
    client = router.client()
    rule = Only(set(allowed))
    client.connection.access = Access((rule,))
    return router, client, rule


@pytest.mark.parametrize(
    ("text", "name"),
    [("q", "q"), ("/q", "q"), ("amqp://h/q", "q"), ("q/", "q"), ("q.", "q")],
)
def test_rules_see_the_name_of_an_address(text: str, name: str) -> None:
    _, client, rule = limited("q")
    assert client.sender(text).detached is None
    assert client.receiver(text).detached is None
    assert [each.address for each in rule.requests] == [name, name]


def test_a_refused_link_is_told_why_and_does_not_count() -> None:
    router, client, _ = limited("q")
    link = client.sender("p")
    assert link.detached is not None
    assert link.detached.error is not None
    assert link.detached.error.condition == "amqp:unauthorized-access"
    assert router.table.in_use("p") is None
    assert client.connection.access.senders == 0


def test_dynamic_nodes_and_anonymous_senders_have_no_address() -> None:
    _, client, rule = limited(None)
    assert client.sender(None).detached is None
    dynamic = client.receiver(None, source=Source(dynamic=True))
    assert dynamic.detached is None
    assert [each.is_dynamic for each in rule.requests] == [False, True]


def test_a_receiver_without_a_source_requests_the_empty_address() -> None:
    _, client, rule = limited("q")
    assert client.receiver(None, source=None).detached is not None
    assert rule.requests == [LinkRequest(False, "")]


@pytest.mark.spec("A2.2.2-1")
def test_an_anonymous_sender_is_refused_by_message() -> None:
    router, client, _ = limited(None, "q")
    receiver = router.client().receiver("q", credit=5)
    hidden = router.client().receiver("p", credit=5)
    sender = client.sender(None)
    outcomes = [
        sender.send(encode_message(Message(properties=Properties(to=to), body=(Data(b"x"),))))
        for to in ("q", "p")
    ]
    assert len(receiver.received) == 1
    assert not hidden.received

    assert outcomes[1].outcome.error.condition == "amqp:unauthorized-access"


def test_links_that_are_no_longer_allowed_are_detached() -> None:
    router, client, rule = limited("p", "q")
    kept, lost = client.receiver("q"), client.sender("p")
    rule.allowed.discard("p")
    router.turn.now += 1
    admission.recheck(router.forwarder, client.connection)
    router.finish_turn()
    client.carry()
    assert kept.detached is None
    assert lost.detached is not None
    assert lost.detached.error is not None
    assert lost.detached.error.condition == "amqp:unauthorized-access"
    assert client.connection.access.senders == 0


def test_rechecks_do_not_pile_up() -> None:
    router, client, rule = limited("p", "q")
    kept = [client.receiver("q") for _ in range(200)]
    lost = [client.receiver("p") for _ in range(200)]
    router.is_patient = True
    for _ in range(5):
        admission.recheck(router.forwarder, client.connection)
        assert len(router.turn.deferred.tasks) == 1
    rule.allowed.discard("p")
    admission.recheck(router.forwarder, client.connection)
    router.catch_up()
    client.carry()
    assert all(link.detached is None for link in kept)
    assert all(link.detached is not None for link in lost)
    assert len(client.connection.access.links) == 200


def test_counts_follow_links_and_sessions() -> None:
    _, client, _ = limited("q")
    client.sender("q")
    link = client.receiver("q")
    access = client.connection.access
    assert (access.senders, access.receivers) == (1, 1)
    link.detach()
    assert (access.senders, access.receivers) == (1, 0)
    client.end()
    assert (access.senders, access.receivers) == (0, 0)


def test_a_target_of_a_recovered_terminus_is_checked() -> None:
    router = Router()
    client = router.client(container="c")
    link = client.sender("q", name="n", target=Target(address="q", timeout=10))
    link.detach(closed=False)
    rule = Only(set())
    client.connection.access = Access((rule,))
    again = client.sender(None, name="n", target=None)
    assert again.detached is not None
    assert rule.requests[-1].address == "q"


# Attaches that are put off to a later turn.

VERY_MANY = ITEMS_AT_ONCE + 300


@pytest.fixture
def put_off() -> tuple[Router, Client, Only]:
    """Return a router with a client whose attach, which resumes very many deliveries, waits."""
    router = Router()
    lasting = Target(address="q", timeout=30)
    router.client(window=2 * VERY_MANY).receiver("q", 2 * VERY_MANY)
    before = router.client(container="c", link_capacity=2 * VERY_MANY)
    sender = before.sender("q", name="s", target=lasting)
    for _ in range(VERY_MANY):
        sender.send(b"x")
    router.is_patient = True
    before.lose()
    rule = Only({"q"})
    client = router.client(container="c", link_capacity=2 * VERY_MANY)
    client.connection.access = Access((rule,))
    link = client.sender("q", name="s", target=lasting, unsettled={})
    assert link.attach is None
    assert client.connection.access.senders == 1
    return router, client, rule


def test_an_attach_that_waits_is_admitted_once(put_off: tuple[Router, Client, Only]) -> None:
    router, client, rule = put_off
    router.catch_up()
    assert client.links[0].attach is not None
    assert client.links[0].detached is None
    assert client.connection.access.senders == 1
    assert len(rule.requests) == 1
    client.links[0].detach()
    assert client.connection.access.senders == 0


@pytest.mark.parametrize("act", ["detach", "end", "close", "lose"])
def test_an_attach_that_waits_is_not_counted_once_it_is_given_up(
    put_off: tuple[Router, Client, Only], act: str
) -> None:
    router, client, _ = put_off
    access = client.connection.access
    if act == "detach":
        client.links[0].detach()
    else:
        getattr(client, act)()
    router.catch_up()
    assert (access.senders, access.links) == (0, {})


def test_an_attach_that_waits_is_refused_by_new_rules(
    put_off: tuple[Router, Client, Only],
) -> None:
    router, client, rule = put_off
    rule.allowed.clear()
    admission.recheck(router.forwarder, client.connection)
    router.catch_up()
    client.carry()
    link = client.links[0]
    assert link.detached is not None
    assert link.detached.error is not None
    assert link.detached.error.condition == "amqp:unauthorized-access"
    assert client.connection.access.senders == 0


def test_only_capabilities_that_the_router_acts_on_are_kept() -> None:
    _, client, rule = limited("q")
    asked = ("qd.waypoint", "x" * 1000, "qd.fallback", "qd.waypoint", "qd.router.x")
    capabilities = tuple(Symbol(each) for each in asked)
    client.receiver("q", source=Source(address="q", capabilities=capabilities))
    assert rule.requests[0].capabilities == ("qd.waypoint", "qd.fallback")


@pytest.mark.parametrize("way", ["rechecked", "allowed", "refused"])
def test_an_answer_that_does_not_fit_ends_the_session_alone(way: str) -> None:
    """No frame of the peer is processed then, whose processing could fail."""
    router = Router()
    client = router.client(max_frame_size=512)
    rule = Only({"q"})
    waiting: list[Link] = []
    client.connection.access = Access((rule,), asks=lambda link, _: waiting.append(link))
    client.sender("q", name="n" * 600)
    refusal = AmqpError("amqp:unauthorized-access", "not allowed", Scope.LINK)
    if way == "rechecked":
        rule.allowed.clear()
        admission.recheck(router.forwarder, client.connection)
    else:
        attach.decided(router.forwarder, waiting[0], None if way == "allowed" else refusal)
    router.finish_turn()
    client.carry()
    (session,) = client.connection.local_sessions.values()
    assert session.state == SessionState.DISCARDING
    assert client.connection.is_open()
    assert not client.connection.access.links
