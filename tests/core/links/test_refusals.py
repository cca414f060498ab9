"""Messages that are rejected or dropped: the error for their sender, and the counters."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.message import Message, encode_message
from router.amqp.performatives import Released, Source
from router.amqp.sections import Data, Header, Properties
from router.amqp.types import Symbol
from router.core.addresses.access import Access, LinkRequest
from router.core.links.refusals import USER_ID_NOT_ALLOWED
from router.core.model.address import MESH
from router.errors import AmqpError, Scope

from support.in_memory import Client, Router, SendingLink
from support.pairs import pair, rejected
from support.schedules import data_section

NO_MESSAGE = b"\0\x53\x70\x50"


@pytest.mark.parametrize("settled", [True, False])
def test_a_message_without_an_address(settled: bool) -> None:
    router = Router()
    router.client().receiver("q", 5)
    sending = router.client().sender(None).send(data_section(b"x"), settled=settled)
    assert sending.outcome == (None if settled else rejected("amqp:precondition-failed"))
    total = router.table.total()
    assert (total.ingress, total.bytes_in, total.no_destination) == (1, 9, 1)
    assert total.dropped_presettled == total.presettled == settled


# Anonymous senders' messages that can be sent nowhere.

ACCEPTED, REJECTED = Symbol("amqp:accepted:list"), Symbol("amqp:rejected:list")
CLOSED = (True, "closed", "unavailable")


def to(address: str | None) -> bytes:
    """Return a message to an address."""
    return encode_message(Message(properties=Properties(to=address), body=(Data(b"x" * 40),)))


def anonymous(*outcomes: Symbol, detaches: bool = False) -> SendingLink:
    """Return an anonymous sender whose source lists outcomes, and an address is unavailable."""
    router = Router(rules=[CLOSED])
    router.forwarder.detaches_unroutable = detaches
    return router.client().sender(None, source=Source(address="me", outcomes=outcomes))


@pytest.mark.spec("A2.2.2-1", "A2.2.2-2")
@pytest.mark.parametrize("outcomes", [(), (REJECTED,), (ACCEPTED, REJECTED)])
@pytest.mark.parametrize("detaches", [True, False])
def test_an_unroutable_message_is_rejected(outcomes: tuple[Symbol, ...], detaches: bool) -> None:
    sender = anonymous(*outcomes, detaches=detaches)
    for _ in range(2):
        assert sender.send(to("closed/x")).outcome == rejected("amqp:not-found")
    assert sender.detached is None


@pytest.mark.spec("A2.2.2-3")
@pytest.mark.parametrize("address", ["closed/x", "_topo/0/nowhere/q", "_local/../$management"])
def test_it_is_rejected_with_the_error_that_a_link_would_get(address: str) -> None:
    sender = anonymous()
    refused = sender.client.sender(address)
    sending = sender.send(to(address))
    if refused.detached is None:
        assert sending.outcome == Released()
    else:
        assert refused.detached.error is not None
        assert sending.outcome == rejected(str(refused.detached.error.condition))


@pytest.mark.spec("A2.2.2-4", "A2.2.2-6")
@pytest.mark.parametrize("tag", [b"t", b"a tag of more than eight octets"])
@pytest.mark.parametrize(
    ("address", "condition"),
    [("closed/x", "amqp:not-found"), (None, "amqp:precondition-failed")],
)
def test_a_sender_that_knows_no_rejected_is_detached(
    tag: bytes, address: str | None, condition: str
) -> None:
    sender = anonymous(ACCEPTED)
    sending = sender.send(to(address), tag=tag)
    assert sending.outcome is None
    assert_detached(sender, condition, tag)
    # other links of the session go on
    receiver = sender.client.receiver("q", 5)
    other = sender.client.sender("q")
    other.send(b"x")
    assert len(receiver.received) == 1


def assert_detached(sender: SendingLink, condition: str, tag: bytes) -> None:
    """Check that a sender's link was closed with an error that names a delivery."""
    assert sender.detached is not None
    assert sender.detached.closed
    error = sender.detached.error
    assert error is not None
    assert error.condition == condition
    assert error.info == {Symbol("delivery-tag"): tag}


def test_nothing_is_left_of_a_message_that_is_incomplete_at_the_detach() -> None:
    sender = anonymous(ACCEPTED)
    sender.send(to("closed/x") + data_section(bytes(5000)), more=True)
    assert_detached(sender, "amqp:not-found", b"0")
    router = sender.client.router
    assert router.forwarder.backlog.held_bytes == 0
    assert not sender.client.over
    sender.client.lose()


@pytest.mark.spec("A2.2.2-5", "A2.2.2-6")
@pytest.mark.parametrize("detaches", [True, False])
def test_a_settled_message_to_nowhere_is_dropped_or_costs_the_link(detaches: bool) -> None:
    sender = anonymous(ACCEPTED, REJECTED, detaches=detaches)
    router = sender.client.router
    sender.send(to("closed/x"), tag=b"t", settled=True)
    assert router.table.total().dropped_presettled == 1
    if detaches:
        assert_detached(sender, "amqp:not-found", b"t")
    else:
        assert sender.detached is None


@pytest.mark.spec("A2.2-1")
def test_no_receiver_at_the_moment_is_no_routing_error() -> None:
    sender = anonymous(ACCEPTED, detaches=True)
    direct = sender.client.sender("q", source=Source(outcomes=(ACCEPTED,)))
    sender.send(to("q"), settled=True)
    direct_outcome = None if direct.credit == 0 else direct.send(b"x").outcome
    assert sender.send(to("q")).outcome == Released()
    assert direct_outcome in (None, Released())
    assert sender.detached is None


@pytest.mark.parametrize("settled", [True, False])
def test_a_link_of_another_router_is_not_detached(settled: bool) -> None:
    sender = anonymous(ACCEPTED, detaches=True)
    session: Any = sender.client.connection.local_sessions[0]
    incoming = session.incoming_link(sender.handle)
    incoming.side = MESH
    sending = sender.send(to("closed/x"), settled=settled)
    assert sending.outcome == (None if settled else rejected("amqp:not-found"))
    assert sender.detached is None


@pytest.mark.parametrize("more", [True, False])
def test_a_message_that_is_none(more: bool) -> None:
    router, sender, receiver = pair()
    if more:
        sending = sender.send(data_section(b"x"), more=True)
        sender.go_on(NO_MESSAGE)
        assert receiver.received[0].aborted
    else:
        sending = sender.send(NO_MESSAGE, message_format=0)
        assert receiver.received == []
    assert sending.outcome == rejected("amqp:decode-error")
    assert router.table.total().malformed == 1
    assert sender.detached is None


def test_a_settled_message_that_is_none_costs_the_link() -> None:
    router, sender, receiver = pair()
    sender.send(NO_MESSAGE, message_format=0, settled=True)
    assert sender.detached is not None
    assert sender.detached.error is not None
    assert sender.detached.error.condition == "amqp:decode-error"
    assert receiver.received == []
    assert router.table.total().malformed == 1


# User-ids, and addresses of anonymous senders, that an access does not allow.


def limited(user: str | None = "ada", **fields: Any) -> tuple[Router, Client]:
    """Return a router, and a client that may send messages only of its own user."""
    router = Router()
    client = router.client(user=user)
    client.connection.access = Access(checks_user_id=True, **fields)
    return router, client


def message_of(user: bytes | None, **sections: Any) -> bytes:
    """Return a message with a user-id and other sections."""
    properties = Properties(user_id=user, to="q")
    return encode_message(Message(properties=properties, body=(Data(b"x" * 40),), **sections))


@pytest.mark.parametrize("is_anonymous", [True, False], ids=["anonymous", "targeted"])
@pytest.mark.parametrize(
    ("user", "claimed", "is_allowed"),
    [
        ("ada", b"ada", True),
        ("ada", b"", True),
        ("ada", None, True),
        ("ada", b"bob", False),
        ("ada", b"ADA", False),
        ("ada", b"ada\0", False),
        ("ada", b"ad", False),
        ("ad\u00e4", "ad\u00e4".encode(), True),
        ("ad\u00e4", b"ad\xe4", False),
        (None, b"anonymous", True),
        (None, b"", True),
        (None, b"ada", False),
    ],
)
def test_user_ids(
    user: str | None, claimed: bytes | None, is_allowed: bool, is_anonymous: bool
) -> None:
    router, client = limited(user)
    receiver = router.client().receiver("q", credit=5)
    sending = client.sender(None if is_anonymous else "q").send(message_of(claimed))
    assert len(receiver.received) == is_allowed
    if not is_allowed:
        assert sending.outcome == rejected("amqp:unauthorized-access")
        assert sending.outcome.error.description == USER_ID_NOT_ALLOWED
        assert router.table.total().malformed == 1


HEADS: dict[str, dict[str, Any]] = {
    "plain": {},
    "header": {"header": Header(durable=True)},
    "annotations": {
        "header": Header(ttl=99),
        "delivery_annotations": {Symbol("a"): 1},
        "message_annotations": {Symbol("b"): "c"},
    },
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("is_multicast", [True, False], ids=["multicast", "balanced"])
def test_no_user_id_passes_in_pieces(head: dict[str, Any], is_multicast: bool) -> None:
    octets = message_of(b"bob", **head)
    for cut in range(1, len(octets)):
        router = Router(default="multicast" if is_multicast else "balanced")
        client = router.client(user="ada")
        client.connection.access = Access(checks_user_id=True)
        receivers = [router.client().receiver("q", credit=5) for _ in range(2)]
        sender = client.sender("q")
        sending = sender.send(octets[:cut], more=True, message_format=0)
        sender.go_on(octets[cut:])
        assert sending.outcome == rejected("amqp:unauthorized-access"), cut
        for receiver in receivers:
            assert all(each.aborted for each in receiver.received), cut
        assert sender.detached is None
        assert router.forwarder.backlog.held_bytes == 0


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_the_own_user_id_passes_if_the_first_frame_has_all_properties(
    head: dict[str, Any],
) -> None:
    octets = message_of(b"ada", **head)
    body_at = octets.index(b"\0\x53\x75")
    for cut in (body_at, body_at + 10, len(octets) - 1):
        router, client = limited()
        receiver = router.client().receiver("q", credit=5)
        sender = client.sender("q")
        sender.send(octets[:cut], more=True, message_format=0)
        sender.go_on(octets[cut:])
        assert receiver.received[0].complete
        assert not receiver.received[0].aborted


@pytest.mark.parametrize("its_format", [0, 1, 0xFFFFFFFF])
def test_messages_of_other_formats_claim_no_other_user(its_format: int) -> None:
    router, client = limited()
    receiver = router.client().receiver("q", credit=5)
    client.sender("q").send(message_of(b"bob"), message_format=its_format)
    assert not receiver.received
    client.sender("q").send(message_of(b"ada"), message_format=its_format)
    assert len(receiver.received) == 1


def test_a_settled_message_of_another_user_is_dropped() -> None:
    router, client = limited()
    receiver = router.client().receiver("q", credit=5)
    sender = client.sender("q")
    sender.send(message_of(b"bob"), settled=True)
    sender.send(message_of(b"ada"), settled=True)
    assert len(receiver.received) == 1
    assert sender.detached is None


class Only:
    """Rule that allows messages to one address."""

    def link_refusal(self, access: Access, request: LinkRequest) -> AmqpError | None:
        return None

    def message_refusal(self, access: Access, name: str) -> AmqpError | None:
        if name == "q":
            return None
        return AmqpError("amqp:unauthorized-access", "not allowed", Scope.LINK)


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("text", ["p", "/p", "amqp://q/p", "q/p", "Q", "q/../p", "p\0q", "$x"])
def test_a_message_to_a_refused_address(text: str, settled: bool) -> None:
    router, client = limited(rules=(Only(),))
    hidden = [router.client().receiver(name, credit=5) for name in ("p", "q/p", "Q")]
    octets = encode_message(Message(properties=Properties(to=text), body=(Data(b"x"),)))
    sending = client.sender(None).send(octets, settled=settled)
    assert sending.outcome == (None if settled else rejected("amqp:unauthorized-access"))
    assert [receiver.received for receiver in hidden] == [[], [], []]
    assert router.table.total().no_destination == 1


@pytest.mark.parametrize("text", ["q", "/q", "amqp://h:1/q", "q/", "q."])
def test_a_message_to_an_allowed_address(text: str) -> None:
    router, client = limited(rules=(Only(),))
    receiver = router.client().receiver("q", credit=5)
    octets = encode_message(Message(properties=Properties(to=text), body=(Data(b"x"),)))
    client.sender(None).send(octets)
    assert len(receiver.received) == 1


def test_an_annotation_of_routers_leads_to_no_refused_address() -> None:
    router = Router()
    client = router.client(honours_annotations=True)
    client.connection.access = Access((Only(),))
    hidden = router.client().receiver("p", credit=5)
    annotations = {Symbol("x-opt-qd.to"): "p", Symbol("x-opt-qd.phase"): 1}
    octets = message_of(None, message_annotations=annotations)
    assert client.sender(None).send(octets).outcome == rejected("amqp:unauthorized-access")
    assert not hidden.received
