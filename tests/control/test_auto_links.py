"""Auto-links are kept attached, whatever containers do, and let go in order."""

from __future__ import annotations

import pytest

from router.control.auto_links import FIRST_RETRY_S, RETRY_S
from router.control.link_supervisor import RETRY_JITTER, Status
from router.core.addresses.rules import Rules
from router.core.links.auto_links import AutoLinkChanged

from support.containers import Container, ControlledRouter, plan

LONGEST_S = RETRY_S * (1 + RETRY_JITTER) + 0.5


def news(router: ControlledRouter) -> list[tuple[str, str | None]]:
    """Return the announced statuses, with their error conditions."""
    return [
        (each.status, None if each.error is None else str(each.error.condition))
        for each in router.events
        if isinstance(each, AutoLinkChanged)
    ]


def status(router: ControlledRouter, name: str = "out q") -> str:
    """How an auto-link stands."""
    return str(router.auto_links.status_of(name))


@pytest.mark.spec("G1.2-4")
def test_it_is_attached_as_soon_as_both_are_there() -> None:
    router = ControlledRouter()
    router.configure(plan("q"))
    assert status(router) == "inactive"
    container = Container(router)
    assert status(router) == "active"
    assert len(container.attached("q")) == 1
    # to say it again changes nothing
    router.configure(plan("q"))
    assert (len(container.begun), len(container.attaches)) == (1, 1)
    other = Container(router, "another broker")
    assert other.begun == []


def test_it_is_found_by_the_name_of_its_listener_too() -> None:
    router = ControlledRouter()
    router.configure(plan("q", connection="brokers"))
    one = Container(router, "a", "brokers")
    other = Container(router, "b", "brokers")
    third = Container(router, "c", "others")
    assert [len(each.attached("q")) for each in (one, other, third)] == [1, 1, 0]


@pytest.mark.spec("2.6.1-1")
def test_each_connection_of_a_container_has_a_link() -> None:
    router = ControlledRouter()
    router.configure(plan("q", receives=True))
    one, other = Container(router), Container(router)
    assert len(one.attached()) == len(other.attached()) == 1
    names = {each.attaches[0].name for each in (one, other)}
    assert len(names) == 2
    one.close()
    assert status(router, "in q") == "active"
    other.lose()
    assert status(router, "in q") == "inactive"
    assert router.auto_links.lines_of("in q") == []


def test_a_client_of_that_name_is_no_container() -> None:
    router = ControlledRouter()
    router.configure(plan("q"))
    container = Container(router, role="normal")
    assert container.begun == []


@pytest.mark.parametrize("how", ["amqp:not-found", "end"])
def test_a_refusal_is_tried_again(how: str) -> None:
    router = ControlledRouter()
    container = Container(router)
    container.refuses["q"] = how
    router.configure(plan("q"))
    [line] = router.auto_links.lines_of("out q")
    assert status(router) == "failed"
    assert line.error is not None
    assert (line.error.condition, line.error.description) == ("amqp:not-found", "no such queue")
    assert line.retry_at is not None
    delay_s = line.retry_at - router.turn.now
    assert FIRST_RETRY_S * (1 - RETRY_JITTER) <= delay_s <= FIRST_RETRY_S * (1 + RETRY_JITTER)
    router.wait(delay_s + 0.25)
    assert (line.attempts, status(router)) == (2, "failed")
    # nothing is left of those before
    assert len(container.begun) == 0
    del container.refuses["q"]
    router.wait(LONGEST_S)
    assert status(router) == "active"
    assert news(router) == [("failed", "amqp:not-found"), ("active", None)]
    assert (router.auto_links.attempts, router.auto_links.failures) == (3, 2)
    # what was wrong last can still be looked up
    assert line.error is not None


@pytest.mark.parametrize("how", ["detach", "close", "end"])
def test_what_the_container_detaches_is_attached_again(how: str) -> None:
    router = ControlledRouter()
    container = Container(router)
    router.configure(plan("q"))
    router.wait(60)
    [node] = container.attached()
    if how == "end":
        node.end()
    else:
        node.detach("amqp:resource-deleted", closed=how == "close")
    assert status(router) == "failed"
    router.wait(FIRST_RETRY_S * (1 + RETRY_JITTER) + 0.25)
    assert status(router) == "active"
    assert len(container.attached("q")) == 1
    assert len(container.begun) == 1


def test_one_that_goes_again_and_again_is_not_hurried() -> None:
    router = ControlledRouter()
    container = Container(router)
    router.configure(plan("q"))
    for _ in range(10):
        [line] = router.auto_links.lines_of("out q")
        if line.status is Status.ACTIVE:
            container.attached()[0].detach()
        router.wait(LONGEST_S)
    assert 10 <= len(container.attaches) <= 12
    assert news(router).count(("active", None)) >= 10


def test_a_container_that_comes_again_has_its_links_at_once() -> None:
    router = ControlledRouter()
    router.configure(plan("q"), plan("q", receives=True))
    for _ in range(3):
        container = Container(router)
        assert len(container.attached("q")) == 2
        container.lose()
        assert status(router) == status(router, "in q") == "inactive"
    # that it went is not the links' failure
    assert [each for each, _ in news(router)] == ["active"] * 6
    router.wait(60)


def test_a_failure_is_forgotten_with_its_connection() -> None:
    router = ControlledRouter()
    router.configure(plan("q"))
    container = Container(router)
    container.refuses["q"] = "amqp:not-found"
    container.attached()[0].detach()
    container.lose()
    router.wait(LONGEST_S)
    assert status(router) == "inactive"
    Container(router)
    assert status(router) == "active"


def test_one_that_becomes_another_goes_and_comes() -> None:
    router = ControlledRouter()
    container = Container(router)
    router.configure(plan("q", name="it", external_address="one"))
    router.configure(plan("q", name="it", external_address="two"))
    assert status(router, "it") == "active"
    router.wait(2)
    assert [each.address for each in container.attached()] == ["two"]


def test_one_that_leaves_is_counted_until_it_has_gone() -> None:
    router = ControlledRouter()
    container = Container(router)
    router.configure(plan("q"), plan("other"))
    node = container.attached("q")[0]
    node.grant(1)
    router.client().sender("q").send(b"m")
    router.configure(plan("other"))
    assert router.auto_links.count_statuses() == {"active": 1, "quiescing": 1}
    node.settle(0)
    router.wait(1)
    assert router.auto_links.count_statuses() == {"active": 1}
    assert container.attached("q") == []
    assert not router.auto_links.leaving


def test_a_link_moves_to_another_phase_with_its_address() -> None:
    router = ControlledRouter()
    container = Container(router)
    router.configure(plan("q", receives=True), plan("q"))
    router.table.rules = Rules([], "balanced")
    router.auto_links.phases_changed()
    router.wait(2)
    assert len(container.attaches) == 2
    rules = ControlledRouter([(True, "q", "balanced", True, None, 0, 1)]).table.rules
    router.table.rules = Rules(rules, "balanced")
    router.auto_links.phases_changed()
    router.wait(2)
    assert len(container.attaches) == 3
    address = router.table.in_use("q", 1)
    assert address is not None
    assert len(address.producers) == 1
