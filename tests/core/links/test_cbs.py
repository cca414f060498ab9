"""The `$cbs` node of a connection: both dialects, bounds, expiry."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.message import AmqpValue, Data, Message, Properties, encode_message
from router.amqp.performatives import Accepted, Close, Rejected, Released, Transfer
from router.amqp.types import Symbol
from router.core.addresses.access import Access
from router.core.addresses.claims import MOST_TOKENS
from router.core.links import cbs
from router.core.links.azure_clients import max_message_size

from support.in_memory import ReceivingLink, Router, SendingLink
from support.tokens import Claimant, Verifier, answer_in
from support.transcripts import On


@pytest.fixture
def claimant() -> Claimant:
    """Return a client without any token."""
    return Claimant(Router(), Verifier())


@pytest.mark.spec("G3.2-1", "G3.2-3")
def test_a_link_needs_a_token_that_allows_it(claimant: Claimant) -> None:
    client = claimant.client
    refused = client.receiver("orders", name="early").detached
    assert refused is not None
    assert refused.error is not None
    assert refused.error.condition == "amqp:unauthorized-access"
    assert "Listen at 'orders'" in str(refused.error.description)
    sender, receiver = claimant.attach()
    assert claimant.put(sender, "listen:orders").outcome == Accepted()
    assert answer_in(receiver) == (200, "OK", "1")
    assert client.receiver("amqps://host/orders/eu", name="late").detached is None
    assert client.sender("orders", name="wrong").detached is not None


def test_links_of_urls_reach_the_node(claimant: Claimant) -> None:
    client = claimant.client
    receiver = client.receiver("amqps://host:5671/$cbs", credit=5, name="answers")
    assert receiver.attach is not None
    assert receiver.attach.source is not None
    assert receiver.attach.source.address == "amqps://host:5671/$cbs"
    sender = client.sender("amqps://host:5671/$cbs", name="requests")
    claimant.put(sender, "send:a")
    assert answer_in(receiver)[0] == 200


@pytest.mark.parametrize(
    "body",
    [
        (AmqpValue("send:a"),),
        (AmqpValue(b"send:a"),),
        (Data(b"send"), Data(b":a")),
        (AmqpValue(Symbol("send:a")),),
    ],
    ids=["string", "binary", "data", "symbol"],
)
def test_a_token_may_be_text_or_octets(claimant: Claimant, body: Any) -> None:
    sender, receiver = claimant.attach()
    given = {"operation": b"put-token", "name": b"n", "type": "jwt"}
    sender.send(encode_message(Message(application_properties=given, body=body)))
    assert answer_in(receiver)[0] == 200


@pytest.mark.parametrize(
    ("given", "body", "status"),
    [
        ({"operation": "put-token", "type": "jwt"}, "send:a", 400),
        ({"operation": "put-token", "type": "jwt", "name": 5}, "send:a", 400),
        ({"operation": "put-token", "type": "jwt", "name": "n" * 3000}, "send:a", 400),
        ({"operation": "put-token", "type": "jwt", "name": "n"}, None, 400),
        ({"operation": "put-token", "type": "jwt", "name": "n"}, 5, 400),
        ({"operation": "put-token", "type": "jwt", "name": "n"}, "", 400),
        ({"operation": "put-token", "type": "jwt", "name": "n"}, b"\xff", 400),
        ({"operation": "put-token", "type": "jwt", "name": "n"}, "x" * 16385, 400),
        ({"operation": "put-token", "type": "jwt", "name": "n"}, "bad", 401),
        ({"operation": "delete-token", "name": "n"}, None, 404),
        ({"operation": "READ", "name": "n"}, None, 501),
        ({}, None, 501),
    ],
    ids=str,
)
def test_what_is_refused(
    claimant: Claimant, given: dict[str, object], body: object, status: int
) -> None:
    sender, receiver = claimant.attach()
    assert claimant.ask(sender, body, **given).outcome == Accepted()
    assert answer_in(receiver)[0] == status
    assert len(claimant.node.claims) == 0


def test_what_is_no_message_is_rejected(claimant: Claimant) -> None:
    sender, receiver = claimant.attach()
    refused = sender.send(b"\x00\x53\x99 secret", message_format=0).outcome
    assert isinstance(refused, Rejected)
    assert refused.error is not None
    assert refused.error.description == "the message is malformed"
    assert not receiver.received


def test_without_a_receiver_the_outcome_is_the_answer(claimant: Claimant) -> None:
    sender = claimant.client.sender("$cbs")
    assert claimant.put(sender, "send:a").outcome == Accepted()
    refused = claimant.put(sender, "bad").outcome
    assert isinstance(refused, Rejected)
    assert refused.error is not None
    assert refused.error.condition == "amqp:unauthorized-access"


@pytest.mark.spec("C3.3.1-1", "C3.3.2-1")
def test_set_token_is_answered_by_its_outcome(claimant: Claimant) -> None:
    sender, receiver = claimant.attach()

    def set_token(token: str) -> Any:
        message = Message(
            properties=Properties(subject="set-token"),
            application_properties={"token-type": "amqp:jwt"},
            body=(AmqpValue(token),),
        )
        return sender.send(encode_message(message)).outcome

    assert set_token("listen:orders") == Accepted()
    assert isinstance(set_token("bad"), Rejected)
    assert not receiver.received
    assert claimant.client.receiver("orders", name="r").detached is None
    # another subject is another token, and the same one is a renewal
    assert set_token("send:other") == Accepted()
    assert set_token("send:other") == Accepted()
    assert len(claimant.node.claims) == 2


def is_detached(link: SendingLink | ReceivingLink) -> bool:
    """Return whether the router has detached a link."""
    return link.detached is not None


@pytest.mark.spec("G3.2-4")
def test_links_are_detached_when_their_token_expires(claimant: Claimant) -> None:
    client = claimant.client
    sender, receiver = claimant.attach()
    claimant.put(sender, "listen:a", "a")
    claimant.verifier.lifetime_s = 120.0
    claimant.put(sender, "listen:b", "b")
    at_a, at_b = client.receiver("a", name="a"), client.receiver("b", name="b")
    claimant.tick(59.0)
    assert not is_detached(at_a)
    claimant.tick(1.0)
    assert at_a.detached is not None
    assert at_a.detached.error is not None
    assert at_a.detached.error.condition == "amqp:unauthorized-access"
    assert at_b.detached is None
    # the links to the node itself stay
    assert receiver.detached is sender.detached is None


def test_a_renewal_extends(claimant: Claimant) -> None:
    sender, _ = claimant.attach()
    claimant.put(sender, "listen:a")
    at_a = claimant.client.receiver("a", name="a")
    for _ in range(5):
        claimant.tick(40.0)
        claimant.put(sender, "listen:a")
    assert at_a.detached is None


def test_a_renewal_with_fewer_rights_and_a_deletion_detach(claimant: Claimant) -> None:
    client = claimant.client
    sender, receiver = claimant.attach()
    claimant.put(sender, "listen,send:a")
    at_a, to_a = client.receiver("a", name="a"), client.sender("a", name="to")
    claimant.put(sender, "listen:a")
    assert is_detached(to_a)
    assert not is_detached(at_a)
    claimant.ask(sender, operation="delete-token", name="n")
    assert is_detached(at_a)
    assert [answer_in(receiver)[0] for _ in range(3)] == [200, 200, 200]


def test_anonymous_senders_are_checked_for_each_address(claimant: Claimant) -> None:
    sender, _ = claimant.attach()
    claimant.put(sender, "send:a")
    relay = claimant.client.sender(None, name="relay")

    def outcome(to: str) -> Any:
        octets = encode_message(Message(properties=Properties(to=to), body=(AmqpValue(1),)))
        return relay.send(octets).outcome

    refused = outcome("b")
    assert isinstance(refused, Rejected)
    assert refused.error is not None
    assert refused.error.condition == "amqp:unauthorized-access"
    # there is no receiver
    assert outcome("a") == Released()
    claimant.put(sender, "send:b", "b")
    assert outcome("b") == Released()


def closed(claimant: Claimant) -> Close | None:
    """Return the close that a client has heard."""
    return next((each for each in claimant.client.heard if isinstance(each, Close)), None)


@pytest.mark.spec("G3.2-3")
def test_a_connection_without_a_token_is_closed(claimant: Claimant) -> None:
    claimant.tick(19.9)
    assert closed(claimant) is None
    claimant.tick(0.1)
    close = closed(claimant)
    assert close is not None
    assert close.error is not None
    assert close.error.condition == "amqp:unauthorized-access"
    assert "within 20 s" in str(close.error.description)


def test_a_connection_is_closed_when_it_has_been_without_a_token_again(
    claimant: Claimant,
) -> None:
    sender, _ = claimant.attach()
    claimant.put(sender, "send:a")
    claimant.tick(60.0)
    claimant.tick(19.0)
    assert closed(claimant) is None
    claimant.tick(1.0)
    assert closed(claimant) is not None


def test_no_limit_and_no_requirement() -> None:
    unlimited = Claimant(Router(), Verifier(time_limit_s=0.0))
    unlimited.tick(1e6)
    assert closed(unlimited) is None
    known = Claimant(Router(), Verifier(), user="ann")
    known.tick(1e6)
    assert closed(known) is None
    assert known.client.receiver("a").detached is None
    everyone = Claimant(Router(), Verifier(requires_of_all=True), user="ann")
    assert everyone.client.receiver("a").detached is not None
    nobody = Claimant(Router(), Verifier(), user="anonymous")
    assert nobody.client.receiver("a").detached is not None


def test_the_rules_of_a_policy_stay() -> None:
    router = Router()
    client = router.client()
    own = client.connection.access = Access(max_message_size=5)
    cbs.serve(client.connection, Verifier())
    node = cbs.node_of(client.connection)
    assert node is not None
    assert own.rules == (node.claims,)
    assert max_message_size(own) == 5


def test_links_of_the_node_are_limited(claimant: Claimant) -> None:
    links = [claimant.client.sender("$cbs", name=str(n)) for n in range(cbs.MAX_LINKS + 1)]
    assert [each.detached is None for each in links] == [True] * cbs.MAX_LINKS + [False]
    links[0].detach()
    assert claimant.client.sender("$cbs", name="again").detached is None


def test_tokens_are_limited_and_charged() -> None:
    claimant = Claimant(Router(), Verifier(), window=5000)
    connection = claimant.client.connection
    sender, receiver = claimant.attach(credit=2000)
    for number in range(MOST_TOKENS + 1):
        claimant.put(sender, "send:a", str(number))
    statuses = [answer_in(receiver)[0] for _ in range(MOST_TOKENS + 1)]
    assert statuses == [200] * MOST_TOKENS + [403]
    charged = connection.account.of_kind("tokens")
    assert charged > MOST_TOKENS * 500
    for number in range(MOST_TOKENS):
        claimant.put(sender, "send:a", str(number))
    assert connection.account.of_kind("tokens") == charged
    claimant.tick(60.0)
    assert connection.account.of_kind("tokens") == 0


def test_a_message_that_is_too_large_costs_the_link(claimant: Claimant) -> None:
    sender, _ = claimant.attach()
    sender.send(b"x" * (cbs.MAX_MESSAGE_BYTES + 1), message_format=0)
    assert sender.detached is not None
    assert sender.detached.error is not None
    assert sender.detached.error.condition == "amqp:link:message-size-exceeded"


def test_tokens_are_checked_a_few_in_each_turn() -> None:
    router = Router()
    claimant = Claimant(router, Verifier())
    sender, _ = claimant.attach()
    router.is_patient = True
    verifier = claimant.verifier
    sent = cbs.CREDIT
    client = claimant.client
    given = {"operation": "put-token", "name": "n", "type": "jwt"}
    octets = encode_message(Message(application_properties=given, body=(AmqpValue("send:a"),)))
    frames = [
        On(0, Transfer(sender.handle, number, b"%d" % number, 0), octets) for number in range(sent)
    ]
    client.give(*frames)
    assert 0 < len(verifier.seen) <= 2
    assert client.connection.is_behind


@pytest.mark.spec("G3.2-2")
def test_nothing_is_kept_of_a_connection_that_has_ended(claimant: Claimant) -> None:
    sender, _ = claimant.attach()
    claimant.put(sender, "send:a")
    connection = claimant.client.connection
    claimant.client.lose()
    assert len(claimant.node.claims) == 0
    assert connection.account.of_kind("tokens") == 0


@pytest.mark.spec("G3.2-2")
def test_another_connection_has_its_own_node(claimant: Claimant) -> None:
    sender, _ = claimant.attach()
    claimant.put(sender, "listen:a")
    other = Claimant(claimant.router, Verifier())
    assert other.client.receiver("a").detached is not None


def test_without_claims_there_is_no_node() -> None:
    client = Router().client()
    refused = client.receiver("$cbs").detached
    assert refused is not None
    assert refused.error is not None
    assert refused.error.condition == "amqp:not-found"
    assert cbs.node_of(client.connection) is None


def test_events_show_no_token(claimant: Claimant) -> None:
    sender, _ = claimant.attach()
    claimant.put(sender, "send:s3cret-path", "aud")
    claimant.put(sender, "s3cret", "aud")
    told = [each for each in claimant.router.events if "Token" in type(each).__name__]
    assert len(told) == 2
    assert "s3cret" not in repr(told)


@pytest.mark.parametrize(
    "audience",
    ["SharedAccessSignature sr=a&sig=s3cret&se=1&skn=n", "sb://h/?sig=s3cret", "eyJh.eyJs3cret.x"],
    ids=["sas", "query", "jwt"],
)
def test_a_token_in_place_of_the_audience_is_not_shown(claimant: Claimant, audience: str) -> None:
    sender, _ = claimant.attach()
    claimant.put(sender, "bad", audience)
    [told] = [each for each in claimant.router.events if isinstance(each, cbs.TokenNotAccepted)]
    assert told.audience == "<not shown>"
