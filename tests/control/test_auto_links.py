"""Auto-links are kept attached, whatever containers do, and let go in order."""

from __future__ import annotations

import gc
import random
import weakref

import pytest

from router.control.auto_links import (
    ANSWER_S,
    FIRST_RETRY_S,
    MOST_AT_ONCE,
    RETRY_S,
    SPREAD,
    Status,
)
from router.core.auto_links import AutoLinkChanged

from support.containers import Container, ControlledRouter, plan

LONGEST_S = RETRY_S * (1 + SPREAD) + 0.5


def news(router: ControlledRouter) -> list[tuple[str, str | None]]:
    """What was announced: statuses, with conditions."""
    return [
        (each.status, None if each.error is None else str(each.error.condition))
        for each in router.events
        if isinstance(each, AutoLinkChanged)
    ]


def status(router: ControlledRouter, name: str = "out q") -> str:
    """How an auto-link stands."""
    return str(router.auto_links.status_of(name))


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
    assert FIRST_RETRY_S * (1 - SPREAD) <= delay_s <= FIRST_RETRY_S * (1 + SPREAD)
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
    router.wait(FIRST_RETRY_S * (1 + SPREAD) + 0.25)
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


@pytest.mark.parametrize("silent", [{"attach"}, {"attach", "detach"}, {"attach", "end"}])
def test_an_attach_that_is_never_answered_is_given_up(silent: set[str]) -> None:
    router = ControlledRouter()
    container = Container(router)
    container.silent = set(silent)
    router.configure(plan("q"))
    assert status(router) == "attaching"
    router.wait(ANSWER_S + 0.5)
    [line] = router.auto_links.lines_of("out q")
    assert line.status is Status.FAILED
    assert line.error is not None
    assert line.error.description == "the container has not answered the attach for 10 s"
    router.wait(300)
    # there is never more than one session of it
    assert len(container.connection.local_sessions) <= 1
    container.silent = set()
    container.catch_up()
    router.wait(ANSWER_S + LONGEST_S)
    assert status(router) == "active"


def test_a_begin_that_is_never_answered_is_waited_for_once() -> None:
    router = ControlledRouter()
    container = Container(router)
    container.silent = {"begin"}
    router.configure(plan("q"))
    router.wait(300)
    assert status(router) == "failed"
    assert len(container.begun) == 1
    [line] = router.auto_links.lines_of("out q")
    assert line.error is not None
    assert line.error.description == "the container has not answered the begin for 10 s"
    # it comes in the end
    container.silent = set()
    container.catch_up()
    assert status(router) == "active"


def test_without_a_free_channel_it_fails_and_others_stay() -> None:
    router = ControlledRouter()
    container = Container(router, channel_max=1)
    router.configure(*(plan(name) for name in "abc"))
    assert [status(router, f"out {name}") for name in "abc"] == ["active", "active", "failed"]
    [line] = router.auto_links.lines_of("out c")
    assert line.error is not None
    assert line.error.description == "all 2 channels are in use"
    router.configure(plan("b"), plan("c"))
    router.wait(LONGEST_S)
    assert [status(router, f"out {name}") for name in "bc"] == ["active", "active"]
    assert len(container.attached()) == 2


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


@pytest.mark.parametrize("silent", [{"begin"}, {"attach"}])
def test_one_that_is_not_wanted_any_more_before_it_is_attached_goes(silent: set[str]) -> None:
    router = ControlledRouter()
    container = Container(router)
    container.silent = set(silent)
    router.configure(plan("q"))
    router.configure()
    assert not router.auto_links.leaving
    assert router.auto_links.count_statuses() == {}


def test_one_that_leaves_goes_with_its_connection() -> None:
    router = ControlledRouter()
    container = Container(router)
    router.configure(plan("q"))
    router.configure()
    assert router.auto_links.leaving
    container.lose()
    assert not router.auto_links.leaving
    router.wait(60)
    # nothing is kept of a connection that is over
    gone = weakref.ref(container)
    router.events.clear()
    del container
    gc.collect()
    assert gone() is None


def test_a_link_moves_to_another_phase_with_its_address() -> None:
    router = ControlledRouter()
    container = Container(router)
    router.configure(plan("q", receives=True), plan("q"))
    router.table.set_rules([], "balanced")
    router.auto_links.phases_changed()
    router.wait(2)
    assert len(container.attaches) == 2
    rules = ControlledRouter([(True, "q", "balanced", True, None, 0, 1)]).table.rules()
    router.table.set_rules(rules, "balanced")
    router.auto_links.phases_changed()
    router.wait(2)
    assert len(container.attaches) == 3
    address = router.table.in_use("q", 1)
    assert address is not None
    assert len(address.producers) == 1


def test_a_thousand_are_attached_few_at_a_time() -> None:
    router = ControlledRouter()
    container = Container(router)
    container.silent = {"attach"}
    router.configure(*(plan(f"q{number}") for number in range(1000)))
    assert len(container.attaches) == MOST_AT_ONCE
    # those that are not answered do not keep the others back for ever
    container.silent = set()
    router.wait(ANSWER_S + LONGEST_S)
    assert router.auto_links.count_statuses() == {"active": 1000}


def test_a_thousand_that_are_refused_are_tried_at_a_bounded_rate() -> None:
    router = ControlledRouter()
    container = Container(router)
    names = [f"q{number}" for number in range(1000)]
    container.refuses = dict.fromkeys(names, "amqp:not-found")
    router.configure(*map(plan, names))
    router.wait(60)
    before = router.auto_links.attempts
    in_each_second = []
    for _ in range(60):
        seen = router.auto_links.attempts
        router.wait(1)
        in_each_second.append(router.auto_links.attempts - seen)
    # fifty a second, spread evenly
    assert 2400 <= router.auto_links.attempts - before <= 3600
    assert max(in_each_second) <= 120
    container.refuses = {}
    router.wait(30)
    assert router.auto_links.count_statuses() == {"active": 1000}


@pytest.mark.parametrize("seed", range(20))
def test_whatever_containers_do_it_comes_right_when_they_behave_again(seed: int) -> None:
    chance = random.Random(seed)
    router = ControlledRouter()
    plans = [plan(name, receives=way) for name in "abcde" for way in (True, False)]
    containers: list[Container] = []
    for _ in range(150):
        match chance.randrange(9):
            case 0 if len(containers) < 3:
                containers.append(Container(router))
            case 1 if containers:
                chance.choice(containers).lose()
            case 2:
                some = chance.sample(plans, chance.randrange(len(plans) + 1))
                router.configure(*some)
            case 3 if containers:
                quirks = ("begin", "attach", "detach", "end")
                chance.choice(containers).silent = {chance.choice(quirks)}
            case 4 if containers:
                how = chance.choice(["amqp:not-found", "amqp:internal-error", "end"])
                chance.choice(containers).refuses[chance.choice("abcde")] = how
            case 5 if containers:
                nodes = chance.choice(containers).attached()
                if nodes:
                    node = chance.choice(nodes)
                    chance.choice([node.detach, node.end])()
            case 6 if containers:
                container = chance.choice(containers)
                container.silent = set()
                container.refuses = {}
            case 7 if containers:
                nodes = chance.choice(containers).attached()
                for node in nodes:
                    node.grant(3)
            case _:
                router.wait(chance.choice([0.25, 1, 7, 30]))
        containers = [each for each in containers if not each.connection.finished]
        lines = router.auto_links.count_statuses()
        assert sum(lines.values()) >= len(router.auto_links.plans)
    for container in containers:
        container.silent = set()
        container.refuses = {}
        container.catch_up()
    router.configure(*plans)
    # those that leave may take their time, and answers were late
    router.wait(60)
    assert not router.auto_links.leaving
    assert [str(router.auto_links.status_of(each.name)) for each in plans] == [
        "active" if containers else "inactive"
    ] * len(plans)
    for container in containers:
        assert sorted((each.address, each.sends) for each in container.attached()) == sorted(
            (each.address, each.receives) for each in plans
        )
        assert len(container.connection.local_sessions) == len(plans)
    for container in containers:
        container.lose()
    router.configure()
    assert len(router.table) == 0
