"""Control links carry messages whole, in order and in bounds, and never come near an address."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from router.amqp.performatives import Accepted, Target
from router.core.links.control_links import CAPABILITY, CREDIT, MAX_MESSAGE_BYTES, ControlLink
from router.errors import AmqpError, Scope

from support.containers import Container, ControlledRouter, Node
from support.in_memory import Client, Router, SendingLink

TARGET = Target(capabilities=(CAPABILITY,))
WRONG = AmqpError("x:wrong", "it makes no sense", Scope.CONNECTION)


class Heard:
    """Hears of a control link."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.lost: list[str] = []
        self.refuses: AmqpError | None = None

    def control_received(self, control: ControlLink, octets: bytes) -> None:
        """Record a message, and raise `refuses` if it is set."""
        self.messages.append(octets)
        if self.refuses is not None:
            raise self.refuses

    def control_lost(self, control: ControlLink, why: str) -> None:
        """Record why the control link was lost."""
        self.lost.append(why)


class Listening:
    """A router in memory, and a peer whose control link it takes."""

    def __init__(self, **settings: object) -> None:
        self.router = Router()
        self.heard = Heard()
        self.client: Client = self.router.client(**settings)
        self.control = ControlLink(self.client.connection, "A", self.heard)
        self.router.forwarder.on_control = lambda link: self.control.attach_received(
            self.router.forwarder, link
        )

    def attached(self) -> SendingLink:
        """Attach the peer's half."""
        return self.client.sender(None, target=TARGET, name="qd.router.B")


def test_messages_are_read_whole_and_in_order() -> None:
    peer = Listening()
    sender = peer.attached()
    assert sender.credit == CREDIT
    assert sender.attach is not None
    assert sender.attach.max_message_size == MAX_MESSAGE_BYTES
    # what comes need not be what the router would take for a message
    for octets in (b"one", b"", b"\xff" * 1000):
        sender.send(octets, settled=True)
    assert peer.heard.messages == [b"one", b"", b"\xff" * 1000]
    assert peer.control.received_octets == 1003
    assert not list(peer.router.table.addresses())


def test_a_message_comes_in_many_frames() -> None:
    peer = Listening()
    sender = peer.attached()
    sender.send(b"a", settled=True, more=True)
    sender.go_on(b"b", more=True)
    assert peer.heard.messages == []
    sender.go_on(b"c")
    assert peer.heard.messages == [b"abc"]


def test_frames_with_nothing_in_them_take_no_memory() -> None:
    peer = Listening()
    sender = peer.attached()
    sender.send(b"a", settled=True, more=True)
    end: Any = peer.client.connection.local_sessions[0].local_links[0].terminus
    for _ in range(50):
        sender.go_on(b"", more=True)
    assert end._parts == [b"a"]
    sender.go_on(b"b")
    assert peer.heard.messages == [b"ab"]


def test_what_is_given_up_half_way_is_forgotten() -> None:
    peer = Listening()
    sender = peer.attached()
    sender.send(b"lost", more=True)
    sender.abort()
    sender.send(b"whole", settled=True)
    assert peer.heard.messages == [b"whole"]


def test_credit_is_given_again() -> None:
    peer = Listening()
    sender = peer.attached()
    for number in range(10 * CREDIT):
        assert sender.credit > 0
        sender.send(b"%d" % number, settled=True)
    assert len(peer.heard.messages) == 10 * CREDIT


def test_what_is_not_settled_is_accepted() -> None:
    peer = Listening()
    assert peer.attached().send(b"x").outcome == Accepted()
    assert peer.heard.messages == [b"x"]


def test_a_message_is_not_too_large() -> None:
    peer = Listening(max_frame_size=2**20)
    sender = peer.attached()
    sender.send(b"x" * 60_000, settled=True, more=True)
    for _ in range(MAX_MESSAGE_BYTES // 60_000):
        if sender.attached:
            sender.go_on(b"x" * 60_000, more=True)
    assert sender.detached is not None
    assert sender.detached.error is not None
    assert sender.detached.error.condition == "amqp:link:message-size-exceeded"
    [why] = peer.heard.lost
    assert why.startswith(
        "the control link has ended: the peer's sender was detached with amqp:link:mess"
    )
    assert peer.heard.messages == []


def test_a_message_that_makes_no_sense_ends_the_connection_and_nothing_else() -> None:
    peer = Listening()
    receiver = peer.router.client().receiver("q", 5)
    other = peer.router.client().sender("q")
    sender = peer.attached()
    peer.heard.refuses = WRONG
    sender.send(b"x", settled=True)
    assert peer.client.over
    other.send(b"hello")
    assert receiver.take() == b"hello"
    # the link went with it
    assert len(peer.heard.lost) == 1


def test_there_is_one_each_way() -> None:
    peer = Listening()
    peer.attached()
    second = peer.client.sender(None, target=TARGET, name="again")
    assert second.detached is not None
    assert second.detached.error is not None
    assert second.detached.error.description == "this connection already has a control link"
    assert peer.heard.lost == []


def test_it_is_over_when_the_peer_detaches() -> None:
    peer = Listening()
    peer.attached().detach()
    assert peer.heard.lost == ["the control link has ended: the peer's sender was detached"]
    peer.client.lose()
    assert len(peer.heard.lost) == 1


def test_clients_have_none() -> None:
    link = Router().client().sender(None, target=TARGET)
    assert link.detached is not None
    assert link.detached.error is not None
    assert link.detached.error.condition == "qd:forbidden"


def sending(**settings: object) -> tuple[ControlledRouter, ControlLink, Node, Heard]:
    """Return a router that has attached its half of a control link."""
    router = ControlledRouter()
    container = Container(router, **settings)  # type: ignore[arg-type]
    heard = Heard()
    control = ControlLink(container.connection, "A", heard)
    control.begin()
    router.finish_turn()
    [node] = container.nodes
    return router, control, node, heard


def test_ours_is_named_after_this_router() -> None:
    _, _, node, _ = sending()
    assert node.attach.name == "qd.router.A"
    assert node.attach.snd_settle_mode == 1
    assert node.attach.target == TARGET


def test_messages_leave_with_credit_and_are_made_only_then() -> None:
    router, control, node, _ = sending()
    made: list[int] = []

    def message(number: int) -> bytes:
        made.append(number)
        return b"%d" % number

    for number in range(5):
        control.send(partial(message, number))
    assert not control.flush()
    assert made == []
    node.grant(2)
    assert control.flush()
    router.finish_turn()
    assert [payload for _, payload in node.received] == [b"0", b"1"]
    assert not control.is_idle
    node.grant(10)
    control.flush()
    router.finish_turn()
    assert [payload for _, payload in node.received] == [b"0", b"1", b"2", b"3", b"4"]
    assert made == [0, 1, 2, 3, 4]
    assert control.is_idle


def test_a_peer_for_whom_too_much_waits_is_given_up() -> None:
    _, control, _, heard = sending()
    for _ in range(4):
        control.send(lambda: b"x", 3)
    assert control.is_over
    assert control.is_idle
    assert heard.lost == ["the peer does not take control messages: 3 of them are waiting"]
    control.send(lambda: b"x")
    assert control.is_idle


def test_a_large_one_leaves_in_frames() -> None:
    router, control, node, _ = sending()
    node.grant(10)
    octets = bytes(range(256)) * 1000
    control.send(lambda: octets)
    control.flush()
    router.finish_turn()
    assert b"".join(payload for _, payload in node.received) == octets
    assert control.is_idle


def test_what_the_window_holds_up_goes_on_when_it_opens() -> None:
    router, control, node, _ = sending()
    node.grant(10)
    link = node.container.connection.local_sessions[node.channel].local_links[0]
    link.session.remote_incoming_window = 1
    octets = b"x" * 150_000
    control.send(lambda: octets)
    control.send(lambda: b"next")
    control.flush()
    router.finish_turn()
    assert len(node.received) == 1
    assert not control.flush()
    node.grant(10)
    control.flush()
    router.finish_turn()
    payload = b"".join(payload for _, payload in node.received)
    assert payload == octets + b"next"


@pytest.mark.parametrize("how", ["detach", "end", "lose"])
def test_ours_is_lost(how: str) -> None:
    router, control, node, heard = sending()
    control.send(lambda: b"never")
    if how == "detach":
        node.detach("x:y")
    elif how == "end":
        node.end()
    else:
        node.container.lose()
    [why] = heard.lost
    assert why.startswith("the control link has ended: our sender was detached")
    assert control.is_idle
    control.send(lambda: b"never")
    assert not control.flush()
    router.finish_turn()
