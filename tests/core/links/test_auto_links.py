"""An auto-link at its address: phases, terms, credit, and how it takes its leave."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.performatives import (
    Accepted,
    Coordinator,
    Modified,
    Rejected,
    Released,
    Source,
    Target,
)
from router.amqp.types import Symbol
from router.core.addresses.rules import AddressRule, Rules
from router.core.links.auto_links import NO_NODE, phase_of

from support.containers import Container, ControlledRouter, Node, plan

THREE = tuple(Symbol(kind.NAME) for kind in (Accepted, Rejected, Released))
# name, waypoint phases: ingress, egress
WAYPOINT = (True, "q", "balanced", True, None, 0, 1)


def link(container: Container, node: Node) -> Any:
    """Return the router's end of a link."""
    return container.connection.local_sessions[node.channel].links.find(0)


def test_what_is_sent_goes_out_to_the_container() -> None:
    router = ControlledRouter()
    container = Container(router)
    router.configure(plan("q", external_address="queue://orders"))
    [node] = container.attached("queue://orders")
    sender = router.client().sender("q")
    # the container has given no credit yet
    assert sender.credit == 0
    node.grant(10)
    assert sender.credit > 0
    sending = sender.send(b"hello")
    assert [payload for _, payload in node.received] == [b"hello"]
    node.settle(0)
    assert sending.outcome == Accepted()


def test_what_the_container_sends_comes_in() -> None:
    router = ControlledRouter()
    container = Container(router)
    router.configure(plan("q", receives=True))
    [node] = container.attached("q")
    # nobody receives: it is not asked to send
    assert node.credit == 0
    client = router.client()
    receiver = client.receiver("q", credit=5)
    assert node.credit == 5
    node.send(b"hello")
    assert receiver.take() == b"hello"
    client.dispose([0])
    assert node.sent == {0: Accepted()}


@pytest.mark.parametrize("nowhere", [Target(), Coordinator()])
@pytest.mark.spec("2.6.3-6")
def test_nothing_is_sent_to_a_container_that_names_no_node(nowhere: Any) -> None:
    router = ControlledRouter()
    container = Container(router)
    container.answers["q"] = {"target": nowhere}
    router.configure(plan("q"))
    assert container.attached() == []
    # which programs close their connections for that hear of an error
    [detach] = [node.detached for node in container.nodes]
    assert (detach.closed, detach.error) == (True, None)
    [line] = router.auto_links.lines_of("out q")
    assert line.error is not None
    assert (router.auto_links.status_of("out q"), line.error.condition) == ("failed", NO_NODE)
    assert line.error.description == "the container's attach names no node for q"
    receiver = router.client().receiver("q", credit=2)
    sender = router.client().sender("q")
    sender.send(b"1")
    sender.send(b"2")
    assert (receiver.take(), receiver.take()) == (b"1", b"2")
    # it is asked again, and says it then
    del container.answers["q"]
    router.wait(4)
    assert len(container.attached("q")) == 1


@pytest.mark.spec("2.6.3-6")
def test_nothing_is_taken_from_a_container_that_names_no_node() -> None:
    router = ControlledRouter()
    container = Container(router)
    container.answers["q"] = {"source": Source()}
    router.configure(plan("q", receives=True))
    assert container.attached() == []
    assert router.auto_links.status_of("in q") == "failed"


def test_without_receivers_it_is_told_to_stop_and_not_to_drain() -> None:
    router = ControlledRouter()
    container = Container(router)
    router.configure(plan("q", receives=True))
    [node] = container.attached("q")
    receiver = router.client().receiver("q", credit=5)
    receiver.detach()
    assert node.credit == 0
    assert not any(flow.drain for flow in node.flows)
    # sent before it heard of it
    for _ in range(5):
        node.send(b"late")
    assert set(map(str, node.sent.values())) == {str(Released())}
    assert not node.is_gone()
    # one that goes on is wrong, once it has gone on for long
    link(container, node).overdraft = 1
    node.send(b"more")
    assert not node.is_gone()
    node.send(b"and more")
    assert node.is_gone()
    assert node.detached.error is not None
    assert node.detached.error.condition == "amqp:link:transfer-limit-exceeded"


def test_what_a_container_sends_beyond_its_credit_waits_for_receivers() -> None:
    router = ControlledRouter()
    container = Container(router)
    router.configure(plan("q", receives=True))
    [node] = container.attached("q")
    client = router.client()
    receiver = client.receiver("q", credit=2)
    # its queue was ahead of what its session had counted, as RabbitMQ's are
    for number in range(5):
        node.send(b"%d" % number)
    assert len(receiver.received) == 2
    assert not node.is_gone()
    told = len(node.flows)
    receiver.grant(2)
    assert len(receiver.received) == 4
    # that was for what had come already
    assert len(node.flows) == told
    receiver.grant(4)
    assert [receiver.take() for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]
    assert (node.flows[-1].link_credit, node.flows[-1].delivery_count) == (3, 5)
    client.dispose([*range(5)])
    assert node.sent == dict.fromkeys(range(5), Accepted())


def test_credit_is_given_again_when_somebody_receives() -> None:
    router = ControlledRouter()
    container = Container(router)
    router.configure(plan("q", receives=True))
    [node] = container.attached("q")
    client = router.client()
    client.receiver("q", credit=5).detach()
    receiver = client.receiver("q", credit=3)
    assert node.credit == 3
    # two of what it sent before were on their way still, and are of its new credit now
    for number in range(3):
        node.send(b"%d" % number)
    assert [receiver.take() for _ in range(3)] == [b"0", b"1", b"2"]


@pytest.mark.parametrize(
    ("rule", "fields", "phase"),
    [
        (None, {}, 0),
        (None, {"receives": True}, 0),
        (None, {"receives": True, "phase": 4}, 4),
        ((0, 1), {}, 0),
        ((0, 1), {"receives": True}, 1),
        ((0, 1), {"receives": True, "is_fallback": True}, 0),
        ((0, 3), {"receives": True}, 1),
        ((2, 3), {"receives": True}, 3),
        ((2, 3), {}, 2),
        ((0, 1), {"phase": 7}, 7),
    ],
)
def test_the_phase_is_that_of_whom_it_serves(
    rule: tuple[int, int] | None, fields: dict[str, Any], phase: int
) -> None:
    router = ControlledRouter()
    if rule is not None:
        rules = [AddressRule(True, "q", "balanced", True, None, *rule)]
        router.table.rules = Rules(rules, "balanced")
    assert phase_of(router.table, plan("q", **fields)) == phase


def test_a_waypoint_is_passed_through() -> None:
    router = ControlledRouter(rules=[WAYPOINT])
    container = Container(router)
    router.configure(plan("q"), plan("q", receives=True))
    out, back = container.attached("q")
    assert (out.sends, back.sends) == (False, True)
    client = router.client()
    receiver, sender = client.receiver("q", credit=5), client.sender("q")
    out.grant(5)
    sender.send(b"through")
    assert receiver.received == []
    [(_, payload)] = out.received
    back.send(payload)
    assert receiver.take() == b"through"


def test_an_outcome_that_the_container_does_not_list_is_not_said_to_it() -> None:
    router = ControlledRouter()
    container = Container(router)
    source = Source(address="q", outcomes=THREE, default_outcome=Released())
    container.answers["q"] = {"source": source}
    router.configure(plan("q", receives=True))
    [node] = container.attached("q")
    client = router.client()
    receiver = client.receiver("q", credit=10)
    for _ in range(5):
        node.send(b"m")
    client.dispose([0], Modified(delivery_failed=True))
    client.dispose([1], Rejected())
    client.dispose([2, 3], Modified())
    receiver.detach()
    assert [type(state) for state in node.sent.values()] == [
        Released, Rejected, Released, Released, Released,
    ]  # fmt: skip


def test_the_default_outcome_of_a_container_that_receives_speaks_for_silence() -> None:
    router = ControlledRouter()
    container = Container(router)
    container.answers["q"] = {"source": Source(address="q", default_outcome=Rejected())}
    router.configure(plan("q"))
    [node] = container.attached("q")
    node.grant(5)
    sending = router.client().sender("q").send(b"m")
    node.detach()
    assert sending.outcome == Rejected()


@pytest.mark.parametrize("rules", [(), [(True, "q", "unavailable")]])
@pytest.mark.parametrize("default", ["balanced", "unavailable"])
def test_its_address_is_available(rules: list[tuple[object, ...]], default: str) -> None:
    router = ControlledRouter(rules=rules, default=default)
    router.configure(plan("q"))
    # even while the container is not there
    sender = router.client().sender("q")
    assert sender.detached is None
    router.configure()
    sender = router.client().sender("q", name="other")
    assert (sender.detached is None) == (default == "balanced" and not rules)


def test_one_that_receives_takes_its_leave() -> None:
    router = ControlledRouter()
    container = Container(router)
    router.configure(plan("q", receives=True))
    [node] = container.attached("q")
    client = router.client()
    receiver = client.receiver("q", credit=3)
    node.send(b"one")
    router.configure()
    assert node.credit == 0
    # what was sent before it heard of that is taken
    node.send(b"two")
    router.wait(5)
    assert not node.is_gone()
    client.dispose([0, 1])
    router.wait(1)
    assert node.is_gone()
    assert (node.detached.closed, node.detached.error) == (True, None)
    assert node.sent == {0: Accepted(), 1: Accepted()}
    assert [receiver.take(), receiver.take()] == [b"one", b"two"]


def test_one_that_sends_takes_its_leave() -> None:
    router = ControlledRouter()
    container = Container(router)
    router.configure(plan("q"))
    [node] = container.attached("q")
    node.grant(4)
    sender = router.client().sender("q")
    first = sender.send(b"one")
    second = sender.send(b"two")
    router.configure()
    # nobody else receives: credit is taken back
    assert sender.drain
    router.wait(5)
    assert not node.is_gone()
    node.settle(0)
    node.settle(1, Rejected())
    assert (first.outcome, second.outcome) == (Accepted(), Rejected())
    router.wait(1)
    assert node.is_gone()
    assert len(router.table) == 1


def test_a_message_that_is_under_way_is_sent_to_its_end() -> None:
    router = ControlledRouter()
    container = Container(router)
    router.configure(plan("q"))
    [node] = container.attached("q")
    node.grant(5)
    sender = router.client().sender("q")
    sending = sender.send(b"begin", more=True)
    router.configure()
    router.wait(2)
    assert not node.is_gone()
    sender.go_on(b"end")
    node.settle(0)
    assert sending.outcome == Accepted()
    router.wait(1)
    assert node.is_gone()


def test_what_is_not_settled_is_not_waited_for_for_ever() -> None:
    router = ControlledRouter()
    container = Container(router)
    router.configure(plan("q"))
    [node] = container.attached("q")
    node.grant(5)
    sending = router.client().sender("q").send(b"one")
    router.configure()
    router.wait(31)
    assert node.is_gone()
    assert sending.outcome == Modified(delivery_failed=True)


def test_what_comes_while_one_leaves_goes_to_another() -> None:
    router = ControlledRouter()
    container = Container(router)
    router.configure(plan("q"))
    [node] = container.attached("q")
    node.grant(5)
    client = router.client()
    sender = client.sender("q")
    sender.send(b"one")
    receiver = client.receiver("q", credit=5)
    router.configure()
    for payload in (b"two", b"three"):
        sender.send(payload)
    assert len(node.received) == 1
    assert [receiver.take(), receiver.take()] == [b"two", b"three"]


def test_none_receives_what_is_for_the_router_itself() -> None:
    router = ControlledRouter()
    router.table.add_own_node("$management")
    container = Container(router)
    router.configure(plan("$management"))
    assert container.attached() == []
    assert router.auto_links.count_statuses() == {"failed": 1}
    [line] = router.auto_links.lines_of("out $management")
    assert line.error is not None
    assert line.error.condition == "amqp:not-found"
