"""Large maps of an attach are checked over several turns, before the link is attached."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.encoded import CHECKED_AT_ONCE, EncodedMap
from router.amqp.performatives import (
    Attach,
    Close,
    DeleteOnClose,
    Detach,
    End,
    Received,
    Source,
    Target,
)
from router.amqp.types import Described, Symbol, ULong
from router.engine import beginning
from router.engine.events import LinkAttachReceived

from support.transcripts import (
    NOTHING,
    Talk,
    attach_receiver,
    attach_sender,
    begun,
    failed,
    like,
    session_of,
    wire,
)

# More states than are checked in one turn; each is another one.
MANY = 1000
STATES: dict[bytes, Any] = {b"%d" % number: Received(number, 0) for number in range(MANY)}
NO_STATE = Described(ULong(0x10), ["an open"])


def read(talk: Talk, said: Any) -> None:
    """Have the connection read all of this, and do of it what fits into one turn."""
    octets = wire(said)
    talk.connection.receive(octets, len(octets))


def turns(talk: Talk) -> int:
    """Take turns until all is done; return how many it took."""
    count = 0
    while talk.connection.is_behind:
        talk.connection.resume()
        count += 1
    return count


@pytest.mark.parametrize("role", [False, True])
def test_a_link_is_attached_once_all_is_checked(role: bool) -> None:
    talk = begun()
    attach = attach_receiver if role else attach_sender
    # what comes behind does not overtake it
    read(talk, [attach(0, unsettled=STATES), attach(1), Detach(0)])
    assert not talk.recorder.of(LinkAttachReceived)
    assert talk.connection.unfinished is not None
    assert turns(talk) > 2
    assert [event.link.remote_handle for event in talk.recorder.of(LinkAttachReceived)] == [0, 1]
    talk << like(Attach, role=not role) << Attach << Detach(0) << NOTHING
    assert talk.connection.unfinished is None


def test_a_few_states_are_checked_at_once() -> None:
    talk = begun()
    few = dict(list(STATES.items())[:CHECKED_AT_ONCE])
    read(talk, attach_sender(unsettled=few))
    talk << Attach << NOTHING


def test_properties_of_a_node_are_checked_so_too() -> None:
    talk = begun()
    policies = {Symbol(f"x{number}"): DeleteOnClose() for number in range(MANY)}
    policies[Symbol("lifetime-policy")] = DeleteOnClose()
    source = Source(dynamic=True, dynamic_node_properties=policies)
    target = Target(dynamic=True, dynamic_node_properties=policies)
    read(talk, [attach_receiver(0, source=source), attach_sender(1, target=target)])
    assert not talk.recorder.of(LinkAttachReceived)
    assert turns(talk) > 4
    talk << Attach << Attach << NOTHING


@pytest.mark.parametrize("at", [0, MANY - 1])
def test_what_may_not_be_there_closes_the_connection_however_late_it_is_found(at: int) -> None:
    talk = begun()
    states = {**STATES, b"%d" % at: NO_STATE}
    talk >> [attach_sender(unsettled=states), attach_receiver()]
    talk << failed(Close, "amqp:decode-error")
    assert not talk.recorder.of(LinkAttachReceived)
    assert talk.connection.unfinished is None


def test_a_session_that_ends_meanwhile_attaches_nothing() -> None:
    talk = begun()
    read(talk, attach_sender(unsettled=STATES))
    beginning.end(session_of(talk), None)
    turns(talk)
    talk << End() << NOTHING
    assert not talk.recorder.of(LinkAttachReceived)


def test_equal_states_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[int] = []
    value = EncodedMap._value

    def count(self: EncodedMap, at: int) -> Any:
        checked.append(at)
        return value(self, at)

    monkeypatch.setattr(EncodedMap, "_value", count)
    (begun() >> attach_sender(unsettled=dict.fromkeys(STATES, Received(0, 0)))) << Attach
    assert len(checked) == 1
