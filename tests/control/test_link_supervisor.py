"""Links are kept attached, whatever the peer does: here auto-links, and what containers do."""

from __future__ import annotations

import gc
import random
import weakref

import pytest

from router.amqp.performatives import Modified, Released
from router.control.auto_links import RETRY_S, Line
from router.control.link_supervisor import (
    ANSWER_TIMEOUT_S,
    GRACE_S,
    MAX_ATTACHES,
    QUIESCE_TIMEOUT_S,
    RETRY_JITTER,
    Attempt,
    Status,
)
from router.engine.deferred import CHANGES_AT_ONCE, STEPS_A_ROUND

from support.containers import Container, ControlledRouter, plan
from support.in_memory import Sending
from support.turns import most_in_a_turn

# of very many lines so many are seen to in one turn, whatever it is
MOST_IN_A_TURN = CHANGES_AT_ONCE + MAX_ATTACHES
MANY = 5 * MOST_IN_A_TURN
LONGEST_S = RETRY_S * (1 + RETRY_JITTER) + 0.5


def status(router: ControlledRouter, name: str = "out q") -> str:
    """How an auto-link stands."""
    return str(router.auto_links.status_of(name))


@pytest.mark.parametrize("silent", [{"attach"}, {"attach", "detach"}, {"attach", "end"}])
def test_an_attach_that_is_never_answered_is_given_up(silent: set[str]) -> None:
    router = ControlledRouter()
    container = Container(router)
    container.silent = set(silent)
    router.configure(plan("q"))
    assert status(router) == "attaching"
    router.wait(ANSWER_TIMEOUT_S + 0.5)
    [line] = router.auto_links.lines_of("out q")
    assert line.status is Status.FAILED
    assert line.error is not None
    assert line.error.description == "the container has not answered the attach within 10 s"
    router.wait(300)
    # there is never more than one session of it
    assert len(container.connection.local_sessions) <= 1
    container.silent = set()
    container.catch_up()
    router.wait(ANSWER_TIMEOUT_S + LONGEST_S)
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
    assert line.error.description == "the container has not answered the begin within 10 s"
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


def test_a_thousand_are_attached_few_at_a_time() -> None:
    router = ControlledRouter()
    container = Container(router)
    container.silent = {"attach"}
    router.configure(*(plan(f"q{number}") for number in range(1000)))
    assert len(container.attaches) == MAX_ATTACHES
    # those that are not answered do not keep the others back for ever
    container.silent = set()
    router.wait(ANSWER_TIMEOUT_S + LONGEST_S)
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
        assert sum(lines.values()) >= len(router.auto_links.rules)
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


def lines_in(router: ControlledRouter, *statuses: Status) -> int:
    """How many lines stand like this."""
    return sum(router.auto_links.statuses[each] for each in statuses)


def many(count: int = MANY) -> ControlledRouter:
    """Return a router that wants very many auto-links to one container."""
    router = ControlledRouter()
    router.configure(*(plan(f"q{number}") for number in range(count)))
    return router


def test_very_many_begin_over_several_turns() -> None:
    router = many()
    kept = most_in_a_turn(router, lambda: lines_in(router, *Status), lambda: Container(router))
    assert kept <= MOST_IN_A_TURN
    assert lines_in(router, Status.ACTIVE) == MANY


def test_very_many_are_forgotten_over_several_turns() -> None:
    router = many()
    container = Container(router, opens=False)
    # what waits for an answer is not lost with its link
    container.silent = {"begin"}
    container.open()
    forgotten = most_in_a_turn(router, lambda: lines_in(router, *Status), container.lose)
    assert forgotten <= MOST_IN_A_TURN
    assert lines_in(router, *Status) == 0
    assert router.auto_links.count_statuses() == {"inactive": MANY}


def told(sent: list[Sending], outcome: object) -> int:
    """How many senders have been told this outcome."""
    return sum(each.outcome == outcome for each in sent)


def test_what_a_lost_container_had_and_had_not_of_very_many_links_is_reported() -> None:
    count = 4 * STEPS_A_ROUND
    router = many(count)
    container = Container(router)
    client = router.client()
    had: list[Sending] = []
    waiting: list[Sending] = []
    for node in container.nodes:
        sender = client.sender(node.address)
        node.grant(2)
        had.append(sender.send(b"settled neither here nor there"))
        # the container's window is closed for what comes next
        node.grant_window(0)
        waiting.append(sender.send(b"not sent yet"))
    assert all(len(node.received) == 1 for node in container.nodes)

    def resolved() -> int:
        return sum(each.is_over for each in had + waiting)

    # each link has two of them
    assert most_in_a_turn(router, resolved, container.lose) <= 2 * STEPS_A_ROUND
    assert told(had, Modified(delivery_failed=True)) == count
    assert told(waiting, Released()) == count
    assert router.auto_links.count_statuses() == {"inactive": count}
    assert router.forwarder.backlog.held_bytes == 0
    again = Container(router)
    assert router.auto_links.count_statuses() == {"active": count}
    for node in again.attached():
        node.grant(1)
    client.links[0].send(b"more")  # type: ignore[union-attr]
    assert [len(node.received) for node in again.attached(container.nodes[0].address)] == [1]


def test_very_many_that_fail_at_once_are_tried_over_several_turns() -> None:
    router = many()
    tried = most_in_a_turn(
        router, lambda: lines_in(router, Status.FAILED), lambda: Container(router, channel_max=9)
    )
    assert tried <= MOST_IN_A_TURN
    assert lines_in(router, Status.FAILED) == MANY - 10

    def told() -> int:
        return router.auto_links.failures

    assert most_in_a_turn(router, told, lambda: router.wait(0.25)) <= MOST_IN_A_TURN
    assert told() == MANY - 10


@pytest.mark.parametrize("is_busy", [False, True])
def test_very_many_that_leave_are_detached_over_several_turns(*, is_busy: bool) -> None:
    router = many()
    container = Container(router)
    for node in container.nodes if is_busy else ():
        node.grant(1)
    sender = router.client()
    for node in container.nodes if is_busy else ():
        sender.sender(node.address).send(b"m")
    router.configure()
    assert len(router.auto_links.leaving) == MANY

    def left() -> int:
        return len(router.auto_links.leaving)

    wait_s = QUIESCE_TIMEOUT_S if is_busy else GRACE_S
    router.wait(wait_s - 0.3)
    assert left() == MANY
    assert most_in_a_turn(router, left, lambda: router.wait(1.5)) <= MOST_IN_A_TURN
    assert left() == 0
    assert len(container.attached()) == 0


def test_those_that_leave_are_looked_at_in_turn() -> None:
    router = many()
    container = Container(router)
    for node in container.nodes:
        node.grant(1)
    router.configure()
    looked: list[str] = []
    check_quiescing = router.auto_links.check_quiescing

    def seen(line: Line, own: Attempt, now: float) -> None:
        looked.append(line.name)
        check_quiescing(line, own, now)

    router.auto_links.check_quiescing = seen  # type: ignore[method-assign]
    assert most_in_a_turn(router, lambda: len(looked), lambda: router.wait(0.25)) <= MOST_IN_A_TURN
    assert len(looked) == len(set(looked)) == MANY


def test_one_that_fails_again_and_again_is_counted_once_by_its_best_line() -> None:
    router = ControlledRouter()
    router.configure(plan("q"), plan("other"))
    refusing = Container(router)
    refusing.refuses["q"] = "amqp:not-found"
    refusing.attached("q")[0].detach()
    assert router.auto_links.count_statuses() == {"failed": 1, "active": 1}
    second = Container(router)
    assert router.auto_links.count_statuses() == {"active": 2}
    second.lose()
    assert router.auto_links.count_statuses() == {"failed": 1, "active": 1}
    refusing.lose()
    assert router.auto_links.count_statuses() == {"inactive": 2}


def test_how_they_stand_is_counted_without_looking_at_each() -> None:
    router = many()
    Container(router)
    looked: list[str] = []
    status_of = router.auto_links.status_of

    def seen(name: str) -> Status:
        looked.append(name)
        return status_of(name)

    router.auto_links.status_of = seen  # type: ignore[method-assign]
    assert router.auto_links.count_statuses() == {"active": MANY}
    assert looked == []
