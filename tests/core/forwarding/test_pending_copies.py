"""Copies for very many receivers are made over several turns, as if it were one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from router.amqp.performatives import Accepted, Modified, Rejected, Released
from router.core.addresses.bindings import BindingRule, ExchangeRule
from router.core.addresses.rules import AddressRule
from router.core.model.address import Address
from router.engine.deferred import ITEMS_AT_ONCE
from router.engine.events import ConnectionClosed

from support.in_memory import Client, ReceivingLink, Router
from support.waypoints import message, texts

AT_ONCE = 2
MANY = 9
RULES = [AddressRule(True, "q", "multicast"), AddressRule(True, "p", "multicast")]


@pytest.fixture
def router() -> Router:
    """Return a router that makes two copies in a turn, and takes turns only when asked."""
    router = Router(RULES)
    router.forwarder.distribution.copies_at_once = AT_ONCE
    router.is_patient = True
    return router


def attached(router: Router, count: int = MANY, credit: int = 10) -> list[ReceivingLink]:
    """So many receivers of one address, each with its own connection."""
    return [router.client().receiver("q", credit=credit) for _ in range(count)]


def got(receivers: list[ReceivingLink]) -> list[int]:
    """How many messages each has got."""
    return [len(each.received) for each in receivers]


def address_of(router: Router, name: str = "q") -> Address:
    address = router.table.in_use(name)
    assert address is not None
    return address


def later_turns(router: Router) -> Iterator[None]:
    """Take the later turns."""
    while router.turn.deferred:
        router.go_on()
        yield


def test_only_so_many_copies_are_made_in_one_turn(router: Router) -> None:
    receivers = attached(router)
    router.client().sender("q").send(message("m"))
    assert sum(got(receivers)) == AT_ONCE
    made = AT_ONCE
    for _ in later_turns(router):
        assert made <= sum(got(receivers)) <= made + AT_ONCE
        made = sum(got(receivers))
    assert [texts(each) for each in receivers] == [["m"]] * MANY


def test_up_to_so_many_are_made_at_once(router: Router) -> None:
    receivers = attached(router, AT_ONCE)
    client = router.client()
    client.sender("q").send(message("m"))
    assert got(receivers) == [1] * AT_ONCE
    assert not router.turn.deferred
    assert not client.is_behind()


def test_the_turns_of_the_senders_connection_go_on_with_it_too(router: Router) -> None:
    receivers = attached(router)
    client = router.client()
    client.sender("q").send(message("m"))
    client.go_on()
    assert sum(got(receivers)) == MANY
    assert not client.is_behind()


def test_a_turn_of_its_connection_makes_a_bounded_number(router: Router) -> None:
    router.forwarder.distribution.copies_at_once = 64
    receivers = [router.client().receiver("q", credit=10) for _ in range(2)]
    crowd = router.client(window=10_000)
    receivers += [crowd.receiver("q", credit=10) for _ in range(3000)]
    client = router.client()
    sender = client.sender("q")
    # the credit of so many is shared out in later turns
    router.catch_up()
    router.is_patient = True
    sender.send(message("m"))
    assert sum(got(receivers)) == 64
    client.go_on()
    # what is counted as work for a turn: 32,768, at 64 a copy
    assert sum(got(receivers)) == 64 + 512


def test_a_peer_is_not_silent_while_it_is_not_read_from(router: Router) -> None:
    attached(router)
    client = router.client(idle_timeout_s=8.0)
    client.sender("q").send(message("m"))
    router.turn.now += 100
    client.go_on()
    client.connection.tick()
    router.end_turn()
    assert not client.connection.finished


def test_the_senders_outcome_is_told_when_all_have_told_theirs(router: Router) -> None:
    receivers = attached(router)
    sending = router.client().sender("q").send(message("m"))
    for receiver in receivers:
        receiver.settle(Accepted())
    assert sending.states == []
    for _ in later_turns(router):
        assert sending.states == []
        for receiver in receivers[:-1]:
            receiver.settle(Accepted())
    receivers[-1].settle(Rejected())
    assert sending.outcome == Rejected()


def test_where_all_settle_at_once_the_outcome_is_told_behind_the_last_copy(router: Router) -> None:
    receivers = [router.client().receiver("q", 10, snd_settle_mode=1) for _ in range(MANY)]
    sending = router.client().sender("q").send(message("m"))
    assert sending.states == []
    router.catch_up()
    assert got(receivers) == [1] * MANY
    assert sending.states == [Accepted()]


def test_the_next_message_does_not_overtake(router: Router) -> None:
    receivers = attached(router)
    sender = router.client().sender("q")
    other = router.client().sender("q")
    for text in ("first", "second"):
        sender.send(message(text))
    other.send(message("another's"))
    for _ in later_turns(router):
        for receiver in receivers:
            assert texts(receiver) == ["first", "another's", "second"][: len(receiver.received)]
    router.catch_up()
    assert [texts(each) for each in receivers] == [["first", "another's", "second"]] * MANY


@pytest.mark.parametrize("settled", [True, False])
def test_a_large_message_is_handed_on_over_several_turns(router: Router, settled: bool) -> None:
    receivers = attached(router)
    sender = router.client().sender("q")
    whole = message("x" * 3000)
    sending = sender.send(whole[:1000], more=True, settled=settled)
    sender.go_on(whole[1000:2000], more=True)
    sender.go_on(whole[2000:])
    router.is_patient = True
    frames = 0
    while sender.client.is_behind():
        router.go_on()
        if not router.turn.deferred:
            sender.client.go_on()
        now = sum(each.frames for receiver in receivers for each in receiver.received)
        # those at once of the next frame may follow in the same turn
        assert now - frames <= 2 * AT_ONCE
        frames = now
    router.catch_up()
    assert [texts(each) for each in receivers] == [["x" * 3000]] * MANY
    for receiver in receivers:
        receiver.settle(Accepted())
    assert sending.outcome == (None if settled else Accepted())


def test_a_receiver_that_comes_meanwhile_does_not_get_it(router: Router) -> None:
    receivers = attached(router)
    router.client().sender("q").send(message("m"))
    late = router.client().receiver("q", credit=10)
    router.catch_up()
    assert got(receivers) == [1] * MANY
    assert got([late]) == [0]


@pytest.mark.parametrize("gone", range(MANY))
def test_a_receiver_that_goes_meanwhile_is_nobodys_loss(router: Router, gone: int) -> None:
    receivers = attached(router)
    sending = router.client().sender("q").send(message("m"))
    receivers.pop(gone).detach()
    # the last of them has its place on the list now
    router.catch_up()
    assert got(receivers) == [1] * (MANY - 1)
    for receiver in receivers:
        receiver.settle(Accepted())
    assert sending.is_over


def test_who_has_stolen_a_receivers_link_gets_its_copy(router: Router) -> None:
    receivers = attached(router, MANY - 1)
    first = router.client(container="c").receiver("q", credit=10, name="n")
    router.client().sender("q").send(message("m"))
    thief = router.client(container="c").receiver("q", credit=10, name="n")
    router.catch_up()
    assert got(receivers) == [1] * (MANY - 1)
    assert len(first.received) + len(thief.received) == 1


def test_where_all_go_meanwhile_the_message_is_released(router: Router) -> None:
    receivers = attached(router)
    first, second = router.client().sender("q"), router.client().sender("q")
    first.send(message("first"))
    sending = second.send(message("second"))
    for receiver in receivers:
        receiver.detach()
    router.catch_up()
    assert got(receivers) == [1] * AT_ONCE + [0] * (MANY - AT_ONCE)
    assert sending.outcome == Released()
    assert address_of(router).counters.no_destination == 1


@pytest.mark.parametrize("settled", [True, False])
def test_the_copies_are_made_if_the_senders_connection_is_lost(
    router: Router, settled: bool
) -> None:
    receivers = attached(router)
    client = router.client()
    client.sender("q").send(message("m"), settled=settled)
    client.lose()
    router.catch_up()
    assert [texts(each) for each in receivers] == [["m"]] * MANY
    for receiver in receivers:
        receiver.settle(Accepted())
    assert sum(isinstance(event, ConnectionClosed) for event in router.events) == 1


def test_no_copies_are_made_of_a_part_whose_sender_is_lost(router: Router) -> None:
    receivers = attached(router)
    client = router.client()
    client.sender("q").send(message("x" * 100)[:50], more=True)
    client.lose()
    router.catch_up()
    assert sum(got(receivers)) == AT_ONCE
    assert all(each.aborted for receiver in receivers for each in receiver.received)


def test_a_part_is_aborted_everywhere_if_its_sender_is_lost_within_a_later_frame(
    router: Router,
) -> None:
    receivers = attached(router)
    client = router.client()
    sender = client.sender("q")
    octets = message("x" * 100)
    sender.send(octets[:50], more=True)
    sender.go_on(octets[50:60], more=True)
    while sum(got(receivers)) < MANY:
        router.go_on()
    while not router.turn.deferred:
        client.go_on()
    client.lose()
    router.catch_up()
    assert all(each.aborted for receiver in receivers for each in receiver.received)
    assert got(receivers) == [1] * MANY


def test_a_stolen_sender_is_told_the_outcome_of_the_copies_that_are_made(router: Router) -> None:
    receivers = attached(router)
    first = router.client(container="c")
    sending = first.sender("q", name="n").send(message("m"))
    router.client(container="c").sender("q", name="n")
    assert sending.outcome == Modified(delivery_failed=True)
    router.catch_up()
    assert sum(got(receivers)) == AT_ONCE


def test_at_the_end_of_the_router_the_copies_that_are_made_speak(router: Router) -> None:
    receivers = attached(router)
    sending = router.client().sender("q").send(message("m"))
    router.forwarder.distribution.pending_copies.give_up_all()
    for receiver in receivers[:AT_ONCE]:
        receiver.settle(Accepted())
    assert sending.outcome == Accepted()
    router.catch_up()
    assert sum(got(receivers)) == AT_ONCE


def test_one_of_which_no_copy_is_made_is_released_at_the_end_of_the_router(router: Router) -> None:
    receivers = attached(router)
    first, second = router.client().sender("q"), router.client().sender("q")
    first.send(message("first"))
    sending = second.send(message("second"))
    router.forwarder.distribution.pending_copies.give_up_all()
    router.end_turn()
    assert sending.outcome == Released()
    router.catch_up()
    assert sum(got(receivers)) == AT_ONCE


def test_no_credit_is_given_before_it_is_known_what_the_copies_take(router: Router) -> None:
    receivers = attached(router, credit=1)
    sender = router.client().sender("q")
    for receiver in receivers[:AT_ONCE]:
        receiver.grant(10)
    assert sender.credit == 1
    sender.send(message("m"))
    receivers[0].grant(10)
    assert sender.credit == 0
    router.catch_up()
    assert sender.credit == 0
    for receiver in receivers:
        receiver.grant(1)
    assert sender.credit == 1


def test_senders_get_credit_between_messages_that_follow_one_another(router: Router) -> None:
    router.forwarder.distribution.copies_at_once = 64
    client = router.client(window=10_000)
    receivers = [client.receiver("q", credit=100) for _ in range(400)]
    senders = [router.client().sender("q") for _ in range(2)]
    for sender in senders:
        sender.send(message("m"))
    late = router.client().sender("q")
    assert late.credit == 0
    # its turn has room for what is left of the first message, and for a part of the second
    senders[1].client.go_on()
    assert 400 < sum(got(receivers)) < 800
    assert late.credit > 0


def test_a_receiver_that_drains_gets_its_copy_before_its_drain_is_over(router: Router) -> None:
    receivers = attached(router)
    router.client().sender("q").send(message("m"))
    last = receivers[-1]
    last.grant(10, drain=True)
    assert last.drains_heard == 0
    router.catch_up()
    router.wait(0.3)
    router.wait(0.3)
    assert texts(last) == ["m"]
    assert last.credit == 0
    assert last.drains_heard == 1


def test_it_is_too_large_for_all(router: Router) -> None:
    for _ in range(MANY):
        router.client().receiver("q", credit=10, max_message_size=50)
    sending = router.client().sender("q").send(message("x" * 200))
    router.catch_up()
    assert isinstance(sending.outcome, Rejected)
    assert "receivers take at most 50 (max-message-size)" in str(sending.outcome.error)


def test_it_is_too_large_for_some(router: Router) -> None:
    small = [router.client().receiver("q", credit=10, max_message_size=50) for _ in range(MANY)]
    large = attached(router, 1)
    sending = router.client().sender("q").send(message("x" * 200))
    router.catch_up()
    assert got(small) == [0] * MANY
    assert got(large) == [1]
    large[0].settle(Accepted())
    assert sending.outcome == Accepted()


def test_a_settled_message_nobody_has_room_for_is_dropped_for_all(router: Router) -> None:
    receivers = attached(router, credit=1)
    for text, sender in [(text, router.client().sender("q")) for text in ("first", "second")]:
        sender.send(message(text), settled=True)
    router.catch_up()
    assert [texts(each) for each in receivers] == [["first"]] * MANY
    assert address_of(router).counters.dropped_presettled == MANY


def test_how_long_copies_took_is_counted(router: Router) -> None:
    attached(router)
    router.client().sender("q").send(message("m"))
    address = address_of(router)
    for _ in later_turns(router):
        router.turn.now += 0.01
    assert address.counters.egress == MANY
    latency = address.counters.forward_latency
    assert latency is not None
    assert sum(latency.counts()) == MANY
    assert latency.sum_s > 0.01


def exchange(router: Router, hops: list[str]) -> None:
    """Have what is sent to `x` go to all of these."""
    rules = [BindingRule(f"b {hop}", "x", None, hop) for hop in hops]
    router.forwarder.exchanges.configure([ExchangeRule("x", "x")], rules)
    while router.turn.deferred:
        router.go_on()


def test_an_exchange_gives_copies_to_very_many_places_over_several_turns(router: Router) -> None:
    names = [f"queue{number}" for number in range(MANY)]
    exchange(router, names)
    receivers = [router.client().receiver(name, credit=10) for name in names]
    sending = router.client().sender("x").send(message("m", subject="s"))
    made = sum(got(receivers))
    assert made <= AT_ONCE
    for _ in later_turns(router):
        assert sum(got(receivers)) <= made + AT_ONCE
        made = sum(got(receivers))
    assert got(receivers) == [1] * MANY
    for receiver in receivers:
        assert sending.states == []
        receiver.settle(Accepted())
    assert sending.outcome == Accepted()


def test_an_exchange_gives_copies_to_very_many_receivers_over_several_turns(
    router: Router,
) -> None:
    exchange(router, ["queue", "q", "p"])
    receivers = attached(router)
    receivers += [router.client().receiver("p", credit=10) for _ in range(MANY)]
    receivers += [router.client().receiver("queue", credit=10)]
    router.client().sender("x").send(message("m", subject="s"))
    assert sum(got(receivers)) <= 1 + AT_ONCE
    router.catch_up()
    assert got(receivers) == [1] * (2 * MANY + 1)


def test_the_search_for_very_many_places_goes_on_in_later_turns(router: Router) -> None:
    exchange(router, [f"queue{number}" for number in range(MANY)])
    last = router.client().receiver(f"queue{MANY - 1}", credit=10)
    sender = router.client().sender("x")
    sending = sender.send(message("m", subject="s"))
    assert got([last]) == [0]
    router.catch_up()
    assert texts(last) == ["m"]
    last.settle(Accepted())
    assert sending.outcome == Accepted()
    found = router.forwarder.exchanges.by_name["x"]
    assert (found.received, found.forwarded, found.dropped) == (1, 1, 0)
    assert [each.matched for each in found.bindings] == [1] * MANY


def test_where_the_search_finds_nobody_the_message_is_released(router: Router) -> None:
    exchange(router, [f"queue{number}" for number in range(MANY)])
    receiver = router.client().receiver("queue0", credit=10)
    sender = router.client().sender("x")
    receiver.detach()
    assert sender.credit > 0
    sending = sender.send(message("m", subject="s"))
    router.catch_up()
    assert sending.outcome == Released()
    found = router.forwarder.exchanges.by_name["x"]
    assert (found.received, found.forwarded, found.dropped) == (1, 0, 1)


def test_the_places_of_an_exchange_behind_another_are_found_in_later_turns_too(
    router: Router,
) -> None:
    names = [f"queue{number}" for number in range(MANY)]
    rules = [BindingRule("b x", "x", None, "y"), BindingRule("b y", "x", None, "queue0")]
    rules += [BindingRule(f"b {name}", "y", None, name) for name in names]
    found = [ExchangeRule("x", "x"), ExchangeRule("y", "y")]
    router.forwarder.exchanges.configure(found, rules)
    while router.turn.deferred:
        router.go_on()
    receivers = [router.client().receiver(name, credit=10) for name in names]
    router.client().sender("x").send(message("m", subject="s"))
    assert sum(got(receivers)) <= AT_ONCE
    router.catch_up()
    assert got(receivers) == [1] * MANY


def test_bindings_that_go_while_places_are_looked_for_do_no_harm(router: Router) -> None:
    names = [f"queue{number}" for number in range(MANY)]
    exchange(router, names)
    receivers = [router.client().receiver(name, credit=10) for name in names]
    router.client().sender("x").send(message("m", subject="s"))
    router.forwarder.exchanges.configure([], [])
    router.catch_up()
    assert got(receivers) == [1] * MANY


def test_one_of_several_sessions_that_ends_meanwhile_does_not_stop_its_connection(
    router: Router,
) -> None:
    receivers = attached(router)
    client: Client = router.client()
    client.sender("q").send(message("m"))
    client.end()
    router.catch_up()
    assert got(receivers) == [1] * MANY
    assert not client.is_behind()


def crowd(count: int, credit: int) -> tuple[Router, list[ReceivingLink]]:
    """Return a router with `count` receivers, each with this credit."""
    router = Router(RULES)
    client = router.client(window=10_000)
    return router, [client.receiver("q", credit=credit) for _ in range(count)]


def test_a_message_that_waits_for_very_many_is_aborted_over_several_turns() -> None:
    router, receivers = crowd(ITEMS_AT_ONCE + 100, credit=1)
    first, sender = router.client().sender("q"), router.client().sender("q")
    first.send(message("first"))
    sender.send(message("second")[:-2], more=True)
    address = address_of(router)
    assert sum(each.waiting.count for each in address.consumers) == len(receivers)
    router.is_patient = True
    sender.abort()
    held = router.forwarder.backlog.held_bytes
    assert held > 0
    router.go_on()
    assert 0 < router.forwarder.backlog.held_bytes < held
    router.catch_up()
    assert router.forwarder.backlog.held_bytes == 0
    assert [each.waiting.count for each in address.consumers] == [0] * len(receivers)
    for receiver in receivers:
        receiver.grant(1)
    assert got(receivers) == [1] * len(receivers)
    third = sender.send(message("third"))
    assert got(receivers) == [2] * len(receivers)
    assert third.states == []


def test_a_message_aborted_while_it_waits_is_seen_only_by_who_takes_it_meanwhile() -> None:
    router, receivers = crowd(ITEMS_AT_ONCE + 100, credit=1)
    first, sender = router.client().sender("q"), router.client().sender("q")
    first.send(message("first"))
    sender.send(message("second")[:-2], more=True)
    router.is_patient = True
    sender.abort()
    for receiver in (receivers[0], receivers[-1]):
        receiver.grant(1)
    router.catch_up()
    assert [each.aborted for each in receivers[0].received] == [False]
    assert [each.aborted for each in receivers[-1].received] == [False, True]
    assert receivers[0].current is receivers[-1].current is None
