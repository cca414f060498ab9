"""Taps: what passes over a connection is told from the next frame on, and off is off."""

from __future__ import annotations

import attrs

from router.amqp.framing import AMQP_HEADER, SASL_HEADER, encode_frame
from router.amqp.performatives import Attach, Begin, Close, Detach, Open, Transfer
from router.config.claims import ClaimsSettings, SharedAccessKeySettings
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.secret import Secret
from router.net.tracing import Frame

from support.loopback import Running, dialled, listening, running_node
from support.transcripts import attach_receiver


class Ear:
    """Somebody who listens to some connections, or to all."""

    def __init__(self, running: Running, *numbers: int) -> None:
        self.frames: list[Frame] = []
        self.turns = 0
        self.traces = running.node.hub.tracer
        self.listening = self.traces.add_listener(
            lambda pump: pump.number in numbers or not numbers, self.frames.append, self._turned
        )

    def _turned(self) -> None:
        self.turns += 1

    def names(self, *, incoming: bool) -> list[str]:
        """Return the names of what was heard in one direction."""
        return [each.description.name for each in self.frames if each.incoming is incoming]

    def stop(self) -> None:
        """Listen no more."""
        self.traces.remove_listener(self.listening)


async def test_a_connection_is_heard_from_its_first_octet_to_its_last() -> None:
    async with running_node() as running:
        ear = Ear(running)
        async with dialled(running.address) as peer:
            await peer.begin()
            await peer.attach_receiver("q", credit=1)
            await peer.say(Close())
            await peer.hear_until(Close)
        await running.until(lambda: not running.pumps)
        incoming = ["AMQP 1.0.0", "open", "begin", "attach", "flow", "close"]
        assert ear.names(incoming=True) == incoming
        assert ear.names(incoming=False) == ["AMQP 1.0.0", "open", "begin", "attach", "close"]
        assert {each.pump.number for each in ear.frames} == {1}
        assert ear.turns > 0
        opened = next(each for each in ear.frames if each.description.name == "open")
        assert opened.text.startswith("0 <- @open(16) [container-id=")


async def test_one_of_two_is_heard_and_the_other_has_no_tap() -> None:
    async with (
        running_node() as running,
        dialled(running.address) as one,
        dialled(running.address) as other,
    ):
        await one.begin()
        await other.begin()
        first, second = running.pumps
        ear = Ear(running, first.number)
        assert [bool(each.tap) for each in (first, second)] == [True, False]
        await other.attach_receiver("q", credit=1)
        await one.attach_receiver("q", handle=0)
        assert ear.names(incoming=True) == ["attach"]
        ear.stop()
        assert not first.tap
        await one.attach_receiver("q", handle=1)
        assert ear.names(incoming=True) == ["attach"]


async def test_several_listen_at_once() -> None:
    async with running_node() as running, dialled(running.address) as peer:
        await peer.begin()
        one, other = Ear(running), Ear(running)
        await peer.attach_receiver("q", handle=0)
        one.stop()
        await peer.attach_receiver("q", handle=1)
        assert one.names(incoming=True) == ["attach"]
        assert other.names(incoming=True) == ["attach", "attach"]


async def test_a_tap_in_the_middle_of_a_frame_begins_with_what_was_kept_of_it() -> None:
    async with running_node() as running, dialled(running.address) as peer:
        await peer.begin()
        frame = encode_frame(0, attach_receiver(0, "q"))
        await peer.stream.send_all(frame[:10])
        (pump,) = running.pumps
        await running.until(lambda: bool(pump.connection.kept))
        ear = Ear(running)
        await peer.stream.send_all(frame[10:])
        await peer.hear_until(Attach)
        assert ear.names(incoming=True) == ["attach"]
        assert ear.names(incoming=False)[0] == "attach"


async def test_a_tap_in_the_middle_of_a_read_begins_with_the_next() -> None:
    async with running_node() as running, dialled(running.address) as peer:
        heard: list[Frame] = []
        # wanted once the peer is known, which is while its first octets are looked at
        traces = running.node.hub.tracer
        traces.add_listener(lambda pump: pump.connection.remote_open is not None, heard.append)
        begin = encode_frame(0, Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9))
        attach = encode_frame(0, attach_receiver(0, "q"))
        opened = AMQP_HEADER + encode_frame(0, Open("ada"))
        await peer.stream.send_all(opened + begin + attach[:20])
        await peer.octets(8)
        await peer.hear_until(Begin)
        await peer.stream.send_all(attach[20:])
        await peer.hear_until(Attach)
        assert [each.description.name for each in heard if each.incoming] == ["attach"]


async def test_what_had_been_written_before_is_not_told_in_pieces() -> None:
    async with running_node() as running, dialled(running.address) as peer:
        await peer.begin()
        (pump,) = running.pumps
        # the answer is written, and has not been sent when the tap begins
        frame = encode_frame(0, attach_receiver(1, "q"))
        pump.connection.receive(frame, len(frame))
        assert pump.connection.outbox.output.size()
        ear = Ear(running)
        running.node.hub.finish_turn()
        await peer.hear_until(Attach)
        assert ear.frames == []
        await peer.say(Detach(1, closed=True))
        await peer.hear_until(Detach)
        assert ear.names(incoming=False) == ["detach"]


async def test_what_may_be_secret_is_known_whoever_asked_for_words() -> None:
    async with running_node() as running:
        ear = Ear(running)
        async with dialled(running.address) as peer:
            # nobody asks for the words of the header, nor of what comes before the last frame
            await peer.stream.send_all(SASL_HEADER + b"\0\0\0\x0e\2\1\0\0sesame")
            await running.until(lambda: len(ear.frames) > 3)
        texts = [each.text for each in reversed(ear.frames) if each.incoming]
        assert texts[0].startswith("0 <- frame (14 octets")
        assert "sesame" not in "".join(texts)


async def test_nonsense_is_told_and_breaks_nothing() -> None:
    async with running_node() as running:
        ear = Ear(running)
        async with dialled(running.address) as peer:
            await peer.say(AMQP_HEADER, Open("x"))
            await peer.stream.send_all(b"\0\0\0\3nonsense")
            await peer.octets(8)
            await peer.hear_until(Close)
        await running.until(lambda: not running.pumps)
        assert ear.names(incoming=True) == ["AMQP 1.0.0", "open", "not AMQP"]
        async with dialled(running.address) as peer:
            await peer.begin()


async def test_the_router_s_own_connection_is_heard_by_nobody() -> None:
    async with running_node() as running:
        Ear(running)
        own = running.node.hub.own_pump
        assert own is not None
        assert own.tap is None


async def test_what_is_logged_is_switched_for_all_and_for_one() -> None:
    configuration = Configuration(
        listeners=(
            ListenerSettings(port=0, name="plain"),
            ListenerSettings(port=0, name="traced", enable_protocol_trace=True),
        )
    )
    async with running_node(configuration) as running, dialled(running.address) as peer:
        traces = running.node.hub.tracer
        lines: list[tuple[int, str]] = []
        traces.log = lambda number, text: lines.append((number, text))
        await peer.begin()
        assert lines == []
        (pump,) = running.pumps
        traces.log_one(pump, on=True)
        await peer.attach_receiver("q")
        assert [(number, text[:14]) for number, text in lines][:2] == [
            (1, ":0 <- @attach("),
            (1, ":0 -> @attach("),
        ]
        traces.log_one(pump, on=False)
        traces.log_all(on=True)
        taps = [pump.tap]
        traces.log_one(pump, on=None)
        taps.append(pump.tap)
        traces.log_all(on=False)
        taps.append(pump.tap)
        assert [bool(tap) for tap in taps] == [False, True, False]
        traced = running.addresses[1]
        lines.clear()
        async with dialled(traced) as other:
            await other.begin()
        assert lines[0] == (2, ":0 <- AMQP 1.0.0")


async def test_messages_are_heard() -> None:
    async with running_node() as running, dialled(running.address) as peer:
        await peer.begin()
        await peer.attach_receiver("q", credit=1)
        await peer.attach_sender("q", 0)
        ear = Ear(running)
        await peer.transfer(0)
        await peer.hear_until(Transfer)
        assert ear.names(incoming=True) == ["transfer"]
        assert "transfer" in ear.names(incoming=False)


async def test_payloads_are_hidden_where_tokens_are_put() -> None:
    claims = attrs.evolve(
        listening(claims="c"),
        shared_access_keys=(SharedAccessKeySettings(name="k", key=Secret("literal", "key")),),
        claims=(ClaimsSettings(name="c", shared_access_keys=("k",)),),
    )
    async with running_node(claims) as running, dialled(running.address) as peer:
        ear = Ear(running)
        await peer.begin()
        await peer.attach_receiver("$cbs", credit=1, handle=1)
        await peer.attach_sender("$cbs")
        await peer.transfer(0, b"\x00Sw\xa1\x05token")
        await peer.hear_until(Transfer)
        texts = [each.text for each in ear.frames if each.description.name == "transfer"]
        assert [each.endswith(") <not shown>") for each in texts] == [True, True]
