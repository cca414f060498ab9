"""Messages go where their subjects lead; who receives there speaks for them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.amqp.message import decode_message
from router.amqp.performatives import Accepted, Modified, Rejected, Released
from router.core.addresses.bindings import BindingRule, Exchange, ExchangeRule
from router.core.addresses.rules import AddressRule
from router.core.addresses.topics import MQTT
from router.core.forwarding.rule_updates import RuleUpdater

from support.examples import examples
from support.in_memory import ReceivingLink, Router, Sending
from support.waypoints import into, message, out_of, text_of, texts


def exchange_of(
    *bindings: tuple[Any, ...],
    rules: list[AddressRule] | None = None,
    **fields: Any,
) -> tuple[Router, Exchange]:
    """Return a router with exchange `e` at address `e`; bindings are keys and next hops."""
    router = Router(rules or ())
    configure(router, *bindings, **fields)
    return router, router.forwarder.exchanges.by_name["e"]


def configure(router: Router, *bindings: tuple[Any, ...], **fields: Any) -> None:
    rules = [BindingRule(f"b{number}", "e", *binding) for number, binding in enumerate(bindings)]
    fields = {"address": "e", **fields}
    router.forwarder.exchanges.configure([ExchangeRule("e", **fields)], rules)
    router.finish_turn()


def receivers(router: Router, *addresses: str, credit: int = 10) -> list[ReceivingLink]:
    return [router.client().receiver(address, credit=credit) for address in addresses]


def counted(exchange: Exchange) -> tuple[int, int, int, int]:
    return exchange.received, exchange.forwarded, exchange.dropped, exchange.diverted


def test_a_message_goes_to_each_next_hop_that_it_matches_once() -> None:
    router, exchange = exchange_of(
        ("a.*", "one"), ("a.b", "one"), ("a.c.#", "one"), ("a.c.#", "two"), ("a.b.c", "two")
    )
    one, two = receivers(router, "one", "two")
    sender = router.client().sender("e")
    for subject in ("a.b", "a.c", "a.c.d", "x.y.z", "a.b.c"):
        sender.send(message(subject, subject=subject), settled=True)
    assert texts(one) == ["a.b", "a.c", "a.c.d"]
    assert texts(two) == ["a.c", "a.c.d", "a.b.c"]
    assert [each.matched for each in exchange.bindings] == [2, 1, 2, 2, 1]
    assert counted(exchange) == (5, 4, 1, 0)


def test_the_mqtt_method_and_the_alternate_address() -> None:
    router, exchange = exchange_of(("a/+", "one"), method=MQTT, alternate="rest")
    one, rest = receivers(router, "one", "rest")
    sender = router.client().sender("e")
    for subject in ("a/b", "a.b", None):
        sender.send(message(str(subject), subject=subject))
    assert texts(one) == ["a/b"]
    assert texts(rest) == ["a.b", "None"]
    assert counted(exchange) == (3, 3, 0, 2)


def test_without_a_key_everything_matches() -> None:
    router, _ = exchange_of((None, "one"), ("#", "two"), ("*", "three"))
    one, two, three = receivers(router, "one", "two", "three")
    sender = router.client().sender("e")
    sender.send(message("m"))
    assert [texts(one), texts(two), texts(three)] == [["m"], ["m"], []]


def test_who_is_not_there_gets_nothing_and_the_alternate_gets_it_if_nobody_is() -> None:
    router, exchange = exchange_of(("a", "one"), ("a", "two"), alternate="rest")
    (two,) = receivers(router, "two")
    (rest,) = receivers(router, "rest")
    sender = router.client().sender("e")
    sender.send(message("m", subject="a"))
    assert (texts(two), texts(rest)) == (["m"], [])
    two.detach()
    sender.send(message("n", subject="a"))
    assert texts(rest) == ["n"]
    rest.detach()
    assert sender.drain
    assert sender.send(message("o", subject="a")).outcome == Released()
    assert counted(exchange) == (3, 2, 1, 1)


def test_those_at_the_exchange_s_own_address_get_everything() -> None:
    router, exchange = exchange_of(("a", "one"), alternate="rest")
    own, one, rest = receivers(router, "e", "one", "rest")
    sender = router.client().sender("e")
    sender.send(message("m", subject="a"))
    sender.send(message("n", subject="b"))
    assert (texts(own), texts(one), texts(rest)) == (["m", "n"], ["m"], [])
    assert counted(exchange) == (2, 2, 0, 0)


@pytest.mark.parametrize(
    ("states", "told"),
    [
        ((Accepted(), Accepted()), Accepted()),
        ((Accepted(), Released()), Accepted()),
        ((Released(), Accepted()), Accepted()),
        ((Accepted(), Rejected()), Rejected()),
        ((Released(), Modified(delivery_failed=True)), Modified(delivery_failed=True)),
        ((Released(), Released()), Released()),
    ],
)
def test_the_sender_is_told_what_the_receivers_say_when_all_have(
    states: tuple[Any, Any], told: Any
) -> None:
    router, _ = exchange_of(("#", "one"), ("#", "two"))
    got = receivers(router, "one", "two")
    sending = router.client().sender("e").send(message("m"))
    got[0].settle(states[0])
    assert sending.states == []
    got[1].settle(states[1])
    assert sending.outcome == told


def test_one_next_hop_is_as_if_it_had_been_sent_to() -> None:
    router, _ = exchange_of(("#", "one"))
    first, second = receivers(router, "one", "one")
    sending = router.client().sender("e").send(message("m"))
    getting, other = (first, second) if first.received else (second, first)
    # what one gives back is offered to another
    getting.settle(Released())
    assert texts(other) == ["m"]
    other.settle()
    assert sending.outcome == Accepted()


def test_a_multicast_next_hop_gives_each_of_its_receivers_one() -> None:
    router, _ = exchange_of(
        ("a", "one"), ("a", "news"), rules=[AddressRule(True, "news", "multicast")]
    )
    got = receivers(router, "one", "news", "news")
    sending = router.client().sender("e").send(message("m", subject="a"))
    assert [texts(each) for each in got] == [["m"]] * 3
    for each in got:
        assert sending.states == []
        each.settle()
    assert sending.outcome == Accepted()


def test_credit_is_that_of_the_slowest_next_hop_that_is_there() -> None:
    router, _ = exchange_of(("a", "one"), ("b", "two"), alternate="rest")
    sender = router.client().sender("e")
    assert sender.credit == 0
    (one,) = receivers(router, "one", credit=10)
    assert sender.credit == 10
    two = router.client().receiver("two", credit=0)
    sender.send(message("m", subject="a"))
    sender.send(message("m", subject="b"))
    two.grant(3)
    assert len(two.received) == 1
    one.detach()
    two.detach()
    assert sender.drain


def test_what_the_next_hops_can_take_is_shared_with_their_own_senders() -> None:
    router, _ = exchange_of(("a", "one"))
    direct = router.client().sender("one")
    through = router.client().sender("e")
    receivers(router, "one", credit=10)
    assert (direct.credit, through.credit) == (5, 5)


def test_a_copy_waits_for_the_first_with_room() -> None:
    router, _ = exchange_of(("#", "one"), ("#", "two"))
    one = router.client(window=1).receiver("one", 100)
    (two,) = receivers(router, "two", credit=100)
    sender = router.client().sender("e")
    sent = [sender.send(message(str(number))) for number in range(3)]
    assert (texts(one), texts(two)) == (["0"], ["0", "1", "2"])
    two.settle()
    assert sent[2].states == []
    (other,) = receivers(router, "one", credit=5)
    assert texts(other) == ["1", "2"]
    other.settle()
    assert sent[2].outcome == Accepted()
    one.detach()
    # one had accepted it
    assert isinstance(sent[0].outcome, Accepted)


def test_a_copy_that_waits_is_released_with_the_last_receiver() -> None:
    router, _ = exchange_of(("#", "one"), ("#", "two"))
    one = router.client(window=1).receiver("one", 100)
    (two,) = receivers(router, "two", credit=100)
    sender = router.client().sender("e")
    sent = [sender.send(message(str(number))) for number in range(2)]
    one.detach()
    two.settle(Rejected())
    assert sent[1].outcome == Rejected()
    assert router.forwarder.backlog.held_bytes == 0


def test_a_large_message_streams_to_all() -> None:
    router, _ = exchange_of(("#", "one"), ("#", "two"), ("#", "three"))
    one, two = receivers(router, "one", "two")
    three = router.client(window=1).receiver("three", 100)
    sender = router.client().sender("e")
    sender.send(message("first"))
    octets = message("x" * 1000)
    sending = sender.send(octets[:100], more=True)
    assert [len(each.received[1].payload) for each in (one, two)] == [100, 100]
    sender.go_on(octets[100:500], more=True)
    sender.go_on(octets[500:])
    assert texts(one) == texts(two) == ["first", "x" * 1000]
    for each in (one, two):
        each.settle()
    three.client.open_window(100)
    assert texts(three) == ["first", "x" * 1000]
    three.settle()
    assert sending.outcome == Accepted()


def test_an_aborted_message_is_aborted_towards_all() -> None:
    router, _ = exchange_of(("#", "one"), ("#", "two"))
    got = receivers(router, "one", "two")
    sender = router.client().sender("e")
    sender.send(message("x" * 1000)[:100], more=True)
    sender.abort()
    assert [each.received[0].aborted for each in got] == [True, True]


@pytest.mark.parametrize("grows", [False, True])
def test_one_who_takes_only_less_is_left_out(grows: bool) -> None:
    router, _ = exchange_of(("#", "one"), ("#", "two"))
    narrow = router.client(window=1).receiver("one", 100, max_message_size=200)
    (wide,) = receivers(router, "two", credit=100)
    sender = router.client().sender("e")
    sender.send(message("first"))
    octets = message("x" * 1000)
    if grows:
        sending = sender.send(octets[:100], more=True)
        sender.go_on(octets[100:])
    else:
        sending = sender.send(octets)
    wide.settle()
    assert sending.outcome == Accepted()
    narrow.client.open_window(10)
    assert texts(narrow) == ["first"]
    assert router.forwarder.backlog.held_bytes == 0


def test_settled_messages_go_out_settled() -> None:
    router, _ = exchange_of(("#", "one"), ("#", "two"))
    got = receivers(router, "one", "two")
    router.client().sender("e").send(message("m"), settled=True)
    assert [each.received[0].settled for each in got] == [True, True]


def test_anonymous_senders_reach_it() -> None:
    router, _ = exchange_of(("a", "one"), ("a", "two"))
    got = receivers(router, "one", "two")
    sending = router.client().sender(None).send(message("m", "e", subject="a"))
    assert [texts(each) for each in got] == [["m"], ["m"]]
    for each in got:
        each.settle()
    assert sending.outcome == Accepted()


def test_the_annotations_tell_the_next_hop_and_its_phase() -> None:
    router, _ = exchange_of(("a", "one", 1), ("a", "two"))
    broker = router.client(shows_annotations=True)
    one = out_of(broker, "qd.waypoint.2", "one")
    two = router.client(shows_annotations=True).receiver("two", credit=5)
    router.client().sender("e").send(message("m", subject="a"))
    shown = [decode_message(each.take()).message_annotations or {} for each in (one, two)]
    assert [each["x-opt-qd.to"] for each in shown] == ["one", "two"]
    assert [each.get("x-opt-qd.phase") for each in shown] == [1, None]


def test_phases_of_the_exchange_and_its_hops() -> None:
    router, exchange = exchange_of(("a", "one", 3), phase=1, alternate="rest", alternate_phase=2)
    one = out_of(router.client(), "qd.waypoint.4", "one")
    rest = out_of(router.client(), "qd.waypoint.3", "rest")
    sender = into(router.client(), "qd.waypoint.1", "e")
    sender.send(message("m", subject="a"))
    sender.send(message("n", subject="b"))
    assert (texts(one), texts(rest)) == (["m"], ["n"])
    assert router.client().sender("e").credit == 0
    assert counted(exchange) == (2, 2, 0, 1)


def test_a_next_hop_s_fallback_is_used() -> None:
    router, _ = exchange_of(
        ("a", "one"), ("a", "two"), rules=[AddressRule(True, "one", "balanced", fallback=True)]
    )
    rest = out_of(router.client(), "qd.fallback", "one")
    (two,) = receivers(router, "two")
    sender = router.client().sender("e")
    assert sender.credit == 10
    sender.send(message("m", subject="a"))
    assert (texts(rest), texts(two)) == (["m"], ["m"])
    (one,) = receivers(router, "one")
    sender.send(message("n", subject="a"))
    assert (texts(one), texts(rest)) == (["n"], ["m"])


# Exchanges of exchanges.


def chain(router: Router, *hops: tuple[str, str]) -> None:
    """Exchanges whose names are their addresses; each sends everything to another address."""
    router.forwarder.exchanges.configure(
        [ExchangeRule(name, name) for name in dict.fromkeys(name for name, _ in hops)],
        [BindingRule(f"{name}-{to}", name, None, to) for name, to in hops],
    )
    router.finish_turn()


def test_an_exchange_may_send_to_another() -> None:
    router = Router()
    chain(router, ("a", "b"), ("a", "x"), ("b", "x"), ("b", "y"))
    x, y = receivers(router, "x", "y")
    sender = router.client().sender("a")
    assert sender.credit == 10
    sending = sender.send(message("m"))
    # x once, though two ways lead there
    assert (texts(x), texts(y)) == (["m"], ["m"])
    x.settle()
    y.settle()
    assert sending.outcome == Accepted()


def test_a_loop_ends_where_it_closes() -> None:
    router = Router()
    chain(router, ("a", "b"), ("b", "c"), ("c", "a"), ("c", "c"), ("c", "x"))
    (x,) = receivers(router, "x")
    sender = router.client().sender("a")
    assert sender.credit == 10
    sender.send(message("m"))
    assert texts(x) == ["m"]
    x.detach()
    assert sender.send(message("n")).outcome == Released()


# Changes.


def test_what_stays_goes_on_counting_and_what_goes_is_forgotten() -> None:
    router, exchange = exchange_of(("a", "one"), ("a", "two"), alternate="rest")
    got = receivers(router, "one", "two")
    sender = router.client().sender("e")
    sender.send(message("m", subject="a"))
    configure(router, ("a", "one"), ("c", "three"))
    assert router.forwarder.exchanges.by_name["e"] is exchange
    assert [each.matched for each in exchange.bindings] == [1, 0]
    assert {each.key for each in router.table.addresses()} == {"e", "one", "two", "three"}
    sender.send(message("n", subject="a"))
    assert (texts(got[0]), texts(got[1])) == (["m", "n"], ["m"])
    assert counted(exchange) == (2, 2, 0, 0)
    for each in got:
        each.settle()
    router.forwarder.exchanges.configure([], [])
    router.finish_turn()
    assert sender.drain
    assert {each.key for each in router.table.addresses()} == {"e", "one", "two"}
    assert all(each.related_addresses is None for each in router.table.addresses())
    got[0].detach()
    got[1].detach()
    sender.detach()
    assert list(router.table.addresses()) == []


def test_an_exchange_that_moves_takes_its_bindings_along() -> None:
    router, _ = exchange_of(("a", "one"))
    (one,) = receivers(router, "one")
    configure(router, ("a", "one"), address="f")
    assert router.client().sender("e").credit == 0
    router.client().sender("f").send(message("m", subject="a"))
    assert texts(one) == ["m"]


def test_an_address_that_becomes_available() -> None:
    closed = AddressRule(True, "one", "unavailable")
    router, exchange = exchange_of(("a", "one"), rules=[closed])
    assert [each.hop for each in exchange.bindings] == [None]
    RuleUpdater(router.forwarder).change_rules([closed], [], "balanced")
    router.forwarder.exchanges.resolve()
    (one,) = receivers(router, "one")
    router.client().sender("e").send(message("m", subject="a"))
    assert texts(one) == ["m"]


def test_an_exchange_at_an_unavailable_address_holds_none() -> None:
    router, exchange = exchange_of(("a", "one"), rules=[AddressRule(True, "e", "unavailable")])
    assert exchange.address is None
    assert list(router.table.addresses()) == []
    configure(router)


_SUBJECT = st.sampled_from(["a", "b", "a.b", None])
_STEP = st.one_of(
    st.tuples(st.just("send"), _SUBJECT),
    st.tuples(st.just("attach"), st.sampled_from(["one", "two", "news", "e", "rest"])),
    st.tuples(st.sampled_from(["detach", "settle", "release", "open"]), st.integers(0, 5)),
)


@examples(150)
@given(st.lists(_STEP, max_size=40))
def test_nothing_is_lost_or_doubled_whoever_comes_and_goes(steps: list[tuple[str, Any]]) -> None:
    router, exchange = exchange_of(
        ("a.#", "one"),
        ("b", "two"),
        ("#", "news"),
        ("a", "two"),
        alternate="rest",
        rules=[AddressRule(True, "news", "multicast")],
    )
    sender = router.client().sender("e")
    got: list[ReceivingLink] = []
    sent: list[Sending] = []
    for what, value in steps:
        if what == "send":
            if sender.can_send():
                sent.append(sender.send(message(str(len(sent)), subject=value)))
        elif what == "attach":
            got.append(router.client(window=2).receiver(value, credit=50))
        elif value < len(got) and got[value].attached:
            receiver = got[value]
            if what == "detach":
                receiver.settle()
                receiver.detach()
            elif what == "open":
                receiver.client.open_window()
            else:
                receiver.settle(Released() if what == "release" else Accepted())
    for each in got:
        if each.attached:
            each.client.open_window(1000)
            each.grant(1000)
            each.settle()
            each.detach()
    for each in got:
        assert len(texts(each)) == len(set(texts(each)))
    for number, sending in enumerate(sent):
        assert sending.is_over
        if isinstance(sending.outcome, Accepted):
            assert any(str(number) in texts(each) for each in got)
    assert exchange.received == len(sent) == exchange.forwarded + exchange.dropped
    assert router.forwarder.backlog.held_bytes == 0
    assert text_of(message("m")) == "m"
