"""State that a peer creates is charged to its connection, limited and released."""

from __future__ import annotations

from sys import getsizeof
from typing import Any

import pytest

from router.amqp.framing import AMQP_HEADER, encode_frame
from router.amqp.performatives import Attach, Begin, Close, Detach, End, Open, Source, Target
from router.amqp.types import Symbol
from router.core.addresses.table import address_name
from router.engine.account import (
    CONNECTION_BYTES,
    KINDS,
    LEAST_STATE_BYTES,
    LINK_BYTES,
    SESSION_BYTES,
    Account,
    Ledger,
    attach_bytes,
    link_bytes,
)
from router.engine.attaching import detach
from router.engine.states import SessionState
from router.errors import AmqpError, Scope

from support.in_memory import Client, Router
from support.traced import traced_bytes
from support.transcripts import On, Talk, attach_receiver, begin, begun, session_of

LIMIT = 100
LARGE: dict[Any, Any] = {Symbol("x"): [[]] * 10_000}


def accounts(count: int, **limits: Any) -> tuple[Ledger, list[Account]]:
    """So many open connections, with nothing charged to them."""
    ledger = Ledger(**limits)
    made = [Account(ledger) for _ in range(count)]
    for account in made:
        account.opened(-CONNECTION_BYTES)
    return ledger, made


def test_what_is_charged_is_in_both_books_until_it_is_released() -> None:
    ledger, (one, other) = accounts(2)
    one.charge("links", 30)
    other.charge("links", 5)
    other.charge("nodes", 7)
    assert (one.total, other.total, ledger.total) == (30, 12, 42)
    assert ledger.by_kind == {**dict.fromkeys(KINDS, 0), "links": 35, "nodes": 7}
    one.release("links", 30)
    other.release("nodes", 7)
    assert (one.total, other.of_kind("links"), ledger.total) == (0, 5, 5)
    assert ledger.released == 37


def test_limits_of_0_are_derived_from_that_of_messages() -> None:
    ledger = Ledger()
    ledger.limit(2**28, 0, 0)
    assert (ledger.limit_bytes, ledger.connection_limit_bytes) == (2**31, 2**30)
    ledger.limit(2**20, 0, 0)
    assert ledger.limit_bytes == LEAST_STATE_BYTES
    ledger.limit(2**20, 1000, 10)
    assert (ledger.limit_bytes, ledger.connection_limit_bytes) == (1000, 10)


def test_without_limits_nothing_is_refused() -> None:
    _, (account,) = accounts(1)
    account.charge("links", 2**50)
    assert account.refusal(2**50) is None


@pytest.mark.parametrize(
    ("charged", "scope"),
    [
        (99, None),
        (100, Scope.LINK),
        (112, Scope.LINK),
        (113, Scope.SESSION),
        (126, Scope.CONNECTION),
    ],
)
def test_who_goes_on_though_refused_loses_more(charged: int, scope: Scope | None) -> None:
    ledger, (account,) = accounts(1, connection_limit_bytes=LIMIT)
    account.charge("links", charged)
    refusal = account.refusal(1)
    assert (None if refusal is None else refusal.scope) is scope
    assert ledger.refused == (scope is not None)
    if refusal is not None:
        assert refusal.condition == "amqp:resource-limit-exceeded"
        assert "connectionStateLimitBytes" in refusal.description
        assert "100 are allowed" in refusal.description


def test_nobody_with_less_than_a_fair_share_is_refused_for_what_others_have() -> None:
    ledger, (greedy, modest) = accounts(2, limit_bytes=LIMIT)
    greedy.charge("links", LIMIT)
    refusal = greedy.refusal(1)
    assert refusal is not None
    assert refusal.description.endswith(
        "would take 101 octets; 50 are allowed (an equal share of stateLimitBytes, which is used "
        "up)"
    )
    assert modest.refusal(50) is None
    modest.charge("links", 50)
    assert modest.refusal(1) is not None
    greedy.release("links", LIMIT)
    assert modest.refusal(1) is None
    assert ledger.total == 50


@pytest.mark.parametrize(("count", "times"), [(2, 1.0), (3, 1.33), (8, 2.22), (100, 4.69)])
def test_how_much_all_hold_that_come_one_after_another(count: int, times: float) -> None:
    limit = 1_000_000
    ledger = Ledger()
    ledger.limit(0, limit, 0)
    for _ in range(count):
        account = Account(ledger)
        account.opened(-CONNECTION_BYTES)
        while account.refusal(limit // 10_000) is None:
            account.charge("links", limit // 10_000)
    # as many as half fill it, and each of the others has an equal share as it is when that comes
    most = limit * (1 + sum(1 / number for number in range(3, count + 1)))
    assert 0.99 * most < ledger.total <= most
    assert ledger.total / limit == pytest.approx(times, abs=0.02)


def test_what_outlives_a_connection_stays_charged() -> None:
    ledger, (account,) = accounts(1)
    account.charge("connection", 10)
    account.charge("sessions", 10)
    account.charge("suspended", 10)
    account.closed()
    account.closed()
    assert account.total == ledger.total == 10
    assert ledger.accounts == 0


def test_characters_that_are_not_ascii_are_charged_for_what_they_take() -> None:
    def of(address: str) -> int:
        return link_bytes("link", (Attach("link", 0, True, source=Source(address)),))

    assert of("a" * 100) - of("") == 200
    assert of("é" * 100) - of("") == 800


# On connections.


def of(client: Client) -> Account:
    account: Account = client.connection.account
    return account


# What most is held of for its octets on the wire, and what is kept in most pieces.
TEXTS = {
    "ascii": "a" * 5000,
    "latin": "a" * 5000 + "\u00e9",
    "widest": "a" * 5000 + "\U0001f600",
    "parted": "a/\U0001f600." * 1000,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_more_is_held_of_a_link_than_is_charged(text: str) -> None:
    router = Router()
    client = router.client()
    client.receiver("q", 0)
    before = of(client).total

    def attach() -> None:
        for number in range(50):
            client.receiver(f"/{number}{text}/", 0)
        # what the other end of the wire remembers
        client.links.clear()
        client.heard.clear()

    held = traced_bytes(attach)
    assert len(client.connection.sessions.find(0).local_links) == 51
    assert held < of(client).total - before


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_the_texts_of_an_attach_are_charged_until_it_is_answered(text: str) -> None:
    address = f"/{text}"
    frame = Attach(text, 0, True, source=Source(address), target=Target(address))
    # each address as it came and as the name that it means
    texts = (text, *[address, address_name(address)] * 2)
    octets = len(encode_frame(0, frame, b""))
    assert sum(map(getsizeof, texts)) < attach_bytes(octets, frame) - LINK_BYTES


def test_everything_is_released_as_it_ends() -> None:
    router = Router()
    clients = [router.client() for _ in range(3)]
    empty = [of(client).total for client in clients]
    assert empty[0] >= CONNECTION_BYTES + SESSION_BYTES
    for client in clients:
        client.receiver("q", 1)
        client.sender("q")
        client.receiver(None, 1, source=Source(dynamic=True), properties=LARGE)
    assert of(clients[0]).total > empty[0] + 3 * LINK_BYTES
    for link in clients[0].links:
        link.detach()
    assert of(clients[0]).total == empty[0]
    clients[1].say(End())
    assert of(clients[1]).total == empty[1] - SESSION_BYTES
    clients[1].say(Close())
    clients[2].say(Close())
    for client in clients:
        client.connection.end_of_input()
    assert [of(client).total for client in clients] == [0, 0, 0]
    assert router.turn.ledger.total == 0


def test_what_nobody_reads_of_an_attach_is_not_kept() -> None:
    router = Router()
    router.forwarder.sources.configure(refuses_filters=False, refuses_durable=False)
    client = router.client()
    before = of(client).total
    said = {"properties": LARGE, "unsettled": {n.to_bytes(4, "big"): None for n in range(1000)}}
    receiver = client.receiver("q", 0, source=Source("q", filter=LARGE), **said)
    link = next(iter(client.connection.sessions.find(0).local_links.values()))
    assert link.remote_attach.properties is None
    assert link.remote_attach.unsettled is None
    assert link.remote_attach.source == Source("q")
    assert of(client).total - before < LINK_BYTES + 100
    assert receiver.attach is not None


def test_what_is_said_in_an_open_is_kept_and_charged() -> None:
    router = Router()
    client = Client(router)
    client.say(AMQP_HEADER, Open("peer", properties=LARGE, desired_capabilities=("x", "y")))
    opened = client.connection.remote_open
    assert opened.properties == LARGE
    assert opened.desired_capabilities == ()
    assert 10_000 < of(client).total - CONNECTION_BYTES < 10_100


def limited(room: int) -> tuple[Router, Client]:
    """Return a router whose connection limit leaves `room` beside what a client starts with."""
    router = Router()
    client = router.client()
    router.turn.ledger.connection_limit_bytes = of(client).total + room
    return router, client


def sent(talk: Talk) -> list[Any]:
    """Return what the router has said so far."""
    return [each.performative for each in talk.frames()]


def condition_of(ended: Any) -> str:
    return str(ended.error.condition)


def test_a_link_that_is_too_much_is_refused_and_no_other_suffers() -> None:
    router, client = limited(10 * LINK_BYTES)
    good = client.receiver("q", 10)
    refused = client.receiver("q", 0, properties={Symbol("x"): "y" * 40_000})
    assert refused.detached is not None
    assert condition_of(refused.detached) == "amqp:resource-limit-exceeded"
    assert "connectionStateLimitBytes" in str(refused.detached.error)
    other = router.client().sender("q")
    other.send(b"x")
    assert good.take() == b"x"
    assert of(client).total < router.turn.ledger.connection_limit_bytes


def test_who_answers_no_detach_loses_the_session_and_then_the_connection() -> None:
    talk = begun()
    account = talk.connection.account
    talk.turn.ledger.connection_limit_bytes = limit = account.total + 20 * LINK_BYTES
    for handle in range(60):
        talk >> attach_receiver(handle, name=f"link-{handle}")
        session = session_of(talk)
        if session.state != SessionState.MAPPED:
            break
    assert account.total < 1.2 * limit
    assert 15 < len(talk.recorder.links) <= 20
    ended = [each for each in sent(talk) if isinstance(each, End)]
    assert condition_of(ended[0]) == "amqp:resource-limit-exceeded"
    # its links are over, and so there is room again; sessions are not answered either
    assert account.total < limit
    for channel in range(1, 200):
        talk >> On(channel, begin())
        if talk.connection.finished:
            break
    assert account.total < 1.4 * limit
    closed = [each for each in sent(talk) if isinstance(each, Close)]
    assert condition_of(closed[0]) == "amqp:resource-limit-exceeded"
    talk.connection.end_of_input()
    assert talk.turn.ledger.total == 0


@pytest.mark.spec("0.2-5")
def test_a_session_that_is_too_much_is_ended() -> None:
    router, client = limited(0)
    client.give(On(1, Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)))
    router.finish_turn()
    ended = [each for each in client.heard if isinstance(each, End)]
    assert condition_of(ended[0]) == "amqp:resource-limit-exceeded"
    assert not client.connection.finished


@pytest.mark.spec("0.2-5")
def test_an_open_that_is_too_much_is_answered_by_a_close() -> None:
    router = Router()
    router.turn.ledger.connection_limit_bytes = CONNECTION_BYTES + 1000
    client = Client(router)
    client.say(AMQP_HEADER, Open("peer", properties=LARGE))
    closed = [each for each in client.heard if isinstance(each, Close)]
    assert condition_of(closed[0]) == "amqp:resource-limit-exceeded"
    client.connection.end_of_input()
    assert router.turn.ledger.total == 0


def test_a_detach_that_is_not_answered_stays_charged() -> None:
    talk = begun()
    account = talk.connection.account
    before = account.total
    talk >> attach_receiver(5)
    (link,) = talk.recorder.links.values()
    detach(link, True, AmqpError("amqp:internal-error"))
    assert account.total >= before + LINK_BYTES
    talk >> Detach(5, closed=True)
    assert account.total == before
