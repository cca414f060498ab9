"""Headers, SASL, open, heartbeats and close, as a server and as a client."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from router.amqp.constants import Descriptor, SaslCode
from router.amqp.framing import AMQP_HEADER, SASL_HEADER, TLS_HEADER, encode_frame
from router.amqp.performatives import (
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    SaslOutcome,
)
from router.amqp.types import Symbol
from router.engine import opening
from router.engine.connection import Connection
from router.engine.events import ConnectionClosed, ConnectionOpened, OpenReceived
from router.engine.opening import change_settings, own_open
from router.errors import AmqpError

from support.transcripts import (
    NOTHING,
    OVER,
    On,
    Recorder,
    Talk,
    attach_sender,
    begin,
    begun,
    cuts,
    failed,
    like,
    linked,
    message,
    opened,
    server_settings,
    wire,
)

PLAIN = Symbol("PLAIN")
ANONYMOUS = Symbol("ANONYMOUS")
PROBLEM = AmqpError("amqp:internal-error", "a test's own")
HEARTBEAT = encode_frame(0)


def server(**settings: Any) -> Talk:
    return Talk(**{"sasl_mechanisms": ("ANONYMOUS",), **settings})


def client(**settings: Any) -> Talk:
    talk = Talk(**{"is_client": True, "sasl_mechanisms": (), **settings})
    talk.connection.start()
    return talk


def closings(talk: Talk) -> list[ConnectionClosed]:
    return talk.recorder.of(ConnectionClosed)


def wait(talk: Talk, seconds: float) -> Talk:
    talk.turn.now += seconds
    talk.connection.tick()
    return talk


# Headers (section 2.2).

STRANGE = {
    "AMQP 0-9-1": b"AMQP\x00\x00\x09\x01",
    "AMQP 1.1": b"AMQP\x00\x01\x01\x00",
    "AMQP 2.0": b"AMQP\x00\x02\x00\x00",
    "AMQP over TLS": TLS_HEADER,
    "an unknown protocol id": b"AMQP\x09\x01\x00\x00",
    "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "TLS": bytes.fromhex("160301 0200 010001fc 0303") + bytes(500),
    "SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
    "zeroes": bytes(64),
    "a frame": HEARTBEAT,
    "all bits": b"\xff" * 64,
}


@pytest.mark.parametrize("octets_a_read", [0, 1])
@pytest.mark.parametrize("strange", STRANGE.values(), ids=list(STRANGE))
@pytest.mark.spec("2.2-3", "2.2-9", "2.2-10", "2.2-11", "2.2-12")
def test_a_strange_header_is_answered_with_the_right_one(
    strange: bytes, octets_a_read: int
) -> None:
    talk = server(octets_a_read=octets_a_read)
    talk >> strange << AMQP_HEADER << OVER
    (closing,) = closings(talk)
    assert closing.error is not None
    assert str(closing.error.condition) == "amqp:connection:framing-error"
    talk >> strange << OVER


@pytest.mark.parametrize("strange", STRANGE.values(), ids=list(STRANGE))
@pytest.mark.spec("2.2-12")
def test_a_server_that_requires_sasl_says_so(strange: bytes) -> None:
    server(sasl_required=True) >> strange << SASL_HEADER << OVER


@pytest.mark.spec("2.2-12")
def test_a_server_that_requires_sasl_refuses_to_do_without() -> None:
    server(sasl_required=True) >> AMQP_HEADER << SASL_HEADER << OVER


@pytest.mark.spec("2.2-12")
def test_a_server_without_sasl_refuses_it() -> None:
    server(sasl_mechanisms=()) >> SASL_HEADER << AMQP_HEADER << OVER


@pytest.mark.parametrize("strange", [b"H", b"\x16", b"AMQX", b"AN"])
def test_what_can_be_no_header_is_not_waited_for(strange: bytes) -> None:
    server() >> strange << AMQP_HEADER << OVER


@pytest.mark.parametrize("length", range(8))
@pytest.mark.spec("2.2-6", "2.2-8")
def test_a_part_of_a_header_is_waited_for(length: int) -> None:
    talk = server() >> AMQP_HEADER[:length] << NOTHING
    talk >> AMQP_HEADER[length:] << AMQP_HEADER << NOTHING


@pytest.mark.spec("2.2-1", "2.2-3", "2.2-7")
def test_a_client_gives_up_on_a_strange_header() -> None:
    for strange in [*STRANGE.values(), SASL_HEADER]:
        talk = client() << AMQP_HEADER << Open
        talk >> strange << OVER
        assert len(closings(talk)) == 1


def test_a_client_that_wants_sasl_gives_up_without() -> None:
    client(sasl_mechanisms=("ANONYMOUS",)) << SASL_HEADER >> AMQP_HEADER << OVER


# Open (sections 2.4.1, 2.4.2, 2.7.1).


@pytest.mark.spec("0.2-1", "2.2-1", "2.2-2", "2.2-8", "2.4.1-1", "2.4.5-3", "2.7.1-1", "2.7.1-2")
def test_an_open_is_answered() -> None:
    talk = server(
        hostname="here",
        max_frame_size=4096,
        channel_max=7,
        idle_timeout_s=3,
        properties={"product": "p"},
        offered_capabilities=("O",),
        desired_capabilities=("D",),
    )
    talk >> AMQP_HEADER << AMQP_HEADER << NOTHING
    (
        talk
        >> Open("c", max_frame_size=1000, channel_max=2)
        << Open(
            "router",
            hostname="here",
            max_frame_size=4096,
            channel_max=7,
            # half of what is waited, so that a peer is never late by the time it takes
            idle_time_out=1500,
            offered_capabilities=(Symbol("O"),),
            desired_capabilities=(Symbol("D"),),
            properties={Symbol("product"): "p"},
        )
    )
    assert talk.recorder.of(ConnectionOpened)[0].remote_open.container_id == "c"
    assert talk.connection.is_open()


def test_a_peer_is_told_the_number_of_its_connection() -> None:
    talk = server(sasl_mechanisms=(), properties={"product": "p"})
    talk.connection.number = 2**40
    talk >> AMQP_HEADER >> Open("c") << AMQP_HEADER
    properties = {Symbol("product"): "p", Symbol("qd.conn-id"): 2**40}
    talk << like(Open, properties=properties) << NOTHING


LONG = {"text": "x" * 600}


@pytest.mark.spec("2.4.1-3")
def test_a_larger_open_of_a_peer_is_read_all_the_same() -> None:
    assert opened(remote=Open("c" * 2000)).connection.is_open()


@pytest.mark.spec("2.4.1-3")
def test_a_client_s_open_is_measured() -> None:
    shorter = server_settings(hostname="", properties={"text": "x" * 300})
    missing = 512 - len(wire(own_open(shorter)))
    for surplus in (0, 1):
        properties = {"text": "x" * (300 + missing + surplus)}
        talk = client(hostname="", properties=properties) << AMQP_HEADER
        if surplus:
            talk << OVER
            (closed,) = closings(talk)
            assert closed.error is not None
            assert closed.error.condition == "amqp:frame-size-too-small"
            assert "properties" in str(closed.error.description)
        else:
            assert len(wire(talk.connection.local_open)) == 512
            talk << like(Open, properties=properties) << NOTHING


@pytest.mark.spec("2.4.1-3", "2.4.1-4", "2.7.1-4")
def test_a_server_leaves_out_what_the_peer_s_frames_do_not_take() -> None:
    whole = len(wire(own_open(server_settings(properties=LONG))))
    for size, told in ((512, {}), (whole - 1, {}), (whole, LONG)):
        talk = server(sasl_mechanisms=(), properties=LONG)
        talk >> AMQP_HEADER >> Open("c", max_frame_size=size) << AMQP_HEADER
        talk << like(Open, container_id="router", properties=told) << NOTHING
        assert talk.connection.local_open.properties == told


@pytest.mark.spec("2.4.1-3")
def test_an_error_before_the_peer_s_open_is_told_behind_a_short_one() -> None:
    talk = server(sasl_mechanisms=(), properties=LONG) >> AMQP_HEADER >> begin() << AMQP_HEADER
    talk << like(Open, properties={}) << failed(Close, "amqp:illegal-state") << OVER
    talk = server(sasl_mechanisms=(), container_id="c" * 600) >> AMQP_HEADER >> begin()
    talk << AMQP_HEADER << OVER
    assert len(closings(talk)) == 1


@pytest.mark.parametrize("channel", [1, 0xFFFF])
@pytest.mark.spec("2.4.1-2")
def test_an_open_is_for_channel_0(channel: int) -> None:
    talk = server() >> AMQP_HEADER << AMQP_HEADER >> On(channel, Open("c"))
    assert talk << Open << failed(Close, "amqp:not-allowed") << OVER


def test_idle_time_out_can_be_switched_off() -> None:
    (
        server(idle_timeout_s=0)
        >> AMQP_HEADER
        >> Open("c")
        << AMQP_HEADER
        << like(Open, idle_time_out=None)
    )


PIPELINED = [AMQP_HEADER, Open("c"), begin(), attach_sender()]


@pytest.mark.spec("2.4.2-1")
def test_everything_may_come_in_one_read() -> None:
    talk = server() >> PIPELINED << AMQP_HEADER << Open << Begin
    assert talk.frames()
    assert talk.connection.is_open()


def test_everything_may_come_in_any_two_pieces() -> None:
    whole = server() >> PIPELINED << AMQP_HEADER
    expected = whole.frames()
    for one, other in cuts(wire(PIPELINED)):
        talk = server() >> one >> other << AMQP_HEADER
        assert talk.frames() == expected


def test_everything_may_come_octet_by_octet() -> None:
    expected = (server() >> PIPELINED << AMQP_HEADER).frames()
    assert (server(octets_a_read=1) >> PIPELINED << AMQP_HEADER).frames() == expected


@pytest.mark.parametrize("size", [0, 1, 511])
@pytest.mark.spec("2.8.19-2")
def test_a_frame_size_below_the_least_is_refused(size: int) -> None:
    talk = server() >> AMQP_HEADER >> Open("c", max_frame_size=size) << AMQP_HEADER
    talk << Open << failed(Close, "amqp:invalid-field") << OVER
    assert not talk.recorder.of(ConnectionOpened)
    assert len(closings(talk)) == 1


@pytest.mark.spec("2.8.19-2")
def test_the_least_frame_size_is_taken() -> None:
    assert opened(remote=Open("c", max_frame_size=512)).connection.is_open()


FRAMES = [
    begin(),
    attach_sender(),
    Detach(0),
    End(),
    Flow(incoming_window=1, next_outgoing_id=0, outgoing_window=1),
    Disposition(True, 0),
    message(0),
    Close(),
]


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.spec("2.4.1-1", "2.7.1-1", "2.4.7-1")
def test_nothing_may_come_before_open(frame: Any) -> None:
    talk = server() >> AMQP_HEADER << AMQP_HEADER
    talk >> frame
    talk << Open << like(Close) << OVER
    (closed,) = closings(talk)
    assert closed.error is not None
    # flows, transfers and dispositions are read by hand, and name a session that there is not
    is_read_by_hand = isinstance(frame, Flow | Disposition | On)
    expected = "amqp:not-allowed" if is_read_by_hand else "amqp:illegal-state"
    assert closed.error.condition == expected


@pytest.mark.spec("2.4.7-1")
def test_open_may_come_once() -> None:
    opened() >> Open("again") << failed(Close, "amqp:illegal-state") << OVER


@pytest.mark.spec("2.3.2-1")
def test_a_composite_that_is_no_performative_closes() -> None:
    for strange in (SaslOutcome(SaslCode.OK), Error(Symbol("x")), Open):
        if isinstance(strange, type):
            body = b"\x00\x53\x70\x45"
            frame = (len(body) + 8).to_bytes(4, "big") + b"\x02\x00\x00\x00" + body
        elif isinstance(strange, SaslOutcome):
            frame = encode_frame(0, strange)
        else:
            body = bytes((0, 0x53, Descriptor.ERROR, 0xC0, 4, 1, 0xA3, 1, 0x78))
            frame = (len(body) + 8).to_bytes(4, "big") + b"\x02\x00\x00\x00" + body
        talk = opened() >> frame << like(Close) << OVER
        assert closings(talk)[0].error is not None


# Close (sections 2.4.3, 2.4.4).


@pytest.mark.spec("2.4.3-1", "2.4.3-8", "2.4.6-2")
def test_a_close_is_answered() -> None:
    error = Error(Symbol("amqp:connection:forced"), description="bye")
    talk = opened() >> Close(error) << Close() << OVER
    assert closings(talk) == [ConnectionClosed(error, True)]
    talk >> begin() << OVER


@pytest.mark.spec("2.4.3-5", "2.4.3-6")
def test_a_close_may_come_on_any_channel() -> None:
    opened() >> On(5, Close()) << On(0, Close()) << OVER


@pytest.mark.spec("2.4.3-1", "2.4.3-3", "2.7.9-1")
def test_our_close_waits_for_its_answer() -> None:
    talk = opened()
    talk.connection.close()
    talk << Close() << NOTHING
    assert closings(talk) == [ConnectionClosed(None, False)]
    talk >> Close() << OVER
    assert len(closings(talk)) == 1


def test_closing_twice_says_it_once() -> None:
    talk = opened()
    talk.connection.close()
    talk.connection.close(PROBLEM)
    talk << Close() << NOTHING >> Close() << OVER


@pytest.mark.spec("2.4.3-2", "2.4.6-1", "2.7.9-2", "2.7.9-3")
def test_a_close_with_an_error_is_the_last_word() -> None:
    talk = opened()
    talk.connection.close(PROBLEM)
    talk << Close(Error(Symbol("amqp:internal-error"), description="a test's own")) << OVER
    talk >> begin() >> b"\xff" * 100 << OVER
    assert len(closings(talk)) == 1


@pytest.mark.parametrize("frame", [*FRAMES[:-1], HEARTBEAT, Open("x"), On(9, begin())])
@pytest.mark.spec("2.4.3-2", "2.7.9-2")
def test_what_was_under_way_when_we_closed_is_ignored(frame: Any) -> None:
    talk = linked()
    talk.connection.close()
    talk << Close() >> frame << NOTHING >> Close() << OVER
    assert len(closings(talk)) == 1


@pytest.mark.spec("2.4.4-1")
def test_both_may_close_at_once() -> None:
    talk = opened()
    talk.connection.close()
    talk >> Close(Error(Symbol("x"))) << Close() << OVER
    assert closings(talk) == [ConnectionClosed(None, False)]


def test_a_client_may_close_before_it_hears_anything() -> None:
    talk = client()
    talk.connection.close()
    talk << AMQP_HEADER << Open << Close() << NOTHING
    talk >> AMQP_HEADER << NOTHING >> Open("s") << NOTHING >> Close() << OVER
    assert len(closings(talk)) == 1


def test_a_client_that_closed_before_the_open_says_nothing_more() -> None:
    for frame in (begin(), attach_sender(), message(0)):
        talk = client()
        talk.connection.close()
        talk.skip() >> AMQP_HEADER >> frame << OVER
        assert len(closings(talk)) == 1


def test_closing_what_was_never_open_only_ends_it() -> None:
    for heard in ([], [AMQP_HEADER], [SASL_HEADER]):
        talk = (server() >> heard).skip()
        talk.connection.close()
        talk << OVER
        assert closings(talk) == [ConnectionClosed(None, False)]


@pytest.mark.spec("2.4.1-1")
def test_an_error_before_the_opens_is_told_with_an_open() -> None:
    """A close needs an open before it (section 2.4.3)."""
    talk = (server() >> AMQP_HEADER).skip()
    talk.connection.close(PROBLEM)
    talk << Open << failed(Close, "amqp:internal-error") << OVER


def test_an_error_after_our_open_is_told() -> None:
    talk = client() >> AMQP_HEADER
    talk.skip().connection.close(PROBLEM)
    talk << failed(Close, "amqp:internal-error") << OVER


def test_a_lost_socket_ends_everything() -> None:
    for talk in (server(), opened(), begun(), linked(), client()):
        talk.connection.end_of_input()
        talk.connection.end_of_input()
        assert len(closings(talk)) == 1
        assert talk.connection.finished


def test_a_socket_lost_after_our_close_is_no_error() -> None:
    for talk in (opened(), client()):
        talk.connection.close()
        talk.connection.end_of_input()
        assert closings(talk) == [ConnectionClosed(None, False)]


# Time (section 2.4.5).


@pytest.mark.spec("2.4.5-1", "2.4.5-2")
def test_a_silent_peer_is_given_up() -> None:
    talk = opened(idle_timeout_s=10)
    wait(talk, 10) << NOTHING
    wait(talk, 0.1) << failed(Close, "amqp:resource-limit-exceeded") << OVER
    wait(talk, 100) << OVER
    assert len(closings(talk)) == 1


@pytest.mark.spec("2.4.5-1", "2.4.5-6")
def test_any_whole_frame_shows_a_peer_alive() -> None:
    talk = opened(idle_timeout_s=10)
    for sign in (HEARTBEAT, On(7, None), begin(), HEARTBEAT[:3]):
        wait(talk, 9)
        talk >> sign
    wait(talk, 0.9)
    talk >> HEARTBEAT[3:]
    wait(talk, 9)
    assert talk.connection.is_open()


@pytest.mark.parametrize("heard", [0, 1])
@pytest.mark.spec("2.4.5-1")
def test_a_frame_that_is_dripped_does_not_show_a_peer_alive(heard: int) -> None:
    talk = opened(idle_timeout_s=10)
    for _ in range(heard):
        talk >> HEARTBEAT
    for octet in wire(begin())[:9]:
        wait(talk, 1) << NOTHING
        talk >> bytes((octet,))
    # one second for each kibioctet of the unfinished frame
    wait(talk, 1 + 9 / 1024) << NOTHING
    wait(talk, 0.1) << failed(Close, "amqp:resource-limit-exceeded") << OVER


def test_a_large_frame_may_take_long_on_a_slow_line() -> None:
    talk = opened(idle_timeout_s=10) >> begin() << Begin >> attach_sender()
    talk.connection.local_sessions[0].grant(talk.recorder.links["sender-0"], 1, False)
    talk.skip()
    octets = wire(message(0, b"x" * 60_000))
    for at in range(0, len(octets), 1100):
        wait(talk, 1) << NOTHING
        talk >> octets[at : at + 1100]
    assert talk.recorder.told("transfer") == [(0, True, False)]
    wait(talk, 10) << NOTHING
    wait(talk, 0.1) << failed(Close, "amqp:resource-limit-exceeded") << OVER


def test_a_large_frame_that_has_stopped_is_not_waited_for() -> None:
    talk = opened(idle_timeout_s=10)
    talk >> wire(message(0, b"x" * 60_000))[:2048]
    wait(talk, 12) << NOTHING
    wait(talk, 0.1) << failed(Close, "amqp:resource-limit-exceeded") << OVER


@pytest.mark.parametrize("octets", [AMQP_HEADER, AMQP_HEADER + wire(Open("c"))[:-1]])
def test_an_open_that_is_dripped_is_not_waited_for(octets: bytes) -> None:
    talk = server(handshake_timeout_s=5, sasl_mechanisms=())
    for octet in octets:
        talk >> bytes((octet,))
        wait(talk, 5 / len(octets))
    talk.skip()
    wait(talk, 0.1) << OVER


def test_silence_may_be_allowed() -> None:
    wait(opened(idle_timeout_s=0), 10**6) << NOTHING


@pytest.mark.spec("2.4.5-7")
def test_a_peer_that_asks_for_heartbeats_gets_them() -> None:
    talk = opened(idle_timeout_s=0, remote=Open("c", idle_time_out=8000))
    for _ in range(3):
        wait(talk, 3.9) << NOTHING
        wait(talk, 0.2) << On(0, None) << NOTHING


def test_whatever_is_sent_is_a_heartbeat() -> None:
    talk = opened(idle_timeout_s=0, remote=Open("c", idle_time_out=8000))
    wait(talk, 3.9)
    talk >> begin() << Begin
    wait(talk, 3.9) << NOTHING
    wait(talk, 0.2) << On(0, None)


@pytest.mark.parametrize("asked", [None, 0])
@pytest.mark.spec("2.7.1-9")
def test_who_does_not_ask_gets_no_heartbeats(asked: int | None) -> None:
    talk = opened(idle_timeout_s=0, remote=Open("c", idle_time_out=asked))
    wait(talk, 10**6) << NOTHING


@pytest.mark.parametrize("asked", [1, 249])
@pytest.mark.spec("2.4.5-4", "2.7.1-10")
def test_who_asks_for_more_heartbeats_than_can_be_kept_is_told_so(asked: int) -> None:
    for talk in (server(sasl_mechanisms=()), client()):
        talk >> AMQP_HEADER >> Open("c", idle_time_out=asked) << AMQP_HEADER << Open
        talk << failed(Close, "amqp:not-implemented") << OVER
        assert not talk.recorder.of(ConnectionOpened)


def test_the_least_time_out_is_taken() -> None:
    talk = opened(remote=Open("c", idle_time_out=250))
    assert talk.recorder.of(ConnectionOpened)
    wait(talk, 0.125) << On(0, None) << NOTHING


@pytest.mark.spec("2.4.5-10")
def test_no_heartbeat_follows_a_close() -> None:
    talk = opened(idle_timeout_s=0, remote=Open("c", idle_time_out=2000))
    talk.connection.close()
    talk << Close()
    wait(talk, 5) << NOTHING


@pytest.mark.spec("2.4.3-4")
def test_a_close_that_is_not_answered_is_not_waited_for() -> None:
    for talk in (opened(idle_timeout_s=0, handshake_timeout_s=10), client()):
        talk.connection.close()
        talk.skip()
        wait(talk, 9.9) << NOTHING
        wait(talk, 0.2) << OVER
        assert closings(talk) == [ConnectionClosed(None, False)]


@pytest.mark.parametrize("heard", [[], [AMQP_HEADER[:3]], [AMQP_HEADER], [SASL_HEADER]])
def test_a_peer_that_does_not_open_is_given_up(heard: list[bytes]) -> None:
    talk = (server(handshake_timeout_s=5) >> heard).skip()
    wait(talk, 5) << NOTHING
    wait(talk, 0.1) << OVER
    wait(talk, 10) << OVER
    assert len(closings(talk)) == 1


def test_a_handshake_may_take_for_ever_where_that_is_wanted() -> None:
    wait(server(handshake_timeout_s=0), 10**6) << NOTHING


@pytest.mark.parametrize(
    ("octets", "what"),
    [
        (b"GET / HTTP/1.1\r\n", "HTTP"),
        (b"HTTP/1.1 400 Bad Request", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", "TLS"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "TLS"),
        (b"GETTING.", ""),
        (b"AMQP\x00\x00\x09\x01", ""),
    ],
)
def test_who_has_taken_one_port_for_another_is_told_so(octets: bytes, what: str) -> None:
    for talk, words in ((server(), "this port does not serve"), (client(), "that port serves")):
        talk >> octets
        (closing,) = closings(talk)
        assert closing.error is not None
        found = str(closing.error.description)
        assert found.endswith(f" (it is {what}, which {words})") if what else "(" not in found


class Holding(Recorder):
    """Holds every open back."""

    def event_received(self, connection: Any, event: Any) -> None:
        super().event_received(connection, event)
        if isinstance(event, OpenReceived):
            opening.hold_open(connection)


def test_an_open_that_is_held_back() -> None:
    for refusal in (None, AmqpError("amqp:unauthorized-access", "no")):
        talk = Talk(Holding(), sasl_mechanisms=())
        talk >> [AMQP_HEADER, Open("c", idle_time_out=1000), begin()] << AMQP_HEADER << NOTHING
        # no heartbeat may come before our open
        wait(talk, 3) << NOTHING
        if refusal is None:
            opening.release_open(talk.connection)
            talk << Open << Begin << NOTHING
            continue
        opening.refuse(talk.connection, refusal)
        opening.release_open(talk.connection)
        talk << Open << failed(Close, "amqp:unauthorized-access") << OVER


def test_an_open_that_is_held_back_for_too_long() -> None:
    talk = Talk(Holding(), sasl_mechanisms=(), handshake_timeout_s=5.0)
    talk >> AMQP_HEADER >> Open("c") << AMQP_HEADER << NOTHING
    wait(talk, 6) << OVER


# Settings that depend on the peer's open.


@pytest.mark.parametrize(
    ("theirs", "ours", "channel_max"), [(9, 3, 3), (2, 3, 2), (0, 3, 0), (65535, 65535, 65535)]
)
def test_settings_may_change_until_an_open_is_answered(
    theirs: int, ours: int, channel_max: int
) -> None:
    class Changing(Recorder):
        def event_received(self, connection: Connection, event: object) -> None:
            super().event_received(connection, event)
            if isinstance(event, OpenReceived):
                settings = attrs.evolve(
                    connection.settings, max_frame_size=1024, channel_max=ours, window_limit=7
                )
                change_settings(connection, settings)

    talk = Talk(Changing(), sasl_mechanisms=())
    talk >> AMQP_HEADER << AMQP_HEADER
    talk >> Open("c", channel_max=theirs) << like(Open, max_frame_size=1024, channel_max=ours)
    assert (talk.connection.max_frame_size, talk.connection.channel_max) == (1024, channel_max)
    talk >> On(0, begin()) << like(Begin, incoming_window=7) << NOTHING


def test_a_larger_frame_than_the_changed_settings_allow_is_refused() -> None:
    class Changing(Recorder):
        def event_received(self, connection: Connection, event: object) -> None:
            super().event_received(connection, event)
            if isinstance(event, OpenReceived):
                change_settings(connection, attrs.evolve(connection.settings, max_frame_size=512))

    talk = Talk(Changing(), sasl_mechanisms=())
    talk >> [AMQP_HEADER, Open("c")]
    talk << AMQP_HEADER << like(Open, max_frame_size=512)
    talk >> b"\0\0\x02\x01\x02\0\0\0" + bytes(505)
    talk << like(Close) << OVER
