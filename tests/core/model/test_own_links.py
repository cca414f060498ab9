"""Links that the router attaches itself: begun, attached, refused and lost, each on its session."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.framing import AMQP_HEADER
from router.amqp.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    End,
    Error,
    Open,
    Source,
    Target,
)
from router.amqp.types import Symbol
from router.core.model.own_links import OwnLink
from router.engine.link import UNLIMITED
from router.errors import AmqpError, Scope

from support.in_memory import Router
from support.transcripts import NOTHING, On, Talk, begin, failed, like

GONE = Error(condition=Symbol("amqp:not-found"), description="no such queue")


class Noted(OwnLink):
    """An own link that writes down what becomes of it."""

    def __init__(self, *, sends: bool = True, name: str = "own") -> None:
        source, target = Source(address="here"), Target(address="there")
        count = 0 if sends else None
        super().__init__(
            Attach(name, 0, not sends, source=source, target=target, initial_delivery_count=count)
        )
        self.told: list[Any] = []

    def attached(self, forwarder: Any) -> None:
        self.told.append("attached")

    def over(self, forwarder: Any, error: Error | None, closed: bool) -> None:
        self.told.append((None if error is None else str(error.condition), closed))


class Peer(Talk):
    """A container that the router has a connection to."""

    def __init__(self, **fields: Any) -> None:
        self.router = Router()
        super().__init__(self.router.forwarder, turn=self.router.turn, sasl_mechanisms=())
        self >> AMQP_HEADER << AMQP_HEADER
        self >> Open("broker", **fields) << like(Open)

    def begin(self, own: OwnLink) -> Peer:
        """Have the link begun."""
        own.begin(self.connection)
        return self

    def settle(self) -> Peer:
        """End the turn."""
        self.router.forwarder.finish_turn()
        return self


def attached(own: OwnLink, **fields: Any) -> Peer:
    """Return a peer that has attached the link, on channel 7."""
    peer = Peer()
    peer.begin(own) << On(0, like(Begin, remote_channel=None))
    peer >> On(7, begin(remote_channel=0)) << On(0, like(Attach, name="own", handle=0))
    role = not own.frame.role
    count = None if role else 0
    answer = Attach(
        "own",
        3,
        role,
        source=own.frame.source,
        target=own.frame.target,
        initial_delivery_count=count,
    )
    peer >> On(7, answer) << NOTHING
    return peer


@pytest.mark.parametrize("sends", [True, False])
def test_a_link_is_attached_on_a_session_of_its_own(sends: bool) -> None:
    own = Noted(sends=sends)
    attached(own)
    assert own.told == ["attached"]
    assert own.link is not None
    assert own.link.is_attached()


def test_what_the_peer_takes_is_known() -> None:
    own = Noted()
    peer = Peer()
    peer.begin(own) << On(0, like(Begin))
    peer >> On(0, begin(remote_channel=0)) << On(0, like(Attach))
    answer = Attach("own", 0, True, source=Source(), target=Target(), max_message_size=100)
    peer >> On(0, answer)
    link: Any = own.link
    assert link.max_message_size == 100

    own = Noted()
    attached(own)
    link = own.link
    assert link.max_message_size == UNLIMITED


def test_two_links_share_nothing() -> None:
    peer = Peer()
    one, other = Noted(), Noted()
    peer.begin(one).begin(other)
    peer << On(0, like(Begin)) << On(1, like(Begin))
    peer >> On(0, begin(remote_channel=0)) << On(0, like(Attach))
    peer >> On(1, begin(remote_channel=1)) << On(1, like(Attach))
    peer >> On(0, End(error=GONE)) << On(0, like(End))
    assert one.told == [("amqp:not-found", False)]
    assert other.told == []


def test_a_refusal_is_told_with_its_reason() -> None:
    own = Noted()
    peer = Peer()
    peer.begin(own) << On(0, like(Begin))
    peer >> On(0, begin(remote_channel=0)) << On(0, like(Attach))
    peer >> Attach("own", 0, True, source=Source(), target=None)
    assert own.told == []
    peer >> Detach(0, closed=True, error=GONE)
    assert own.told == [("amqp:not-found", True)]
    peer.settle() << like(Detach) << like(End) << NOTHING


def test_a_detach_ends_the_session() -> None:
    own = Noted()
    peer = attached(own)
    peer >> On(7, Detach(3, closed=False))
    peer.settle() << On(0, like(Detach)) << On(0, like(End)) << NOTHING
    assert own.told == ["attached", (None, False)]
    peer >> On(7, End()) << NOTHING
    assert not peer.connection.local_sessions


def test_a_detach_of_ours_ends_the_session_too() -> None:
    own = Noted()
    peer = attached(own)
    own.detach(error=AmqpError("amqp:resource-deleted", "not configured any more", Scope.LINK))
    peer.settle() << On(0, failed(Detach, "amqp:resource-deleted")) << On(0, like(End)) << NOTHING
    assert own.told == ["attached", ("amqp:resource-deleted", True)]
    own.detach()
    peer.settle() << NOTHING


def test_a_link_may_be_given_up_before_its_session_is_begun() -> None:
    own = Noted()
    peer = Peer()
    peer.begin(own) << On(0, like(Begin))
    own.detach()
    own.detach()
    peer.settle() << NOTHING
    peer >> On(0, begin(remote_channel=0))
    peer.settle() << like(End) << NOTHING
    assert own.told == [(None, True)]


@pytest.mark.parametrize("begun", [True, False])
def test_a_lost_connection_is_told_once(begun: bool) -> None:
    own = Noted()
    peer = attached(own) if begun else Peer().begin(own)
    peer.skip()
    peer >> Close(error=GONE)
    peer.settle()
    told = ("amqp:not-found", False) if begun else (None, False)
    assert own.told[-1] == told
    assert len(own.told) == 1 + begun


def test_an_attach_that_the_peer_has_no_room_for_is_a_refusal() -> None:
    own = Noted(name="n" * 600)
    peer = Peer(max_frame_size=512)
    peer.begin(own) << On(0, like(Begin))
    peer >> On(0, begin(remote_channel=0))
    peer.settle() << like(End) << NOTHING
    assert own.told == [("amqp:frame-size-too-small", True)]


def test_without_a_free_channel_there_is_no_session() -> None:
    peer = Peer(channel_max=0)
    peer.begin(Noted())
    with pytest.raises(AmqpError, match="all 1 channels are in use"):
        peer.begin(Noted())
