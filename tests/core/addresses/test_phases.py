"""Messages on their way through waypoints: who meets whom at which phase of an address."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from router.amqp.message import (
    Header,
    decode_message,
)
from router.amqp.performatives import Accepted, Released, Source
from router.amqp.types import Symbol
from router.core.addresses.phases import granted_capabilities, is_fallback, ordinal_of
from router.core.addresses.rules import AddressRule
from router.core.deliveries.router_annotations import PHASE
from router.core.model.address import FALLBACK

from support.examples import examples
from support.in_memory import Router
from support.waypoints import into, message, out_of, text_of

WAYPOINT = AddressRule(True, "q", "balanced", ingress_phase=0, egress_phase=1)
CHAIN = AddressRule(True, "q", "balanced", ingress_phase=0, egress_phase=2)


@pytest.mark.parametrize(
    ("capabilities", "ordinal"),
    [
        ((), 0),
        (("qd.waypoint",), 1),
        (("qd.waypoint.1",), 1),
        (("qd.waypoint.9",), 9),
        (("queue", "qd.waypoint.3"), 3),
        (("qd.waypoint.0",), 0),
        (("qd.waypoint.10",), 0),
        (("qd.waypoint.x",), 0),
        (("qd.waypoints",), 0),
        (("qd.fallback",), 0),
    ],
)
def test_which_waypoint_a_capability_means(capabilities: tuple[str, ...], ordinal: int) -> None:
    source = Source(address="q", capabilities=tuple(map(Symbol, capabilities)))
    assert ordinal_of(source) == ordinal
    assert granted_capabilities(source) == tuple(
        each for each in capabilities if ordinal or each == "qd.fallback" if each != "queue"
    )
    assert is_fallback(source) == ("qd.fallback" in capabilities)


def test_a_message_passes_a_waypoint_between_its_sender_and_its_receiver() -> None:
    router = Router([WAYPOINT])
    receiver = router.client().receiver("q", credit=5)
    sender = router.client().sender("q")
    broker = router.client()
    assert sender.credit == 0
    taken, given_on = out_of(broker, "qd.waypoint"), into(broker, "qd.waypoint")
    assert sender.credit > 0
    sending = sender.send(message("m"))
    assert receiver.received == []
    octets = taken.take()
    assert text_of(octets) == "m"
    taken.settle()
    assert sending.outcome == Accepted()
    again = given_on.send(octets)
    assert text_of(receiver.take()) == "m"
    receiver.settle()
    assert again.outcome == Accepted()
    assert len(taken.received) == 1


def test_the_answer_says_that_a_waypoint_is_taken_for_one() -> None:
    client = Router([WAYPOINT]).client()
    taken, given_on = out_of(client, "qd.waypoint.2"), into(client, "qd.waypoint.2")
    assert taken.attach is not None
    assert taken.attach.source is not None
    assert taken.attach.source.capabilities == ("qd.waypoint.2",)
    assert given_on.attach is not None
    assert given_on.attach.target is not None
    assert given_on.attach.target.capabilities == ("qd.waypoint.2",)


def test_a_chain_of_waypoints() -> None:
    router = Router([CHAIN])
    receiver = router.client().receiver("q", credit=1)
    sender = router.client().sender("q")
    first, second = router.client(), router.client()
    taken = [out_of(first, "qd.waypoint.1"), out_of(second, "qd.waypoint.2")]
    given_on = [into(first, "qd.waypoint.1"), into(second, "qd.waypoint.2")]
    sender.send(message("m"))
    for from_queue, to_next in zip(taken, given_on, strict=True):
        octets = from_queue.take()
        from_queue.settle()
        to_next.send(octets)
    assert text_of(receiver.take()) == "m"
    assert [len(each.received) for each in taken] == [1, 1]


def test_credit_comes_from_the_receivers_of_the_phase_that_is_sent_to() -> None:
    router = Router([WAYPOINT])
    receiver = router.client().receiver("q", credit=100)
    sender = router.client().sender("q")
    assert sender.credit == 0
    broker = router.client()
    given_on = into(broker, "qd.waypoint")
    assert given_on.credit == 100
    taken = out_of(broker, "qd.waypoint", credit=7)
    assert sender.credit == 7
    taken.detach()
    assert sender.drain
    assert given_on.credit == 100
    receiver.detach()
    assert given_on.drain


def test_a_message_to_a_phase_that_nobody_receives_from_is_released() -> None:
    router = Router([WAYPOINT])
    router.client().receiver("q", credit=5)
    relay = router.client().sender(None)
    assert relay.send(message("m", "q")).outcome == Released()


def test_anonymous_senders_enter_where_others_do() -> None:
    router = Router([AddressRule(False, "q", "balanced", ingress_phase=2, egress_phase=3)])
    taken = out_of(router.client(), "qd.waypoint.3")
    at_zero = out_of(router.client(), "qd.waypoint.1")
    relay = router.client().sender(None)
    relay.send(message("m", "q"))
    assert text_of(taken.take()) == "m"
    assert at_zero.received == []
    # and other addresses are what they were
    other = router.client().receiver("other", credit=1)
    relay.send(message("n", "other"))
    assert text_of(other.take()) == "n"


def test_an_annotation_says_at_which_phase_a_message_is() -> None:
    router = Router([CHAIN])
    taken = out_of(router.client(shows_annotations=True), "qd.waypoint.2")
    direct = router.client(shows_annotations=True).receiver("q", credit=1)
    relay = router.client(honours_annotations=True).sender(None)
    relay.send(message("m", "q", annotations={Symbol(PHASE): 1}))
    shown = decode_message(taken.take()).message_annotations
    assert shown is not None
    assert shown[PHASE] == 1
    assert shown["x-opt-qd.to"] == "q"
    assert direct.received == []
    # one that is not believed goes by the rules, and so does one that makes no sense
    for honours, phase in ((False, 2), (True, 10), (True, "2"), (True, True), (True, -1)):
        relay = router.client(honours_annotations=honours).sender(None)
        assert (
            relay.send(message("m", "q", annotations={Symbol(PHASE): phase})).outcome == Released()
        )


def test_a_message_of_phase_0_is_shown_without_one() -> None:
    router = Router()
    receiver = router.client(shows_annotations=True).receiver("q", credit=1)
    router.client().sender("q").send(message("m"))
    assert PHASE not in (decode_message(receiver.take()).message_annotations or {})


def test_no_client_can_name_an_address_of_another_phase() -> None:
    router = Router([WAYPOINT])
    broker = out_of(router.client(), "qd.waypoint")
    for text in ("/phase 1/q", "phase 1/q", "M1q", "/M1q"):
        router.client().receiver(text, credit=5)
    sender = into(router.client(), "qd.waypoint")
    assert sender.credit == 0
    assert broker.received == []


def test_what_is_here_and_nowhere_else_has_no_waypoints() -> None:
    router = Router([AddressRule(False, "#", "balanced", ingress_phase=1, egress_phase=3)])
    asking = router.client()
    replies = asking.receiver(None, source=Source(dynamic=True), credit=1)
    assert replies.address is not None
    answering = router.client().sender(replies.address)
    answering.send(message("m"))
    assert text_of(replies.take()) == "m"
    marked = into(router.client(), "qd.waypoint.4", replies.address)
    replies.grant(1)
    marked.send(message("n"))
    assert text_of(replies.take()) == "n"
    relay = router.client().sender(None)
    replies.grant(1)
    relay.send(message("o", replies.address))
    assert text_of(replies.take()) == "o"


def test_dead_letters_enter_their_address_as_other_messages_do() -> None:
    router = Router(
        [
            AddressRule(False, "q", "balanced", dead_letter="dead"),
            AddressRule(False, "dead", "balanced", ingress_phase=1, egress_phase=1),
        ]
    )
    dead = router.client().receiver("dead", credit=1)
    router.client(window=1).receiver("q", 100)
    sender = router.client().sender("q")
    sender.send(message("first"))
    sender.send(
        message("late", header=Header(ttl=100)),
    )
    router.wait(0.2)
    assert text_of(dead.take()) == "late"


def test_one_that_resumes_is_still_at_its_phase() -> None:
    router = Router([WAYPOINT])
    broker = router.client(container="broker")
    out_of(broker, "qd.waypoint")
    keys = {each.key for each in router.table.addresses()}
    assert keys == {"q"}
    into(broker, "qd.waypoint")
    keys = {each.key for each in router.table.addresses()}
    assert keys == {"q", "/phase 1/q"}
    broker.close()
    assert list(router.table.addresses()) == []


def test_a_phase_is_treated_as_its_address_is() -> None:
    router = Router([AddressRule(True, "q", "multicast", ingress_phase=0, egress_phase=1)])
    receivers = [router.client().receiver("q", credit=1) for _ in range(3)]
    into(router.client(), "qd.waypoint").send(message("m"))
    assert [text_of(each.take()) for each in receivers] == ["m"] * 3


def test_one_that_takes_what_is_left_is_at_no_phase() -> None:
    router = Router()
    rest = out_of(router.client(), "qd.fallback")
    sender = router.client().sender("q")
    assert sender.credit == 0
    assert rest.received == []
    assert router.table.in_use("q", FALLBACK) is not None


@examples(50)
@given(
    st.integers(0, 9),
    st.integers(0, 9),
    st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=6),
)
def test_who_is_at_which_phase(
    ingress: int, egress: int, waypoints: list[tuple[int, bool]]
) -> None:
    router = Router(
        [AddressRule(True, "q", "balanced", ingress_phase=ingress, egress_phase=egress)]
    )
    expected: dict[int, list[int]] = {}
    expected.setdefault(ingress, [0, 0])[0] += 1
    expected.setdefault(egress, [0, 0])[1] += 1
    router.client().sender("q")
    router.client().receiver("q")
    for ordinal, sends in waypoints:
        client = router.client()
        if sends:
            into(client, f"qd.waypoint.{ordinal}")
            expected.setdefault(ordinal, [0, 0])[0] += 1
        else:
            out_of(client, f"qd.waypoint.{ordinal}")
            expected.setdefault(ordinal - 1, [0, 0])[1] += 1
    found = {
        each.phase: [len(each.producers), len(each.consumers)] for each in router.table.addresses()
    }
    assert found == expected
    for address in router.table.addresses():
        backed = bool(address.consumers) and any(each.link.credit for each in address.consumers)
        assert all((each.link.credit > 0) == backed for each in address.producers)
