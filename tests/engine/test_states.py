"""The tables are closed, and each of their rows happens in an exchange of real frames."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from router.amqp.framing import AMQP_HEADER
from router.amqp.performatives import Attach, Close, Detach, End, Open, Source, Target
from router.engine import attaching, beginning, opening, states
from router.engine.states import Act, ConnectionState, LinkState, SessionState
from router.errors import AmqpError, Scope

from support.transcripts import Recorder, Talk, attach_sender, begin, begun, linked, opened

TABLES: list[tuple[type[enum.IntEnum], dict[Any, Any], int]] = [
    (ConnectionState, states.CONNECTION_TABLE, ConnectionState.START),
    (SessionState, states.SESSION_TABLE, SessionState.UNMAPPED),
    (LinkState, states.LINK_TABLE, LinkState.DETACHED),
]
LAST = {ConnectionState.END, SessionState.UNMAPPED, LinkState.DETACHED}


@pytest.mark.parametrize(("kind", "table", "first"), TABLES)
def test_every_state_is_reached_and_left(
    kind: type[enum.IntEnum], table: dict[Any, Any], first: int
) -> None:
    reached, found = {first}, [first]
    while found:
        state = found.pop()
        following = {after for (before, _), after in table.items() if before == state}
        found.extend(following - reached)
        reached |= following
    assert reached == set(kind)
    left = {before for before, _ in table}
    assert set(kind) - left <= LAST


@pytest.mark.parametrize(("kind", "table", "first"), TABLES)
def test_every_state_can_come_to_its_end(
    kind: type[enum.IntEnum], table: dict[Any, Any], first: int
) -> None:
    ending = {state for state in kind if state in LAST}
    while True:
        more = {before for (before, _), after in table.items() if after in ending} - ending
        if not more:
            break
        ending |= more
    assert ending == set(kind)


@pytest.mark.parametrize(
    ("walk", "kind", "table", "scope"),
    [
        (states.next_connection_state, ConnectionState, states.CONNECTION_TABLE, Scope.CONNECTION),
        (states.next_session_state, SessionState, states.SESSION_TABLE, Scope.CONNECTION),
        (states.next_link_state, LinkState, states.LINK_TABLE, Scope.SESSION),
    ],
)
@pytest.mark.spec("2.4.7-1")
def test_what_has_no_row_is_illegal(
    walk: Callable[[int, Act], int],
    kind: type[enum.IntEnum],
    table: dict[Any, Any],
    scope: Scope,
) -> None:
    for state in kind:
        for act in Act:
            if (state, act) in table:
                assert walk(int(state), act) == table[state, act]
                continue
            with pytest.raises(AmqpError) as caught:
                walk(int(state), act)
            assert (caught.value.condition, caught.value.scope) == ("amqp:illegal-state", scope)


# Every row, by frames.


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> set[tuple[Any, Act]]:
    """Record the rows of the state tables that a test walks."""
    walked: set[tuple[Any, Act]] = set()

    def watch(module: Any, name: str, kind: Any) -> None:
        walk = getattr(states, name)

        def watching(state: int, act: Act) -> Any:
            following = walk(state, act)
            walked.add((kind(state), act))
            return following

        monkeypatch.setattr(module, name, watching)

    watch(opening, "next_connection_state", ConnectionState)
    watch(beginning, "next_session_state", SessionState)
    watch(attaching, "next_link_state", LinkState)
    return walked


PROBLEM = AmqpError("amqp:internal-error", "a test's own", Scope.LINK)


def client() -> Talk:
    talk = Talk(is_client=True, sasl_mechanisms=())
    talk.connection.start()
    return talk


def _connections() -> Iterator[Talk]:
    # as a server: opened, and closed by either side
    for closing in (None, PROBLEM):
        talk = opened()
        talk.connection.close(closing)
        yield talk >> Close()
    yield opened() >> Close()
    # as a client that opens at once
    talk = client()
    talk.connection.close()
    yield talk >> AMQP_HEADER >> Open("s") >> Close()
    talk = client()
    talk.connection.close()
    yield talk >> AMQP_HEADER >> Close()
    talk = client()
    talk.connection.close(PROBLEM)
    yield talk
    for closing in (None, PROBLEM):
        talk = client() >> AMQP_HEADER
        talk.connection.close(closing)
        yield talk
    yield client() >> AMQP_HEADER >> Open("s")


def _sessions() -> Iterator[Talk]:
    for ending in (None, PROBLEM):
        talk = begun()
        beginning.end(talk.connection.local_sessions[0], ending)
        yield talk >> End()
    talk = opened()
    beginning.begin(talk.connection)
    yield talk >> begin(remote_channel=0) >> End()


def own_link(talk: Talk) -> Any:
    session = talk.connection.local_sessions[0]
    return attaching.attach(session, Attach("ours", 0, True, source=Source("q"), target=Target()))


def _links() -> Iterator[Talk]:
    for problem in (None, PROBLEM):
        talk = linked()
        attaching.detach(talk.recorder.links["sender-0"], True, problem)
        yield talk >> Detach(0, True)
    yield linked() >> Detach(0, True)
    # ours, answered before or after we give it up
    answer = attach_sender(0, name="ours")
    for problem in (None, PROBLEM):
        talk = begun()
        link = own_link(talk)
        attaching.detach(link, True, problem)
        yield talk >> answer >> Detach(0, True)
    talk = begun()
    own_link(talk)
    yield talk >> answer >> Detach(0, True)
    # the peer's, given up before we answer
    yield begun(Recorder(accepts=False)) >> attach_sender() >> Detach(0, True)


NEVER_HERE = {
    # An end or detach is answered in the call that takes it in, without an error of its own.
    (SessionState.END_RCVD, Act.SEND_END_ERROR),
    (LinkState.DETACH_RCVD, Act.SEND_DETACH_ERROR),
    # So is a close.
    (ConnectionState.CLOSE_RCVD, Act.SEND_CLOSE_ERROR),
    # A client's open follows its header at once, a server waits for the peer's.
    (ConnectionState.HDR_SENT, Act.RECV_HEADER),
    (ConnectionState.HDR_EXCH, Act.SEND_OPEN),
    # What follows a close with an error is not looked at, the answer neither.
    (ConnectionState.DISCARDING, Act.RECV_CLOSE),
}


@pytest.mark.spec("2.4.7-1")
def test_every_row_happens_in_an_exchange_of_frames(rows: set[tuple[Any, Act]]) -> None:
    for exchanges in (_connections, _sessions, _links):
        for _ in exchanges():
            pass
    table = {*states.CONNECTION_TABLE, *states.SESSION_TABLE, *states.LINK_TABLE}
    assert table - rows - NEVER_HERE == set()
    assert not rows & NEVER_HERE
