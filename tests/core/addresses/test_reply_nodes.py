"""Receivers of answers of the management node."""

from __future__ import annotations

import pytest

from router.amqp.performatives import Attach, Source, Target
from router.core.addresses.reply_nodes import MOST_OF_A_CONNECTION

from support.in_memory import Client, ReceivingLink, Router


@pytest.fixture
def router() -> Router:
    """Return a router with a management node."""
    router = Router()
    router.table.add_own_node("$management", "_local/$management")
    return router


def attach(client: Client, target: str, source: str = "$management") -> ReceivingLink:
    """Attach a receiver with a target."""
    link = ReceivingLink(client, len(client.links), source, f"r{len(client.links)}")
    client.links.append(link)
    client.say(Attach(link.name, link.handle, True, source=Source(address=source),
                      target=Target(address=target)))  # fmt: skip
    return link


def test_answers_find_the_receiver_by_its_target(router: Router) -> None:
    client, other = router.client(), router.client()
    first, second = attach(client, "my$1"), attach(client, "my$2")
    assert first.attach is not None
    assert first.attach.source is not None
    assert first.attach.source.address == "$management"
    assert not first.attach.source.dynamic
    nodes = router.forwarder.reply_nodes
    of = client.connection
    assert nodes.find(of, "my$1") != nodes.find(of, "my$2")
    assert nodes.find(of, "") == nodes.find(of, "$management") == nodes.find(of, "my$2")
    assert nodes.find(of, "elsewhere") is None
    assert nodes.find(other.connection, "my$1") is None
    second.grant(1)
    node = nodes.find(of, "my$2")
    assert node is not None
    other.sender(node).send(b"answer")
    assert second.take() == b"answer"
    second.detach()
    assert nodes.find(of, "my$2") is None
    assert nodes.find(of, "") == nodes.find(of, "my$1")
    client.lose()
    assert nodes.find(of, "my$1") is None


def test_the_node_ends_with_its_receiver(router: Router) -> None:
    client = router.client()
    link = attach(client, "my$1")
    assert len(router.table) == 1
    link.detach()
    assert len(router.table) == 0


def test_receivers_are_limited(router: Router) -> None:
    client = router.client()
    links = [attach(client, str(n)) for n in range(MOST_OF_A_CONNECTION + 1)]
    assert links[-2].detached is None
    refused = links[-1].detached
    assert refused is not None
    assert refused.error is not None
    assert refused.error.condition == "amqp:resource-limit-exceeded"


def test_without_the_right_to_manage_there_are_none(router: Router) -> None:
    refused = attach(router.client(management="none"), "me").detached
    assert refused is not None
    assert refused.error is not None
    assert refused.error.condition == "amqp:not-allowed"
