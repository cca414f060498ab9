"""SASL, as a server and as a client."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from router.amqp.constants import SASL_FRAME, SaslCode
from router.amqp.framing import AMQP_HEADER, SASL_HEADER
from router.amqp.performatives import (
    Begin,
    Open,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from router.amqp.types import Symbol
from router.engine import sasl
from router.engine.events import (
    ConnectionClosed,
    ConnectionOpened,
    SaslChallengeReceived,
    SaslInitDue,
    SaslInitReceived,
    SaslResponseReceived,
    SaslSuccessReceived,
)
from router.engine.failures import failure_of

from support.transcripts import NOTHING, OVER, On, Recorder, Talk, begin, like, wire

PLAIN = Symbol("PLAIN")
ANONYMOUS = Symbol("ANONYMOUS")


def server(**settings: Any) -> Talk:
    return Talk(**{"sasl_mechanisms": ("ANONYMOUS",), **settings})


def client(**settings: Any) -> Talk:
    talk = Talk(**{"is_client": True, **settings})
    talk.connection.start()
    return talk


def closings(talk: Talk) -> list[ConnectionClosed]:
    return talk.recorder.of(ConnectionClosed)


@pytest.mark.spec("5.3-1", "5.3.2-1", "5.3.3.5-1")
def test_a_client_is_let_in() -> None:
    talk = server() >> SASL_HEADER << SASL_HEADER
    talk << SaslMechanisms((ANONYMOUS,)) << NOTHING
    talk >> SaslInit(ANONYMOUS, initial_response=b"joe", hostname="vhost") << NOTHING
    assert talk.recorder.events == [SaslInitReceived("ANONYMOUS", b"joe", "vhost")]
    talk.connection.sasl_outcome(True, "joe")
    talk << SaslOutcome(SaslCode.OK) >> AMQP_HEADER << AMQP_HEADER >> Open("c") << Open << NOTHING
    assert talk.connection.user == "joe"


@pytest.mark.spec("5.3.3.1-3")
@pytest.mark.parametrize("order", [(PLAIN, ANONYMOUS), (ANONYMOUS, PLAIN)])
def test_mechanisms_are_offered_in_the_order_of_their_setting(order: tuple[Symbol, ...]) -> None:
    talk = server(sasl_mechanisms=tuple(map(str, order))) >> SASL_HEADER << SASL_HEADER
    talk << SaslMechanisms(order) << NOTHING


@pytest.mark.spec("5.3.3.5-2")
def test_a_client_is_not_let_in() -> None:
    talk = server() >> SASL_HEADER >> SaslInit(ANONYMOUS)
    talk.skip().connection.sasl_outcome(False, None)
    talk << SaslOutcome(SaslCode.AUTH) << OVER
    talk >> AMQP_HEADER << OVER
    assert len(closings(talk)) == 1


@pytest.mark.spec("2.4.2-1", "5.3.3.2-3")
def test_what_is_pipelined_behind_an_init_waits_for_the_outcome() -> None:
    everything = [SASL_HEADER, SaslInit(ANONYMOUS), AMQP_HEADER, Open("c"), begin()]
    for octets_a_read in (0, 1, 7):
        talk = server(octets_a_read=octets_a_read) >> everything << SASL_HEADER
        talk << SaslMechanisms << NOTHING
        talk.connection.sasl_outcome(True, None)
        talk << SaslOutcome(SaslCode.OK) << AMQP_HEADER << Open << Begin << NOTHING


def test_an_outcome_may_be_decided_at_once() -> None:
    """What was kept of the read before is not read a second time."""

    class Deciding(Recorder):
        def event_received(self, connection: Any, event: Any) -> None:
            super().event_received(connection, event)
            if isinstance(event, SaslInitReceived):
                connection.sasl_outcome(True, None)

    init = wire(SaslInit(ANONYMOUS))
    talk = Talk(Deciding())
    talk >> SASL_HEADER + init[:5] << SASL_HEADER << SaslMechanisms
    (
        talk
        >> [init[5:], AMQP_HEADER, Open("c")]
        << SaslOutcome(SaslCode.OK)
        << AMQP_HEADER
        << Open
        << NOTHING
    )


@pytest.mark.spec("5.3.3.2-1")
def test_a_mechanism_that_is_not_offered_is_refused() -> None:
    talk = server() >> SASL_HEADER << SASL_HEADER << SaslMechanisms
    talk >> SaslInit(PLAIN, initial_response=b"\0a\0b") << SaslOutcome(SaslCode.AUTH) << OVER


def test_clients_of_azure_are_anonymous_under_another_name() -> None:
    cbs = Symbol("MSSBCBS")
    talk = server(sasl_mechanisms=("ANONYMOUS", "MSSBCBS")) >> SASL_HEADER << SASL_HEADER
    talk << SaslMechanisms((ANONYMOUS, cbs)) >> SaslInit(cbs, hostname="h") << NOTHING
    assert talk.recorder.events == [SaslInitReceived("ANONYMOUS", b"", "h")]
    assert talk.connection.mechanism == "ANONYMOUS"
    # where it is not offered, there is none of this name
    talk = server() >> SASL_HEADER << SASL_HEADER << SaslMechanisms((ANONYMOUS,))
    talk >> SaslInit(cbs) << SaslOutcome(SaslCode.AUTH) << OVER


@pytest.mark.parametrize(
    "frame",
    [
        SaslMechanisms((ANONYMOUS,)),
        SaslOutcome(SaslCode.OK),
        SaslChallenge(b""),
        SaslResponse(b""),
        On(0, None, frame_type=1),
        On(0, Open("c"), frame_type=1),
        On(0, Open("c")),
        wire(SaslInit(ANONYMOUS))[:-1] + b"\xff",
        b"\xff\xff\xff\xff\x02\x01\x00\x00",
        b"\x00\x00\x02\x01\x02\x01\x00\x00",
        SaslInit(ANONYMOUS, initial_response=bytes(500)),
        On(0, SaslInit(ANONYMOUS), b"\x40", SASL_FRAME),
        On(0, SaslInit(ANONYMOUS), wire(SaslInit(ANONYMOUS))[8:], SASL_FRAME),
    ],
)
@pytest.mark.spec("2.3.1-4", "5.3.1-4", "5.3.1-5", "5.3.1-6", "5.3.1-7", "5.3.2-3")
def test_what_has_no_place_in_a_server_s_sasl_ends_it(frame: Any) -> None:
    talk = server() >> SASL_HEADER << SASL_HEADER << SaslMechanisms
    talk >> frame << OVER
    assert len(closings(talk)) == 1


@pytest.mark.spec("5.3.1-4")
def test_a_sasl_frame_may_be_as_long_as_may_be() -> None:
    init = SaslInit(ANONYMOUS, initial_response=b"", hostname="h" * 300)
    init = attrs.evolve(init, initial_response=bytes(512 - len(wire(init))))
    assert len(wire(init)) == 512
    talk = server() >> SASL_HEADER >> init
    assert talk.recorder.of(SaslInitReceived)


@pytest.mark.spec("5.3.1-4")
def test_a_client_s_init_is_measured() -> None:
    longest = 512 - len(
        wire(SaslInit(PLAIN, initial_response=b"\0joe\0" + bytes(300), hostname="h"))
    )
    for surplus in (0, 1):
        talk = client(
            sasl_mechanisms=("PLAIN",),
            sasl_username="joe",
            sasl_password="p" * (300 + longest + surplus),
            hostname="h",
        )
        talk << SASL_HEADER >> SASL_HEADER >> SaslMechanisms((PLAIN,))
        if surplus:
            talk << OVER
            (closed,) = closings(talk)
            assert closed.error is not None
            assert closed.error.condition == "amqp:frame-size-too-small"
            assert "password" in str(closed.error.description)
            assert "p" * 300 not in str(closed.error.description)
        else:
            talk << like(SaslInit, hostname="h") << NOTHING


@pytest.mark.parametrize(
    ("said", "is_none_offered"),
    [
        ([], False),
        ([SASL_HEADER], True),
        ([SASL_HEADER, SaslMechanisms((ANONYMOUS,))], False),
    ],
    ids=["nothing", "header", "mechanisms"],
)
def test_a_server_that_offers_no_mechanism_is_recognised(
    said: list[Any], is_none_offered: bool
) -> None:
    talk = client(sasl_mechanisms=("ANONYMOUS",))
    for each in said:
        talk >> each
    talk.connection.end_of_input()
    (closed,) = closings(talk)
    assert closed.error is not None
    assert closed.error.condition == "amqp:connection:forced"
    assert (
        "before it offered a SASL mechanism" in str(closed.error.description)
    ) is is_none_offered
    failure = failure_of(closed, False, False)
    assert failure.kind == "protocol"
    assert ("before it offered a SASL mechanism" in failure.reason) is is_none_offered


def test_sasl_cannot_be_had_twice() -> None:
    talk = server() >> SASL_HEADER >> SaslInit(ANONYMOUS)
    talk.connection.sasl_outcome(True, None)
    talk.skip() >> SASL_HEADER << AMQP_HEADER << OVER


def test_an_outcome_that_nobody_waits_for_is_not_sent() -> None:
    talk = server()
    talk.connection.sasl_outcome(True, None)
    talk << NOTHING


@pytest.mark.parametrize(
    ("settings", "offered", "init"),
    [
        ({}, [ANONYMOUS], SaslInit(ANONYMOUS, initial_response=b"", hostname="h")),
        ({}, [PLAIN, ANONYMOUS], SaslInit(ANONYMOUS, initial_response=b"", hostname="h")),
        (
            {"sasl_username": "joe", "sasl_password": "secret"},
            [ANONYMOUS, PLAIN],
            SaslInit(PLAIN, initial_response=b"\0joe\0secret", hostname="h"),
        ),
        (
            {"sasl_username": "joe"},
            [PLAIN],
            SaslInit(PLAIN, initial_response=b"\0joe\0", hostname="h"),
        ),
        (
            {"sasl_username": "joe", "sasl_password": "secret"},
            [ANONYMOUS],
            SaslInit(ANONYMOUS, initial_response=b"", hostname="h"),
        ),
    ],
)
@pytest.mark.spec("5.3-1", "5.3.2-2", "5.3.3.2-2", "5.3.3.5-1")
def test_a_client_chooses_a_mechanism(
    settings: dict[str, Any], offered: list[Symbol], init: SaslInit
) -> None:
    talk = client(sasl_mechanisms=("PLAIN", "ANONYMOUS"), hostname="h", **settings)
    talk << SASL_HEADER << NOTHING >> SASL_HEADER << NOTHING
    talk >> SaslMechanisms(tuple(offered)) << init << NOTHING
    talk >> SaslOutcome(SaslCode.OK) << AMQP_HEADER << Open << NOTHING
    talk >> AMQP_HEADER >> Open("s") << NOTHING
    assert talk.recorder.of(ConnectionOpened)


@pytest.mark.parametrize(
    ("offered", "is_encrypted", "chosen"),
    [
        (["PLAIN"], False, None),
        (["PLAIN"], True, "PLAIN"),
        (["PLAIN", "SCRAM-SHA-256"], False, "SCRAM-SHA-256"),
        (["PLAIN", "ANONYMOUS"], False, "ANONYMOUS"),
        (["GSSAPI"], False, None),
    ],
    ids=["alone", "TLS", "SCRAM", "ANONYMOUS", "unknown"],
)
def test_a_client_does_not_let_others_read_its_password(
    offered: list[str], is_encrypted: bool, chosen: str | None
) -> None:
    talk = client(
        sasl_mechanisms=("PLAIN", "SCRAM-SHA-256", "ANONYMOUS"),
        sasl_username="joe",
        sasl_password="secret",
        plain_needs_tls=True,
        plain_advice="do this",
    )
    talk.connection.is_encrypted = is_encrypted
    talk << SASL_HEADER >> SASL_HEADER >> SaslMechanisms(tuple(map(Symbol, offered)))
    assert talk.connection.mechanism == chosen
    if chosen is None:
        talk << OVER
        (closed,) = closings(talk)
        assert closed.error is not None
        assert closed.error.condition == "amqp:unauthorized-access"
        why = {
            "PLAIN": "PLAIN would send the password in clear text: do this",
            "GSSAPI": "this side can use PLAIN SCRAM-SHA-256 ANONYMOUS",
        }[offered[0]]
        assert closed.error.description == f"the server offers SASL {offered[0]}; {why}"


@pytest.mark.parametrize(
    "frame",
    [
        SaslMechanisms((Symbol("GSSAPI"),)),
        SaslOutcome(SaslCode.AUTH),
        SaslOutcome(SaslCode.SYS_TEMP),
        SaslInit(ANONYMOUS),
        SaslChallenge(b""),
        On(0, Open("s")),
    ],
)
@pytest.mark.spec("5.3.2-3")
def test_a_client_gives_up(frame: Any) -> None:
    talk = client(sasl_mechanisms=("ANONYMOUS",)) << SASL_HEADER >> SASL_HEADER
    talk >> frame << OVER
    assert len(closings(talk)) == 1


@pytest.mark.spec("5.3.1-3")
def test_a_sasl_frame_s_channel_and_extended_header_are_ignored() -> None:
    body = wire(SaslInit(Symbol("ANONYMOUS")))[8:]
    header = (len(body) + 16).to_bytes(4, "big") + bytes((4, SASL_FRAME, 0x12, 0x34))
    talk = Talk() >> SASL_HEADER >> header + b"\xff" * 8 + body
    assert talk.recorder.events == [SaslInitReceived("ANONYMOUS", b"", None)]


SCRAM = Symbol("SCRAM-SHA-256")


def test_a_server_asks_and_the_client_answers() -> None:
    talk = server(sasl_mechanisms=("SCRAM-SHA-256",)) >> SASL_HEADER >> SaslInit(SCRAM, b"first")
    talk.skip()
    assert talk.recorder.events == [SaslInitReceived("SCRAM-SHA-256", b"first", None)]
    sasl.challenge(talk.connection, b"challenge")
    talk << SaslChallenge(b"challenge") << NOTHING
    # what is pipelined behind the response waits for the outcome
    talk >> SaslResponse(b"final") >> AMQP_HEADER << NOTHING
    assert talk.recorder.events[1:] == [SaslResponseReceived(b"final")]
    sasl.outcome(talk.connection, True, "ada", b"proof")
    talk << SaslOutcome(SaslCode.OK, b"proof") << AMQP_HEADER << NOTHING
    assert (talk.connection.user, talk.connection.mechanism) == ("ada", "SCRAM-SHA-256")


def test_a_response_without_a_challenge_is_refused() -> None:
    talk = server(sasl_mechanisms=("SCRAM-SHA-256",)) >> SASL_HEADER >> SaslInit(SCRAM, b"first")
    sasl.challenge(talk.skip().connection, b"challenge")
    talk.skip() >> SaslResponse(b"final")
    sasl.challenge(talk.connection, b"more")
    talk.skip() >> SaslResponse(b"") >> SaslResponse(b"")
    sasl.outcome(talk.connection, False, None)
    talk << SaslOutcome(SaslCode.AUTH) << OVER


def scram_client() -> Talk:
    """Return a client that has chosen SCRAM, and has sent its first message."""
    talk = client(sasl_mechanisms=("SCRAM-SHA-256", "PLAIN"), sasl_username="ada", hostname="h")
    talk << SASL_HEADER >> SASL_HEADER >> SaslMechanisms((PLAIN, SCRAM)) << NOTHING
    assert talk.recorder.events == [SaslInitDue("SCRAM-SHA-256")]
    sasl.send_init(talk.connection, b"first")
    return talk << SaslInit(SCRAM, initial_response=b"first", hostname="h") << NOTHING


def test_a_client_answers_and_checks_the_proof() -> None:
    talk = scram_client() >> SaslChallenge(b"challenge") << NOTHING
    assert talk.recorder.events[1:] == [SaslChallengeReceived(b"challenge")]
    sasl.respond(talk.connection, b"final")
    talk << SaslResponse(b"final") >> SaslOutcome(SaslCode.OK, b"proof") << NOTHING
    assert talk.recorder.events[2:] == [SaslSuccessReceived(b"proof")]
    sasl.proceed(talk.connection)
    talk << AMQP_HEADER << Open << NOTHING


def test_a_client_may_be_refused_in_the_middle() -> None:
    talk = scram_client() >> SaslChallenge(b"challenge") << NOTHING
    sasl.respond(talk.connection, b"final")
    talk << SaslResponse(b"final") >> SaslOutcome(SaslCode.AUTH) << OVER
    assert len(closings(talk)) == 1


def test_steps_after_the_end_do_nothing() -> None:
    talk = scram_client() >> SaslOutcome(SaslCode.AUTH) << OVER
    sasl.send_init(talk.connection, b"x")
    sasl.respond(talk.connection, b"x")
    sasl.proceed(talk.connection)
    sasl.challenge(talk.connection, b"x")
    sasl.outcome(talk.connection, True, "ada")
    talk << OVER


def test_a_server_may_not_challenge_where_there_is_nothing_to_answer() -> None:
    talk = client(sasl_mechanisms=("ANONYMOUS",)) << SASL_HEADER >> SASL_HEADER
    talk >> SaslMechanisms((ANONYMOUS,)) << SaslInit >> SaslChallenge(b"challenge") << OVER
    [closed] = closings(talk)
    assert closed.error is not None
    assert "SaslChallenge received; ANONYMOUS has none" in str(closed.error.description)


@pytest.mark.parametrize("code", [SaslCode.SYS, SaslCode.SYS_PERM, SaslCode.SYS_TEMP])
def test_a_login_that_could_not_be_decided(code: SaslCode) -> None:
    talk = server() >> SASL_HEADER >> SaslInit(ANONYMOUS)
    sasl.fail(talk.skip().connection, code, "nobody answers")
    talk << SaslOutcome(code) << OVER
    [closed] = closings(talk)
    assert closed.error is not None
    assert closed.error.description == "nobody answers"
    # and only once
    sasl.fail(talk.connection, code, "nobody answers")
    talk << OVER


def test_groups_belong_to_the_connection() -> None:
    talk = server() >> SASL_HEADER >> SaslInit(ANONYMOUS)
    assert talk.connection.groups == frozenset()
    sasl.outcome(talk.skip().connection, True, "ada", None, frozenset({"staff"}))
    talk << SaslOutcome(SaslCode.OK) << NOTHING
    assert (talk.connection.user, talk.connection.groups) == ("ada", frozenset({"staff"}))


def test_tokens_may_be_longer() -> None:
    init = SaslInit(ANONYMOUS, initial_response=bytes(3000))
    talk = server(sasl_frame_bytes=4096) >> SASL_HEADER >> init
    assert talk.recorder.of(SaslInitReceived)
    longer = attrs.evolve(init, initial_response=bytes(4096))
    talk = server(sasl_frame_bytes=4096) >> SASL_HEADER << SASL_HEADER << SaslMechanisms
    talk >> longer << OVER


@pytest.mark.parametrize(
    "said",
    [
        [SaslOutcome(SaslCode.OK)],
        [SaslMechanisms((Symbol("SCRAM-SHA-256"),)), SaslResponse(b"x")],
        [SaslMechanisms((Symbol("SCRAM-SHA-256"),)), SaslMechanisms((PLAIN,))],
    ],
    ids=["outcome first", "response", "mechanisms twice"],
)
def test_a_server_that_skips_the_login_or_begins_anew_is_not_believed(said: list[Any]) -> None:
    names = ("SCRAM-SHA-256", "PLAIN")
    talk = client(sasl_mechanisms=names, sasl_username="ada", sasl_password="x")
    talk << SASL_HEADER >> SASL_HEADER
    for frame in said:
        if talk.connection.paused:
            sasl.send_init(talk.connection, b"n,,n=ada,r=abc")
            talk << like(SaslInit)
        talk >> frame
    talk << OVER
    (closed,) = closings(talk)
    assert closed.error is not None
    assert str(closed.error.condition) in ("amqp:illegal-state", "amqp:not-allowed")
    assert not talk.recorder.of(SaslResponseReceived)


def test_a_client_cannot_begin_its_login_anew() -> None:
    init = SaslInit(Symbol("SCRAM-SHA-256"), initial_response=b"a")
    talk = server(sasl_mechanisms=("SCRAM-SHA-256",)) >> SASL_HEADER << SASL_HEADER
    talk << like(SaslMechanisms) >> init
    sasl.challenge(talk.connection, b"b")
    talk << SaslChallenge(b"b") >> init << OVER
    assert len(talk.recorder.of(SaslInitReceived)) == 1
