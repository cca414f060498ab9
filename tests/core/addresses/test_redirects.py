"""Links, messages and connections that are sent elsewhere: what is said, and to whom not."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.message import AmqpValue, Message, encode_message
from router.amqp.performatives import Close, Header, Open, Properties, Rejected, Source
from router.amqp.redirects import Redirect, redirect_of
from router.amqp.types import Int
from router.core.addresses.redirects import KINDS, Redirects
from router.engine.events import ConnectionClosed, ConnectionOpened, ConnectionRefused, LinkRefused

from support.in_memory import ReceivingLink, Router, Sending, SendingLink
from support.transcripts import Talk, attach_sender, begin, like

THERE = Redirect("container-2", "10.0.0.2", 5673)
OTHER = Redirect("container-3", "10.0.0.3", 5672, "moved")


def redirecting() -> Redirects:
    """Redirects of every kind."""
    redirects = Redirects()
    redirects.add_addresses(True, "old", THERE, senders=True, receivers=True)
    redirects.add_addresses(False, "old/*/moved", OTHER, senders=True, receivers=True)
    redirects.add_addresses(True, "in", THERE, senders=True, receivers=False)
    redirects.add_addresses(True, "out", THERE, senders=False, receivers=True)
    redirects.add_host("Old.Example.Org", THERE)
    return redirects


def to(address: str, body: str = "x") -> bytes:
    """Encode a message to an address."""
    return encode_message(Message(properties=Properties(to=address), body=(AmqpValue(body),)))


def led(link: SendingLink | ReceivingLink) -> Redirect:
    """Where a link was sent: attach without the router's terminus, then detach with the error."""
    assert link.attach is not None
    is_sender = isinstance(link, SendingLink)
    assert (link.attach.target if is_sender else link.attach.source) is None
    assert (link.attach.source if is_sender else link.attach.target) is not None
    assert link.detached is not None
    assert link.detached.closed
    assert link.detached.error is not None
    assert link.detached.error.condition == "amqp:link:redirect"
    found = redirect_of(link.detached.error)
    assert found is not None
    return found


# Links (section 2.8.18).


@pytest.mark.spec("2.8.18-2")
@pytest.mark.parametrize("kind", ["sender", "receiver"])
@pytest.mark.parametrize(
    ("asked", "place"),
    [
        ("old", Redirect("container-2", "10.0.0.2", 5673, "old")),
        ("old/a.b", Redirect("container-2", "10.0.0.2", 5673, "old/a.b")),
        ("/old/", Redirect("container-2", "10.0.0.2", 5673, "/old/")),
        ("amqp://us:5672/old/a", Redirect("container-2", "10.0.0.2", 5673, "old/a")),
        ("old/a/moved", OTHER),
    ],
)
def test_a_link_is_refused_and_told_where_to_go(kind: str, asked: str, place: Redirect) -> None:
    router = Router(redirects=redirecting())
    client = router.client()
    link = getattr(client, kind)(asked)
    assert led(link) == place
    assert link.detached.error.description == f"redirected to {place}"
    info = link.detached.error.info
    assert list(info) == ["hostname", "network-host", "port", "address"]
    assert type(info["port"]) is Int
    assert router.table.redirects.issued == {"connection": 0, "link": 1, "message": 0}
    assert len(router.table) == 0
    # the session goes on, and so do other addresses
    assert client.sender("older").detached is None
    (refused,) = [event for event in router.events if isinstance(event, LinkRefused)]
    assert refused.error.condition == "amqp:link:redirect"


def test_a_redirect_may_be_for_one_direction() -> None:
    client = Router(redirects=redirecting()).client()
    assert led(client.sender("in/x")).address == "in/x"
    assert client.receiver("in/x").detached is None
    assert led(client.receiver("out")).address == "out"
    assert client.sender("out").detached is None


def test_a_redirect_is_stronger_than_a_treatment() -> None:
    rules = [(False, "old", "multicast"), (True, "old/x", "unavailable")]
    client = Router(rules, redirects=redirecting()).client()
    assert led(client.sender("old")).host == "10.0.0.2"
    assert led(client.receiver("old/x")).host == "10.0.0.2"


def test_dynamic_nodes_are_here_whatever_their_names_match() -> None:
    redirects = Redirects()
    redirects.add_addresses(False, "#", THERE, senders=True, receivers=True)
    router = Router(redirects=redirects)
    receiver = router.client().receiver(None, 5, source=Source(dynamic=True))
    assert receiver.attach is not None
    assert receiver.attach.source is not None
    address = receiver.attach.source.address
    assert address is not None
    sender = router.client().sender(address)
    assert sender.detached is None
    relay = router.client().sender(None)
    relay.send(to(address))
    assert receiver.take() == to(address)
    receiver.detach()
    assert led(router.client().sender(address)).host == "10.0.0.2"


@pytest.mark.parametrize("length", [20, 200, 60_000])
def test_an_error_that_is_long_leaves_out_what_the_peer_knows(length: int) -> None:
    """The description says everything again, and the address is what the peer itself has named."""
    asked = "old/" + "a" * length
    found = Redirects().error_for_link(asked, asked, is_sender=True)
    assert found is None
    error = redirecting().error_for_link(asked, asked, is_sender=True)
    assert error is not None
    assert bool(error.description) is (length == 20)
    assert error.info is not None
    assert error.info.get("address") == (None if length == 60_000 else asked)
    assert error.info["network-host"] == "10.0.0.2"


def test_what_is_configured_is_said_however_long() -> None:
    redirects = Redirects()
    long = Redirect("h" * 255, "n" * 255, 5672, "a" * 255)
    redirects.add_addresses(False, "a", long, senders=True, receivers=True)
    error = redirects.error_for_link("a", "a", is_sender=True)
    assert error is not None
    assert error.info == long.info()


@pytest.mark.parametrize("kind", ["sender", "receiver"])
def test_a_peer_with_small_frames_is_told_where_to_go(kind: str) -> None:
    client = Router(redirects=redirecting()).client(max_frame_size=512)
    assert led(getattr(client, kind)("old/" + "a" * 200)).host == "10.0.0.2"


# Messages of anonymous senders.


def rejected(sending: Sending) -> Redirect:
    """Where a message was said to belong."""
    assert isinstance(sending.outcome, Rejected)
    assert sending.outcome.error is not None
    assert sending.outcome.error.condition == "amqp:link:redirect"
    found = redirect_of(sending.outcome.error)
    assert found is not None
    return found


def test_a_message_to_an_address_elsewhere_is_rejected() -> None:
    router = Router(redirects=redirecting())
    relay = router.client().sender(None)
    receiver = router.client().receiver("here", 5)
    assert rejected(relay.send(to("old/x"))) == Redirect("container-2", "10.0.0.2", 5673, "old/x")
    assert rejected(relay.send(to("amqp://us/old/y/moved"))) == OTHER
    sending = relay.send(to("here"))
    receiver.settle()
    assert sending.is_over
    assert [receiver.take()] == [to("here")]
    assert router.table.redirects.issued == {"connection": 0, "link": 0, "message": 2}
    counters = router.table.total()
    assert (counters.ingress, counters.egress, counters.no_destination) == (3, 1, 2)
    assert relay.detached is None


def test_a_message_belongs_to_the_senders_direction() -> None:
    router = Router(redirects=redirecting())
    relay = router.client().sender(None)
    # somebody receives there, and nobody may send
    receiver = router.client().receiver("in", 5)
    assert rejected(relay.send(to("in"))).address == "in"
    assert receiver.received == []
    # nobody may receive there, so nobody does
    assert type(relay.send(to("out")).outcome).__name__ == "Released"


def test_a_settled_message_to_an_address_elsewhere_is_dropped_and_counted() -> None:
    router = Router(redirects=redirecting())
    relay = router.client().sender(None)
    relay.send(to("old"), settled=True)
    assert router.table.redirects.issued["message"] == 1
    assert router.table.total().dropped_presettled == 1
    assert router.forwarder.backlog.held_bytes == 0


def test_the_rest_of_a_message_that_is_elsewhere_is_swallowed() -> None:
    router = Router(redirects=redirecting())
    relay = router.client().sender(None)
    whole = to("old", "x" * 10_000)
    sending = relay.send(whole[:5000], more=True)
    assert rejected(sending).address == "old"
    relay.go_on(whole[5000:])
    assert router.table.redirects.issued["message"] == 1
    assert router.forwarder.backlog.held_bytes == 0
    assert not relay.client.over


def test_an_outcome_fits_into_the_smallest_frames() -> None:
    relay = Router(redirects=redirecting()).client(max_frame_size=512).sender(None)
    assert rejected(relay.send(to("old/" + "a" * 300))).host == "10.0.0.2"
    assert rejected(relay.send(to("old/" + "a" * 5000))).host == "10.0.0.2"


def test_without_redirects_nothing_is_looked_up() -> None:
    router = Router()
    assert not router.table.redirects.concern_addresses
    assert router.table.redirect_message("old", "old") is None
    assert router.table.redirect_link("old", "old", is_sender=True) is None
    message = Message(header=Header(durable=True), body=(AmqpValue("x"),))
    sending = router.client().sender(None).send(encode_message(message))
    assert isinstance(sending.outcome, Rejected)
    assert router.table.redirects.issued == dict.fromkeys(KINDS, 0)


# Connections (section 2.8.16).


class Watched(Router):
    """A router that a transcript talks to."""

    def talk(self, **settings: Any) -> Talk:
        """Connect a peer to the router."""
        settings.setdefault("sasl_mechanisms", ())
        return Talk(self.forwarder, turn=self.turn, **settings)


@pytest.mark.spec("2.8.16-3")
@pytest.mark.parametrize("hostname", ["old.example.org", "OLD.example.ORG"])
def test_a_connection_is_answered_and_closed_and_told_where_to_go(hostname: str) -> None:
    router = Watched(redirects=redirecting())
    talk = router.talk() >> b"AMQP\x00\x01\x00\x00"
    talk << b"AMQP\x00\x01\x00\x00"
    # whatever follows the open is not looked at
    talk >> [Open("peer", hostname=hostname), begin(), attach_sender(address="q")]
    talk << like(Open, container_id="router")
    (closed,) = talk.frames()
    assert isinstance(closed.performative, Close)
    error = closed.performative.error
    assert error is not None
    assert error.condition == "amqp:connection:redirect"
    assert error.description == f"redirected to {THERE}"
    assert error.info == {"hostname": "container-2", "network-host": "10.0.0.2", "port": 5673}
    assert type(error.info["port"]) is Int
    assert talk.connection.finished
    assert router.table.redirects.issued == {"connection": 1, "link": 0, "message": 0}
    # the core acts before who watches hears of it
    refused, closed_event, _ = router.events
    assert isinstance(refused, ConnectionRefused)
    assert refused.remote_open.hostname == hostname
    assert isinstance(closed_event, ConnectionClosed)
    assert closed_event.error == error
    assert not [event for event in router.events if isinstance(event, ConnectionOpened)]
    assert len(router.table) == 0


@pytest.mark.parametrize("hostname", [None, "", "new.example.org", "old.example.org."])
def test_other_connections_are_let_be(hostname: str | None) -> None:
    router = Watched(redirects=redirecting())
    talk = router.talk() >> [b"AMQP\x00\x01\x00\x00", Open("peer", hostname=hostname)]
    assert talk.connection.is_open()
    assert router.table.redirects.issued["connection"] == 0


def test_whom_we_have_dialled_is_not_sent_away() -> None:
    router = Watched(redirects=redirecting())
    talk = router.talk(is_client=True)
    talk.connection.start()
    talk >> [b"AMQP\x00\x01\x00\x00", Open("peer", hostname="old.example.org")]
    assert talk.connection.is_open()


def test_a_close_fits_into_the_smallest_frames() -> None:
    redirects = Redirects()
    redirects.add_host("a", Redirect("h" * 255, "n" * 255, 5672))
    redirects.add_host("b", Redirect("h" * 150, "n" * 150, 5672))
    router = Watched(redirects=redirects)
    for hostname, info in (("a", None), ("b", Redirect("h" * 150, "n" * 150, 5672).info())):
        talk = router.talk() >> [
            b"AMQP\x00\x01\x00\x00",
            Open("peer", hostname=hostname, max_frame_size=512),
        ]
        talk << b"AMQP\x00\x01\x00\x00" << Open
        (closed,) = talk.frames()
        assert closed.performative.error.condition == "amqp:connection:redirect"
        assert (closed.performative.error.info or None) == info
