"""Requirements of the specification for one connection that no other test here covers."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.constants import SaslCode
from router.amqp.framing import AMQP_HEADER, SASL_HEADER
from router.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
    Error,
    Flow,
    Open,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    Source,
    Target,
    Transfer,
)
from router.amqp.types import Symbol
from router.engine import attaching, beginning
from router.engine.delivery import Delivery

from support.transcripts import (
    NOTHING,
    OVER,
    On,
    Talk,
    attach_receiver,
    attach_sender,
    begin,
    begun,
    like,
    linked,
    message,
    opened,
)

TOP = 2**32 - 1


def client(**settings: Any) -> Talk:
    talk = Talk(**{"is_client": True, "sasl_mechanisms": (), **settings})
    talk.connection.start()
    return talk


@pytest.mark.spec("2.4.3-7", "2.4.1-2")
def test_a_close_that_is_pipelined_goes_on_channel_0() -> None:
    talk = client()
    talk.connection.close()
    talk << AMQP_HEADER << On(0, like(Open)) << On(0, Close()) << NOTHING


@pytest.mark.spec("2.4.5-8", "2.4.5-9")
def test_no_heartbeat_comes_before_both_opens() -> None:
    for talk in (client(), Talk(), Talk() >> AMQP_HEADER):
        talk.skip()
        for _ in range(9):
            talk.turn.now += 1
            talk.connection.tick()
        talk << NOTHING


@pytest.mark.spec("2.5.6-1", "2.8.10-1")
def test_transfer_ids_wrap() -> None:
    talk = linked()
    session: Any = talk.connection.local_sessions[0]
    session.next_outgoing_id = TOP
    granted: dict[str, Any] = {
        "outgoing_window": 9,
        "handle": 1,
        "delivery_count": 0,
        "link_credit": 3,
    }
    talk >> Flow(TOP - 1, 0, next_incoming_id=TOP, **granted) << NOTHING
    talk >> Flow(3, 0, next_incoming_id=TOP, **granted) << NOTHING
    link = talk.recorder.links["receiver-1"]
    for left in (2, 1, 0):
        delivery = Delivery()
        session.begin_outgoing(link, delivery)
        session.send(delivery, memoryview(b"x"), 0, 1, False)
        assert session.remote_incoming_window == left
        talk << Transfer
    talk >> Flow(3, 0, 9, next_incoming_id=0, echo=True)
    talk << like(Flow, next_outgoing_id=2) << NOTHING
    # two of the three have not arrived yet
    assert session.remote_incoming_window == 1


@pytest.mark.spec("2.6.13-2")
def test_what_only_a_receiver_remembers_is_not_resumed() -> None:
    talk = begun() >> attach_receiver(unsettled={b"t": Accepted(), b"u": None})
    talk << like(Attach, unsettled=None, incomplete_unsettled=False)
    talk >> Flow(9, 0, 9, next_incoming_id=0, handle=1, delivery_count=0, link_credit=9) << NOTHING


@pytest.mark.spec("2.7.1-3")
def test_a_client_names_one_host_everywhere() -> None:
    talk = client(sasl_mechanisms=("ANONYMOUS",), hostname="there") << SASL_HEADER
    talk >> SASL_HEADER >> SaslMechanisms((Symbol("ANONYMOUS"),))
    talk << like(SaslInit, hostname="there") >> SaslOutcome(SaslCode.OK)
    talk << AMQP_HEADER << like(Open, hostname="there")


@pytest.mark.spec("2.7.1-12", "2.7.1-13", "2.8.12-1")
@pytest.mark.parametrize("locales", [("en-US",), ("fr", "de-CH"), ()])
def test_any_locales_are_answered_in_english(locales: tuple[str, ...]) -> None:
    talk = Talk() >> AMQP_HEADER >> Open("c", outgoing_locales=locales, incoming_locales=locales)
    talk << AMQP_HEADER << like(Open, outgoing_locales=(), incoming_locales=()) << NOTHING
    assert talk.connection.is_open()
    told = Error(Symbol("amqp:not-allowed"), "no session is mapped to channel 0")
    talk >> Detach(0) << Close(told) << OVER


@pytest.mark.spec("2.7.4-2")
def test_no_flow_is_sent_before_the_peer_s_begin() -> None:
    talk = opened()
    session = beginning.begin(talk.connection)
    talk << Begin
    session.schedule_flow()
    talk << NOTHING


@pytest.mark.spec("2.7.4-7")
def test_no_flow_is_sent_for_a_link_before_the_sender_s_attach() -> None:
    talk = begun()
    session: Any = talk.connection.local_sessions[0]
    frame = Attach("ours", 0, True, source=Source("q"), target=Target())
    link: Any = attaching.attach(session, frame)
    session.grant(link, 5, False)
    talk << Attach << NOTHING


@pytest.mark.parametrize("is_client", [False, True])
@pytest.mark.spec("2.7.1-15", "2.7.2-5", "2.7.3-16")
def test_what_a_peer_offers_changes_nothing_of_what_it_is_told(is_client: bool) -> None:
    said = []
    names = ("ANONYMOUS-RELAY", "DELAYED_DELIVERY", "SHARED-SUBS", "queue", "x")
    for offered in ((), tuple(Symbol(name) for name in names)):
        talk = Talk(is_client=is_client, sasl_mechanisms=())
        if is_client:
            talk.connection.start()
        talk >> AMQP_HEADER >> Open("peer", offered_capabilities=offered)
        talk >> begin(offered_capabilities=offered)
        talk >> attach_sender(offered_capabilities=offered)
        talk >> attach_receiver(offered_capabilities=offered)
        session = talk.connection.local_sessions[0]
        session.grant(talk.recorder.links["sender-0"], 5, False)
        receiver = talk.recorder.links["receiver-1"]
        talk >> message(0)
        receiver.credit = 5
        delivery = Delivery()
        session.begin_outgoing(receiver, delivery)
        session.send(delivery, memoryview(b"x"), 0, 1, False)
        attaching.detach(receiver, True)
        beginning.end(session)
        talk.connection.close()
        talk << AMQP_HEADER
        said.append(talk.frames())
    assert len(said[0]) > 6
    assert said[0] == said[1]


@pytest.mark.spec("2.6.7-11")
def test_a_new_link_has_no_credit_and_does_not_drain() -> None:
    talk = linked()
    links = talk.recorder.links
    assert [(link.credit, bool(link.drain)) for link in links.values()] == [(0, False)] * 2
    assert not talk.connection.local_sessions[0].can_send(links["receiver-1"])
    talk >> message(0) << like(Detach, handle=0, closed=True) << NOTHING
