"""A link with very many unsettled deliveries is stolen: the work goes on in later turns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from router.amqp.constants import ReceiverSettleMode, TerminusExpiryPolicy as Policy
from router.amqp.performatives import (
    Accepted,
    Attach,
    Detach,
    Disposition,
    Modified,
    Released,
    Target,
)
from router.engine.deferred import ITEMS_AT_ONCE

from support.audit import check_accounts, check_nothing_is_left, check_views
from support.in_memory import Client, ReceivingLink, Router, Sending, SendingLink

STOLEN = "amqp:link:stolen"
FAILED = Modified(delivery_failed=True)
VERY_MANY = ITEMS_AT_ONCE + 300


class Theft:
    """Stolen sender with very many unsettled deliveries, the last of which wait.

    The turn in which it was stolen is over.
    """

    def __init__(
        self, count: int = VERY_MANY, waiting: int = 100, address: str | None = "q", **fields: Any
    ) -> None:
        self.router = Router()
        self.receiver = self.router.client(window=2 * count).receiver("q", count - waiting)
        self.old = self.router.client(link_capacity=2 * count).sender("q", name="s", **fields)
        self.sent = [self.old.send(b"%d" % number) for number in range(count - waiting)]
        self.receiver.grant(0)
        self.old.credit = waiting + 1
        self.end = self.old.client.connection.local_sessions[0].links.find(0)
        self.end.credit = waiting + 1
        self.waiting = [self.old.send(b"%d" % number) for number in range(count - waiting, count)]
        self.router.is_patient = True
        self.new = self.steal(self.router.client(container=self.old.client.container))

    def steal(self, client: Client) -> SendingLink:
        return client.sender("q", name="s")

    @property
    def all(self) -> list[Sending]:
        return [*self.sent, *self.waiting]

    def turns(self) -> Iterator[None]:
        """Take the turns that are left, one after the other."""
        while self.router.turn.deferred:
            self.router.go_on()
            yield

    def check(self) -> None:
        """Nothing is left of the old link, and the new one is of use."""
        self.router.catch_up()
        assert self.router.forwarder.link_names.stolen >= 1
        assert self.router.forwarder.backlog.held_bytes == 0
        check_accounts(self.router)


def is_stolen(link: SendingLink) -> bool:
    error = None if link.detached is None else link.detached.error
    return error is not None and error.condition == STOLEN


def test_the_outcomes_of_very_many_deliveries_are_told_over_several_turns() -> None:
    theft = Theft()
    assert theft.new.attach is not None
    assert 0 < sum(each.is_over for each in theft.all) <= ITEMS_AT_ONCE
    assert not is_stolen(theft.old)
    for _ in theft.turns():
        # all that is told is told before the detach
        assert not is_stolen(theft.old) or all(each.is_over for each in theft.all)
    assert is_stolen(theft.old)
    assert {each.outcome for each in theft.sent} == {FAILED}
    assert {each.outcome for each in theft.waiting} == {Released()}
    heard = [type(each) for each in theft.old.client.heard]
    assert heard.index(Detach) > len(heard) - 1 - heard[::-1].index(Disposition)
    theft.receiver.grant(5)
    # what was released is its sender's again
    assert len(theft.receiver.received) == len(theft.sent)
    theft.check()


def test_a_link_with_few_unsettled_deliveries_is_closed_in_the_turn_of_the_attach() -> None:
    theft = Theft(count=50, waiting=20)
    assert is_stolen(theft.old)
    assert [each.outcome for each in theft.all] == [FAILED] * 30 + [Released()] * 20
    assert not theft.router.turn.deferred


def test_a_link_without_unsettled_deliveries_is_closed_although_no_steps_are_left() -> None:
    router = Router()
    old = router.client().sender("q", name="s")
    router.turn.deferred.left = 0
    router.is_patient = True
    new = router.client(container=old.client.container).sender("q", name="s")
    assert new.attach is not None
    assert is_stolen(old)


def test_what_receivers_say_meanwhile_is_told() -> None:
    theft = Theft()
    told = sum(each.is_over for each in theft.all)
    theft.receiver.settle()
    theft.receiver.grant(100)
    assert len(theft.receiver.received) > len(theft.sent)
    theft.receiver.settle()
    theft.router.catch_up()
    outcomes = [each.outcome for each in theft.all]
    assert outcomes == [FAILED] * told + [Accepted()] * (VERY_MANY - told)
    theft.check()


def test_what_waits_and_is_sent_meanwhile_is_not_released() -> None:
    theft = Theft()
    theft.receiver.grant(60)
    theft.router.catch_up()
    assert [each.outcome for each in theft.waiting] == [FAILED] * 60 + [Released()] * 40
    theft.check()


def test_transfers_that_come_meanwhile_are_ignored() -> None:
    theft = Theft()
    # what it was told by then is under way
    theft.old.credit = 1
    late = theft.old.send(b"late", more=True)
    theft.old.go_on(b"r")
    assert not late.states
    theft.receiver.grant(500)
    theft.router.catch_up()
    assert not late.states
    assert is_stolen(theft.old)
    assert b"later" not in [each.payload for each in theft.receiver.received]
    again = theft.new.send(b"again")
    theft.receiver.settle()
    assert again.outcome == Accepted()
    theft.check()


def test_a_message_that_is_half_way_is_aborted_in_the_end() -> None:
    theft = Theft(waiting=0)
    router = theft.router
    router.catch_up()
    receiver = router.client(window=5000).receiver("p", 5000)
    sender = router.client(link_capacity=5000).sender("p", name="t")
    sent = [sender.send(b"x") for _ in range(VERY_MANY)]
    half = sender.send(b"half", more=True)
    router.is_patient = True
    router.client(container=sender.client.container).sender("p", name="t")
    sender.go_on(b" and rest")
    assert not half.states
    assert receiver.received[-1].payload == b"half"
    router.catch_up()
    assert half.outcome == Released()
    assert [each.outcome for each in sent] == [FAILED] * VERY_MANY
    assert receiver.received[-1].aborted
    assert router.table.total().aborted == 1


def test_whoever_has_the_name_gets_no_credit_before_the_old_link_is_closed() -> None:
    theft = Theft()
    theft.receiver.grant(500)
    for _ in theft.turns():
        if theft.old.detached is None:
            assert theft.new.credit == 0
    assert theft.new.credit > 1
    theft.check()


def test_a_link_that_is_stolen_again_meanwhile() -> None:
    theft = Theft()
    theft.receiver.grant(500)
    third = theft.steal(theft.router.client(container=theft.old.client.container))
    # there was nothing to tell it
    assert is_stolen(theft.new)
    assert third.attach is not None
    assert theft.old.detached is None
    for _ in theft.turns():
        if theft.old.detached is None:
            assert third.credit == 0
    assert is_stolen(theft.old)
    assert third.credit > 1
    assert all(each.is_over for each in theft.all)
    theft.check()


def test_whoever_has_the_name_leaves_meanwhile() -> None:
    theft = Theft()
    theft.new.client.lose()
    theft.router.catch_up()
    assert is_stolen(theft.old)
    assert all(each.is_over for each in theft.all)
    theft.check()


@pytest.mark.parametrize("how", ["detach", "close", "end", "lose"])
def test_the_old_link_goes_meanwhile(how: str) -> None:
    theft = Theft()
    old = theft.old
    if how == "detach":
        old.detach(closed=False)
        # its peer may have sent what was ignored
        assert is_stolen(old)
        assert old.detached is not None
        assert not old.detached.closed
    elif how == "close":
        old.detach()
        assert is_stolen(old)
    else:
        getattr(old.client, how)()
    told = [each for each in theft.all if each.is_over]
    theft.router.catch_up()
    assert [each for each in theft.all if each.is_over] == told
    theft.receiver.grant(500)
    theft.receiver.settle()
    received = [int(each.payload) for each in theft.receiver.received]
    assert received == list(range(VERY_MANY))
    theft.new.send(b"next")
    assert theft.receiver.received[-1].payload == b"next"
    theft.check()


def test_a_link_that_could_be_resumed_is_not_suspended_once_it_is_stolen() -> None:
    target = Target(address="q", expiry_policy=Policy.LINK_DETACH, timeout=30)
    theft = Theft(target=target)
    theft.old.detach(closed=False)
    assert len(theft.router.forwarder.suspended) == 0
    theft.router.catch_up()
    assert len(theft.router.forwarder.suspended) == 0
    theft.receiver.grant(500)
    theft.check()


def test_what_its_sender_settles_itself_is_told_once() -> None:
    theft = Theft(rcv_settle_mode=ReceiverSettleMode.SECOND)
    last = theft.waiting[-1]
    theft.old.settle(last)
    theft.router.catch_up()
    assert last.states == []
    assert {len(each.states) for each in theft.all if each is not last} == {1}
    assert is_stolen(theft.old)
    theft.receiver.grant(500)
    assert theft.receiver.received[-1].payload == b"%d" % (VERY_MANY - 1)
    theft.check()


def multicast(count: int) -> tuple[Router, list[ReceivingLink], SendingLink, list[Sending]]:
    """Return a sender whose messages have gone to one receiver and wait for another one."""
    router = Router(default="multicast")
    receivers = [router.client(window=2 * count).receiver("q", 2 * count) for _ in range(2)]
    old = router.client(link_capacity=2 * count).sender("q", name="s")
    receivers[1].client.read(reads=False)
    receivers[1].client.window = 0
    receivers[1].client.say(receivers[1].client.flow())
    return router, receivers, old, [old.send(b"x") for _ in range(count)]


def test_very_many_copies_of_a_stolen_sender() -> None:
    router, receivers, old, sent = multicast(VERY_MANY // 2)
    router.is_patient = True
    router.client(container=old.client.container).sender("q", name="s")
    # each has two copies
    assert 0 < sum(each.is_over for each in sent) <= ITEMS_AT_ONCE // 2
    router.catch_up()
    assert {each.outcome for each in sent} == {FAILED}
    assert router.forwarder.backlog.held_bytes == 0
    receivers[0].settle()
    receivers[1].client.window = 10_000
    receivers[1].client.say(receivers[1].client.flow())
    receivers[1].client.read()
    assert receivers[1].received == []
    check_accounts(router)
    router.catch_up()
    check_nothing_is_left(router)


def test_a_receiver_takes_copies_that_are_being_taken_back() -> None:
    router, receivers, old, sent = multicast(VERY_MANY // 2)
    router.is_patient = True
    router.client(container=old.client.container).sender("q", name="s")
    receivers[1].client.window = 10_000
    receivers[1].client.say(receivers[1].client.flow())
    receivers[1].client.read()
    router.catch_up()
    # it gets what was not taken back before
    assert 0 < len(receivers[1].received) < VERY_MANY // 2
    assert all(each.complete and not each.aborted for each in receivers[1].received)
    assert {each.outcome for each in sent} == {FAILED}
    assert router.forwarder.backlog.held_bytes == 0
    check_accounts(router)


def test_the_answer_comes_before_the_detach_on_the_same_session() -> None:
    router = Router()
    router.client(window=5000).receiver("q", 5000)
    client = router.client(link_capacity=5000)
    old = client.sender("q", name="s")
    for _ in range(VERY_MANY):
        old.send(b"x")
    client.heard.clear()
    client.sender("q", name="s")
    kinds = [type(each) for each in client.heard if isinstance(each, (Attach, Detach))]
    assert kinds == [Attach, Detach]
    assert is_stolen(old)


def test_the_window_that_is_open_again_is_told_although_its_link_goes() -> None:
    router = Router()
    router.client(window=100).receiver("q", 10)
    old = router.client().sender("q", name="s")
    # large frames first, then small ones: by then the window reaches further than what was told
    old.send(b"x" * 400, more=True)
    for _ in range(5):
        old.go_on(b"", more=True)
    router.client(container=old.client.container).sender("q", name="s")
    assert is_stolen(old)
    check_views(old.client)
