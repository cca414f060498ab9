"""Dynamic nodes, and how long they last; the rest of them is in `test_linking`."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.performatives import (
    Accepted,
    DeleteOnClose,
    DeleteOnNoLinks,
    DeleteOnNoLinksOrMessages,
    DeleteOnNoMessages,
    Disposition,
    Modified,
    Released,
    Source,
    Target,
)
from router.amqp.types import Symbol
from router.core.addresses import nodes
from router.core.addresses.nodes import DIST_MODES, LIFETIME_POLICY
from router.core.forwarding.rule_updates import RuleUpdater

from support.in_memory import Client, ReceivingLink, Router, SendingLink

EITHER_LINKS = [DeleteOnNoLinks(), DeleteOnNoLinksOrMessages()]


def made(client: Client, policy: Any) -> tuple[ReceivingLink, str]:
    """Attach a receiver with a dynamic node; return it with the node's address."""
    properties = None if policy is None else {LIFETIME_POLICY: policy}
    source = Source(dynamic=True, dynamic_node_properties=properties)
    receiver = client.receiver(None, 5, source=source)
    assert receiver.attach is not None
    assert receiver.attach.source is not None
    assert receiver.attach.source.address is not None
    return receiver, receiver.attach.source.address


def is_deleted(link: SendingLink | ReceivingLink) -> bool:
    if link.detached is None:
        return False
    assert link.detached.error is not None
    assert str(link.detached.error.condition) == "amqp:resource-deleted"
    return True


@pytest.mark.parametrize(
    ("asked", "granted"),
    [
        (None, DeleteOnClose()),
        (DeleteOnClose(), DeleteOnClose()),
        (DeleteOnNoLinks(), DeleteOnNoLinks()),
        (DeleteOnNoMessages(), DeleteOnNoMessages()),
        (DeleteOnNoLinksOrMessages(), DeleteOnNoLinksOrMessages()),
        ("until monday", DeleteOnClose()),
    ],
)
@pytest.mark.spec("3.5.3-5", "3.5.9-1", "3.5.9-2")
def test_the_answer_tells_what_the_node_is_like(asked: Any, granted: Any) -> None:
    router = Router()
    receiver, _ = made(router.client(), asked)
    assert receiver.attach is not None
    assert receiver.attach.source is not None
    told = receiver.attach.source.dynamic_node_properties
    assert told == {LIFETIME_POLICY: granted, DIST_MODES: "move"}
    assert type(told[DIST_MODES]) is Symbol
    properties = {LIFETIME_POLICY: asked}
    target = Target(dynamic=True, dynamic_node_properties=properties if asked else None)
    sender = router.client().sender(None, target=target)
    assert sender.attach is not None
    assert isinstance(sender.attach.target, Target)
    assert sender.attach.target.dynamic_node_properties == told


# Nodes that are topics.

TEMPORARY_TOPIC = Symbol("temporary-topic")


def topic_of_sender(client: Client, **asked: Any) -> tuple[SendingLink, str]:
    """Attach a sender with a dynamic node; return it with the node's address."""
    sender = client.sender(None, target=Target(dynamic=True, **asked))
    assert sender.attach is not None
    assert isinstance(sender.attach.target, Target)
    assert sender.attach.target.address is not None
    return sender, sender.attach.target.address


@pytest.mark.parametrize(
    ("asked", "granted"),
    [
        ({"capabilities": (TEMPORARY_TOPIC,)}, (TEMPORARY_TOPIC,)),
        ({"capabilities": (Symbol("x"), Symbol("topic"))}, (Symbol("topic"),)),
        ({"dynamic_node_properties": {DIST_MODES: Symbol("copy")}}, ()),
    ],
)
@pytest.mark.spec("3.5.3-5", "3.5.9-2")
def test_each_receiver_of_a_topic_gets_a_copy(asked: Any, granted: Any) -> None:
    router = Router()
    client = router.client()
    sender, address = topic_of_sender(client, **asked)
    assert sender.attach is not None
    assert isinstance(sender.attach.target, Target)
    properties = sender.attach.target.dynamic_node_properties
    assert properties == {LIFETIME_POLICY: DeleteOnClose(), DIST_MODES: "copy"}
    assert type(properties[DIST_MODES]) is Symbol
    assert sender.attach.target.capabilities == granted
    receivers = [client.receiver(address, 5) for _ in range(2)]
    sendings = [sender.send(b"own"), client.sender(address).send(b"other's")]
    for receiver in receivers:
        assert receiver.attach is not None
        assert receiver.attach.source is not None
        assert receiver.attach.source.distribution_mode == "copy"
        receiver.settle(Accepted())
        assert [receiver.take(), receiver.take()] == [b"own", b"other's"]
    assert [each.outcome for each in sendings] == [Accepted(), Accepted()]


def test_a_receiver_may_ask_for_a_topic_and_browse_it() -> None:
    router = Router()
    source = Source(dynamic=True, distribution_mode=Symbol("copy"), capabilities=(TEMPORARY_TOPIC,))
    receiver = router.client().receiver(None, 5, source=source)
    assert receiver.attach is not None
    assert receiver.attach.source is not None
    assert receiver.attach.source.distribution_mode == "copy"
    assert receiver.attach.source.capabilities == (TEMPORARY_TOPIC,)


@pytest.mark.spec("3.5.7-1")
@pytest.mark.parametrize(
    "asked",
    [
        {"capabilities": (Symbol("temporary-queue"),)},
        {"dynamic_node_properties": {DIST_MODES: [Symbol("move"), Symbol("copy")]}},
        {"dynamic_node_properties": {DIST_MODES: "copy", "x": [{}]}},
        {},
    ],
)
def test_any_other_node_is_a_queue(asked: Any) -> None:
    router = Router()
    client = router.client()
    sender, address = topic_of_sender(client, **asked)
    receivers = [client.receiver(address, 5) for _ in range(2)]
    sender.send(b"x")
    assert sum(len(each.received) for each in receivers) == 1


def test_a_topic_stays_one_when_the_rules_change() -> None:
    router = Router()
    sender, address = topic_of_sender(router.client(), capabilities=(TEMPORARY_TOPIC,))
    RuleUpdater(router.forwarder).change_rules([], [], "closest")
    receivers = [sender.client.receiver(address, 5) for _ in range(2)]
    sender.send(b"x")
    assert [each.take() for each in receivers] == [b"x", b"x"]


def test_an_ordinary_address_has_no_properties() -> None:
    receiver = Router().client().receiver("q")
    assert receiver.attach is not None
    assert receiver.attach.source is not None
    assert receiver.attach.source.dynamic_node_properties is None


def test_senders_hear_of_their_messages_before_a_node_goes() -> None:
    router = Router()
    creator, address = made(router.client(), None)
    creator.grant(0)
    other = router.client().receiver(address, 1)
    senders = [router.client().sender(address) for _ in range(2)]
    taken = senders[0].send(b"taken")
    waiting = senders[1].send(b"waits")
    assert other.take() == b"taken"
    creator.detach()
    assert is_deleted(other)
    assert all(is_deleted(sender) for sender in senders)
    assert taken.outcome == Modified(delivery_failed=True)
    assert waiting.outcome == Released()


@pytest.mark.parametrize("how", ["detach", "end", "lose"])
@pytest.mark.parametrize("policy", [DeleteOnClose(), None, "until monday"])
@pytest.mark.spec("3.5.10-1")
def test_a_node_goes_with_the_link_that_asked_for_it(policy: Any, how: str) -> None:
    router = Router()
    receiver, address = made(router.client(), policy)
    sender = router.client().sender(address)
    other = router.client().receiver(address, 5)
    getattr(receiver if how == "detach" else receiver.client, how)()
    assert is_deleted(sender)
    assert is_deleted(other)
    assert len(router.table) == 0


@pytest.mark.parametrize("policy", EITHER_LINKS)
@pytest.mark.spec("3.5.11-1", "3.5.13-1")
def test_a_node_may_stay_as_long_as_it_has_links(policy: Any) -> None:
    router = Router()
    receiver, address = made(router.client(), policy)
    sender = router.client().sender(address)
    other = router.client().receiver(address, 5)
    receiver.detach()
    sender.send(b"x")
    assert other.take() == b"x"
    other.detach()
    late = router.client().receiver(address, 5)
    assert not is_deleted(sender)
    late.detach()
    assert len(router.table) == 1
    sender.detach()
    assert len(router.table) == 0
    gone = router.client().receiver(address)
    assert gone.attach is not None


@pytest.mark.spec("3.5.12-1")
def test_a_node_may_stay_as_long_as_it_holds_messages() -> None:
    router = Router()
    receiver, address = made(router.client(), DeleteOnNoMessages())
    sender = router.client().sender(address)
    other = router.client().receiver(address, 1)
    receiver.grant(0)
    first = sender.send(b"1")
    second = sender.send(b"2")
    receiver.detach()
    assert not is_deleted(sender)
    assert other.take() == b"1"
    other.settle(Accepted())
    assert first.outcome == Accepted()
    assert not is_deleted(sender)
    other.grant(1)
    assert not is_deleted(sender)
    other.settle(Accepted())
    assert second.outcome == Accepted()
    assert is_deleted(sender)
    assert is_deleted(other)
    assert len(router.table) == 0
    assert router.forwarder.dying_nodes == {}


def test_few_of_many_nodes_are_looked_at_in_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "MOST_EXAMINED", 2)
    router = Router()
    client, others = router.client(), router.client()
    for _ in range(7):
        creator, address = made(client, DeleteOnNoMessages())
        creator.grant(0)
        others.receiver(address, 1)
        router.client().sender(address).send(b"x")
        creator.detach()
    router.finish_turn()
    assert len(router.table) == 7
    others.give(Disposition(True, 0, 6, settled=True, state=Accepted()))
    left = []
    while router.forwarder.dying_nodes:
        router.forwarder.finish_turn()
        left.append(len(router.table))
    assert left == [5, 3, 1, 0]


@pytest.mark.spec("3.5.12-1")
def test_a_node_without_messages_goes_with_its_link() -> None:
    router = Router()
    receiver, address = made(router.client(), DeleteOnNoMessages())
    sender = router.client().sender(address)
    receiver.client.lose()
    assert is_deleted(sender)
    assert len(router.table) == 0


@pytest.mark.spec("3.5.9-3")
@pytest.mark.parametrize("policy", [*EITHER_LINKS, DeleteOnNoMessages()])
def test_a_node_is_there_as_long_as_its_own_link(policy: Any) -> None:
    router = Router()
    receiver, address = made(router.client(), policy)
    router.client().sender(address).detach()
    sender = router.client().sender(address)
    sender.send(b"x")
    assert receiver.take() == b"x"


def test_a_dying_node_whose_users_go_first_is_forgotten() -> None:
    router = Router()
    receiver, address = made(router.client(), DeleteOnNoMessages())
    sender = router.client().sender(address)
    other = router.client().receiver(address, 1)
    receiver.grant(0)
    sender.send(b"1")
    receiver.detach()
    other.client.lose()
    assert is_deleted(sender)
    assert router.forwarder.dying_nodes == {}
    assert len(router.table) == 0


def test_a_node_with_very_many_links_is_deleted_over_several_turns() -> None:
    router = Router()
    owner = router.client()
    _, name = made(owner, DeleteOnClose())
    client = router.client()
    senders = [client.sender(name) for _ in range(300)]
    router.is_patient = True
    owner.lose()
    router.end_turn()
    assert 0 < sum(map(is_deleted, senders)) < 300
    router.catch_up()
    assert all(map(is_deleted, senders))
    assert len(router.table) == 0


def test_it_is_known_who_holds_a_message_of_a_node_that_is_to_go() -> None:
    router = Router()
    creator, name = made(router.client(), DeleteOnNoMessages())
    creator.grant(0)
    sender = router.client().sender(name)
    receivers = [router.client().receiver(name, 1) for _ in range(3)]
    for _ in range(2):
        sender.send(b"x")
    holding = [each for each in receivers if each.received]
    creator.detach()
    (address,) = router.table.addresses()
    for receiver in holding:
        # whoever is known to hold one is looked at first, and another once it holds none
        holder = router.forwarder.dying_nodes[address]
        assert holder is not None
        assert holder.link.unsettled
        assert not is_deleted(sender)
        receiver.settle()
    assert is_deleted(sender)
    assert router.forwarder.dying_nodes == {}
