"""Links come to addresses, are refused, and go."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.constants import TerminusExpiryPolicy
from router.amqp.performatives import (
    Accepted,
    Attach,
    Coordinator,
    Error,
    Modified,
    Source,
    Target,
)

from support.in_memory import ReceivingLink, Router, SendingLink


def refused(link: SendingLink | ReceivingLink) -> str:
    """Return the condition that a link was refused with."""
    assert link.attach is not None
    terminus = link.attach.target if isinstance(link, SendingLink) else link.attach.source
    assert terminus is None
    assert link.detached is not None
    assert link.detached.closed
    assert link.detached.error is not None
    return str(link.detached.error.condition)


@pytest.mark.spec("2.6.3-4")
def test_termini_are_answered_with_what_was_asked_and_can_be_had() -> None:
    client = Router().client()
    sender = client.sender("amqp://host/q")
    receiver = client.receiver(
        None, source=Source(address="/q", outcomes=("amqp:accepted:list",), filter={})
    )
    assert sender.attach is not None
    assert receiver.attach is not None
    expiry = TerminusExpiryPolicy.LINK_DETACH
    assert sender.attach.target == Target(address="amqp://host/q", expiry_policy=expiry)
    assert receiver.attach.source == Source(
        address="/q",
        expiry_policy=expiry,
        distribution_mode="move",
        outcomes=("amqp:accepted:list",),
    )


@pytest.mark.parametrize(
    ("attach", "condition"),
    [
        (lambda c: c.receiver("closed"), "amqp:not-found"),
        (lambda c: c.sender("closed/x"), "amqp:not-found"),
        (lambda c: c.receiver(None), "amqp:invalid-field"),
        (lambda c: c.receiver(""), "amqp:invalid-field"),
        (lambda c: c.sender(""), "amqp:invalid-field"),
        (lambda c: c.sender("q", target=Coordinator()), "amqp:precondition-failed"),
        (lambda c: c.receiver("q", source=None), "amqp:invalid-field"),
        (lambda c: c.sender("q", target=None), "amqp:invalid-field"),
    ],
)
@pytest.mark.spec("0.2-5", "0.2-7", "2.6.3-1", "2.6.3-2", "B2.3.1-1")
def test_a_link_that_cannot_be_is_refused(attach: Any, condition: str) -> None:
    router = Router([(True, "closed", "unavailable")])
    client = router.client()
    assert refused(attach(client)) == condition
    assert len(router.table) == 0
    assert not client.over
    # the same client goes on
    assert client.sender("q").attached


@pytest.mark.parametrize("kind", ["receiver", "sender"])
def test_a_link_to_no_node_is_told_in_words_that_programs_know_and_which_node_it_was(
    kind: str,
) -> None:
    client = Router([(True, "closed", "unavailable")]).client()
    link = getattr(client, kind)("closed/x")
    assert link.detached is not None
    assert link.detached.error == Error("amqp:not-found", "Node not found", {"address": "closed/x"})


def test_a_link_whose_answer_is_too_large_leaves_nothing_behind() -> None:
    router = Router()
    client = router.client(max_frame_size=512)
    client.receiver("q" * 600)
    assert client.over
    assert len(router.table) == 0


def test_an_address_is_there_while_somebody_uses_it() -> None:
    router = Router()
    one, other = router.client().sender("q"), router.client().receiver("q")
    assert len(router.table) == 1
    one.detach()
    assert len(router.table) == 1
    other.client.lose()
    assert len(router.table) == 0


# Dynamic nodes.


def dynamic(router: Router) -> tuple[ReceivingLink, str]:
    receiver = router.client().receiver(None, 10, source=Source(dynamic=True))
    assert isinstance(receiver.attach, Attach)
    assert receiver.attach.source is not None
    address = receiver.attach.source.address
    assert receiver.attach.source.dynamic
    assert address is not None
    return receiver, address


@pytest.mark.spec("3.5.3-2")
def test_a_dynamic_node_can_be_sent_to() -> None:
    router = Router()
    receiver, address = dynamic(router)
    sender = router.client().sender(address)
    sending = sender.send(b"reply")
    receiver.settle()
    assert receiver.take() == b"reply"
    assert sending.outcome == Accepted()


@pytest.mark.parametrize("how", ["detach", "lose", "close", "end"])
def test_a_dynamic_node_goes_with_the_link_that_asked_for_it(how: str) -> None:
    router = Router()
    receiver, address = dynamic(router)
    sender = router.client().sender(address)
    other = router.client().receiver(address)
    sending = sender.send(b"half", more=True)
    getattr(receiver if how == "detach" else receiver.client, how)()
    assert sending.outcome == Modified(delivery_failed=True)
    for link in (sender, other):
        assert link.detached is not None
        assert link.detached.error is not None
        assert str(link.detached.error.condition) == "amqp:resource-deleted"
        assert not link.client.over
    assert len(router.table) == 0
    assert router.forwarder.backlog.held_bytes == 0


def test_a_dynamic_node_outlives_the_links_that_only_use_it() -> None:
    router = Router()
    receiver, address = dynamic(router)
    router.client().sender(address).detach()
    router.client().receiver(address).client.lose()
    assert router.client().sender(address).attached
    assert receiver.attached


@pytest.mark.spec("3.5.4-2")
def test_a_sender_may_ask_for_a_dynamic_node() -> None:
    router = Router()
    sender = router.client().sender(None, target=Target(dynamic=True))
    assert sender.attach is not None
    assert isinstance(sender.attach.target, Target)
    receiver = router.client().receiver(sender.attach.target.address, 5)
    sender.send(b"x")
    assert receiver.take() == b"x"
    sender.detach()
    assert receiver.detached is not None
    assert len(router.table) == 0


@pytest.mark.spec("3.5.3-3", "3.5.4-3")
def test_a_dynamic_address_names_the_container_and_the_link_that_asked_for_it() -> None:
    client = Router().client(container="shop")
    receiver = client.receiver(None, name="replies", source=Source(dynamic=True))
    sender = client.sender(None, name="requests", target=Target(dynamic=True))
    assert receiver.attach is not None
    assert sender.attach is not None
    for granted, name in ((receiver.attach.source, "replies"), (sender.attach.target, "requests")):
        assert isinstance(granted, Source | Target)
        assert granted.address is not None
        assert granted.address.endswith(f".shop.{name}")


def test_clients_that_take_each_other_s_nodes_down_do_not_recurse() -> None:
    router = Router()
    receivers = [dynamic(router) for _ in range(20)]
    for receiver, _ in receivers:
        for _, address in receivers:
            receiver.client.sender(address)
    for receiver, _ in receivers:
        receiver.detach()
    assert len(router.table) == 0


# Room, and the end of it all.


def test_nothing_is_said_to_a_lost_socket() -> None:
    """What its own sender had half sent to its own receiver is aborted for nobody."""
    router = Router()
    client = router.client()
    client.receiver("q", 5)
    client.sender("q").send(b"half", more=True)
    client.read(reads=False)
    client.lose()
    assert client.connection.outbox.output.size() == 0
    assert len(client.connection.outbox.output.octets) == 0


def test_the_links_of_a_connection_take_turns() -> None:
    """Room for one message at a time is not always the same link's."""
    router = Router()
    client = router.client(window=1)
    receivers = [client.receiver(name, 100) for name in "abc"]
    senders = [router.client().sender(name) for name in "abc"]
    for _ in range(5):
        for sender in senders:
            sender.send(b"x")
    for _ in range(9):
        client.open_window()
    counts = [len(receiver.received) for receiver in receivers]
    assert sum(counts) == 10
    assert max(counts) - min(counts) <= 1


def test_a_drain_is_answered_although_another_took_what_waited() -> None:
    router = Router()
    client = router.client(window=0)
    receiver = client.receiver("q", credit=1)
    router.client().sender("q").send(b"x")
    receiver.grant(1, drain=True)
    assert router.client().receiver("q", credit=1).take() == b"x"
    client.open_window(10)
    assert receiver.drained == 1
    assert receiver.credit == 0


def test_only_the_router_itself_receives_at_its_own_nodes() -> None:
    router = Router()
    router.forwarder.table.add_own_node("$service", "_local/$service")
    own = router.client(is_own=True)
    other = router.client()
    receiver = own.receiver("$service", credit=1)
    for name in ("$service", "_local/$service"):
        assert refused(other.receiver(name)) == "amqp:not-allowed"
    other.sender("_local/$service").send(b"hello")
    assert receiver.take() == b"hello"
