"""A connector that is sent elsewhere: where it goes, where it does not, and what it shows whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from router.amqp.framing import SASL_HEADER
from router.amqp.performatives import Begin, Detach, Error, Open, SaslMechanisms
from router.amqp.redirects import Redirect
from router.amqp.types import Symbol
from router.config.auto_links import AutoLinkSettings
from router.config.connectors import ConnectorSettings
from router.config.secret import Secret
from router.net.connectors import FIRST_DELAY_S, LASTING_CONNECTION_S
from router.net.places import Place
from router.net.redirect_chain import MOST_HOPS, RedirectChain

from support.connecting import (
    HERE,
    Server,
    Waits,
    connecting,
    leave,
    meet,
    of,
    open_as_server,
    places,
)
from support.loopback import Running, running_node
from support.own_address import own_address

# The same machine by another name: for the router another host.
OTHER = "localhost"
PASSWORD = "s3cret"


# Deciding.


def trail(**fields: Any) -> RedirectChain:
    """Return the chain of a connector that follows redirects from a host to itself and others."""
    every: dict[str, Any] = {"allow_redirect": True, "redirect_hosts": ("b", "::1"), **fields}
    return RedirectChain(ConnectorSettings(host="a", port=1, **every), Place("a", 1, "a"))


def test_it_goes_where_it_is_sent() -> None:
    way = trail()
    assert way.here == Place("a", 1, "a")
    assert way.follow(Redirect("name", "B", 2)) == ""
    assert way.here == Place("B", 2, "name")
    assert way.follow(Redirect(None, "::1", 3)) == ""
    assert way.here == Place("::1", 3, "::1")
    assert way.hops == 2


def test_what_a_redirect_leaves_out_is_the_usual() -> None:
    way = trail()
    assert way.follow(Redirect("b")) == ""
    assert way.here == Place("b", 5672, "b")


@pytest.mark.parametrize(
    ("redirect", "reason"),
    [
        (Redirect(), "it names no host"),
        (Redirect(port=2, address="x"), "it names no host"),
        (Redirect("a", "c", 2), "c is not among redirectHosts"),
        # what the container is called says nothing of the machine
        (Redirect("b", "c.b", 2), "c.b is not among redirectHosts"),
        (Redirect("A", "A", 1), "it leads to a place visited before"),
    ],
)
def test_it_stays_where_it_may_not_go(redirect: Redirect, reason: str) -> None:
    way = trail()
    assert way.follow(redirect) == reason
    assert way.here == Place("a", 1, "a")


def test_its_own_host_needs_no_list() -> None:
    assert trail(redirect_hosts=()).follow(Redirect("a", "a", 2)) == ""
    assert trail(redirect_hosts=()).follow(Redirect("a", "b", 2)) == "b is not among redirectHosts"


def test_it_follows_nothing_unless_it_is_told_to() -> None:
    way = trail(allow_redirect=False, redirect_hosts=())
    assert way.follow(Redirect("a", "a", 2)) == "allowRedirect is off"


def test_it_keeps_its_scheme_whatever_the_redirect_says() -> None:
    way = trail()
    assert way.follow(Redirect("b", "b", 2, scheme="AMQP", path="/x")) == ""
    assert way.here == Place("b", 2, "b")
    encrypted = trail(ssl_profile="trust")
    for scheme in ("amqp", "ws", "wss", "https"):
        assert encrypted.follow(Redirect("b", "b", 2, scheme=scheme)) == (
            f"it leads to {scheme}, and the connector connects by amqps"
        )
    assert encrypted.follow(Redirect("b", "b", 2)) == ""
    assert encrypted.here == Place("b", 2, "b", "amqps")


@pytest.mark.spec("W3.1-1")
def test_a_web_socket_s_path_is_the_redirect_s_or_stays() -> None:
    way = trail(web_socket_path="/first", ssl_profile="trust")
    assert way.follow(Redirect("b", "b", 2, scheme="wss", path="/second")) == ""
    assert way.here == Place("b", 2, "b", "wss", "/second")
    assert way.follow(Redirect("b", "b", 2)) == ""
    assert way.here == Place("b", 2, "b", "wss", "/first")


def test_it_does_not_go_in_circles() -> None:
    way = trail()
    assert way.follow(Redirect("b", "b", 2)) == ""
    assert way.follow(Redirect("a", "A", 1)) == "it leads to a place visited before"
    assert way.follow(Redirect("B", "B", 2)) == "it leads to a place visited before"
    # another container on the machine is another place
    assert way.follow(Redirect("other", "b", 2)) == ""


def test_who_has_lasted_may_be_sent_back() -> None:
    way = trail()
    for _ in range(3 * MOST_HOPS):
        for host in "ba":
            assert way.follow(Redirect(host, host, 1)) == ""
            way.restart()
    assert way.follow(Redirect("a", "a", 1)) == "it leads to a place visited before"


def test_it_does_not_go_on_for_ever() -> None:
    way = trail()
    for hop in range(MOST_HOPS):
        assert way.follow(Redirect(f"name-{hop}", "b", 2)) == ""
    assert way.follow(Redirect("one more", "b", 2)) == (
        f"it follows {MOST_HOPS} redirects in a row, which is the limit"
    )
    way.restart()
    assert way.follow(Redirect("one more", "b", 2)) == ""


# On the wire.


async def send_away(place: Server, to: Redirect | None, condition: str = "connection") -> Open:
    """Let the router in, and close with a redirect; returns the router's open."""
    async with place.visited() as peer:
        _, opened = await meet(peer)
        await leave(peer, to, condition)
    return opened


async def count_until(running: Running, is_so: Callable[[Any], bool]) -> None:
    """Wait until the connector's counters are so."""
    (counters,) = running.node.hub.connection_counters
    while not is_so(counters):
        await trio.lowlevel.checkpoint()


@pytest.mark.spec("2.8.16-1", "2.8.16-2")
async def test_it_goes_there_at_once_and_calls_the_container_by_its_name(waits: Waits) -> None:
    with places(2) as (front, there), capture_logs() as logs:
        configuration = connecting(
            front.port,
            host=HERE,
            allow_redirect=True,
            redirect_hosts=(OTHER,),
            sasl_username="ada",
            sasl_password=Secret.parse(PASSWORD),
        )
        async with running_node(configuration) as running:
            assert (await send_away(front, there.at(OTHER, "container-2"))).hostname == HERE
            async with there.visited() as peer:
                init, opened = await meet(peer)
                # a host on the list is shown what the configured one is
                assert init.initial_response == f"\0ada\0{PASSWORD}".encode()
                assert init.hostname == opened.hostname == "container-2"
                await count_until(running, lambda counters: counters.opened == 2)
                (counters,) = running.node.hub.connection_counters
                assert (counters.followed, counters.failed) == (1, 0)
                assert waits.asked == []
                await leave(peer, None)
    (line,) = of(logs, "following a redirect")
    assert line == {
        "event": "following a redirect",
        "log_level": "info",
        "connector": "out",
        "connection": 1,
        "to": f"amqp://{OTHER}:{there.port} (hostname container-2)",
        "hops": 1,
    }
    # nothing went wrong
    assert {line["log_level"] for line in logs} <= {"info", "debug"}
    assert PASSWORD not in str(logs)


async def test_no_redirect_leads_a_password_into_the_open(waits: Waits) -> None:
    """From this host, where it may be sent in clear text, to another."""
    elsewhere = own_address()
    with places(1, elsewhere) as (front, there):
        configuration = connecting(
            front.port,
            host=HERE,
            allow_redirect=True,
            redirect_hosts=(elsewhere,),
            sasl_username="ada",
            sasl_password=Secret.parse(PASSWORD),
        )
        async with running_node(configuration):
            await send_away(front, there.at(elsewhere))
            async with there.visited() as peer:
                assert await peer.octets(8) == SASL_HEADER
                await peer.say(SASL_HEADER, SaslMechanisms((Symbol("PLAIN"),)))
                assert await peer.rest() == b""


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"allow_redirect": False}, "allowRedirect is off"),
        ({"allow_redirect": True}, f"{OTHER} is not among redirectHosts"),
        ({"allow_redirect": True, "redirect_hosts": ("10.0.0.1",)}, "is not among redirectHosts"),
    ],
)
@pytest.mark.parametrize("user", [None, "ada"])
async def test_who_is_not_allowed_for_hears_nothing_at_all(
    waits: Waits, fields: dict[str, Any], reason: str, user: str | None
) -> None:
    """No password, and no connection either, with or without a user."""
    password = None if user is None else Secret.parse(PASSWORD)
    with places(2) as (front, there), capture_logs() as logs:
        configuration = connecting(
            front.port, host=HERE, sasl_username=user, sasl_password=password, **fields
        )
        async with running_node(configuration) as running:
            for _ in range(3):
                await send_away(front, there.at(OTHER))
            await count_until(running, lambda counters: counters.failed >= 3)
            (counters,) = running.node.hub.connection_counters
            assert (counters.followed, counters.failed) == (0, 3)
            assert len(waits.asked) >= 2
            assert there.is_untouched()
    for line in of(logs, "redirect not followed"):
        assert line["log_level"] == "warning"
        assert reason in line["reason"]
        assert line["to"] == f"amqp://{OTHER}:{there.port} (hostname there)"
    assert len(of(logs, "redirect not followed")) == 3


async def test_its_own_host_may_send_it_to_another_port(waits: Waits) -> None:
    with places(2) as (front, there):
        async with running_node(connecting(front.port, host=HERE, allow_redirect=True)):
            await send_away(front, there.at())
            async with there.visited() as peer:
                assert await open_as_server(peer) == ""
    assert waits.asked == []


async def test_a_circle_is_left_at_the_place_that_is_configured(waits: Waits) -> None:
    with places(2) as (front, there), capture_logs() as logs:
        async with running_node(connecting(front.port, host=HERE, allow_redirect=True)):
            for number in range(3):
                await send_away(front, there.at())
                assert len(waits.asked) == number
                await send_away(there, front.at(name=HERE))
            async with front.visited():
                assert len(waits.asked) == 3
    reasons = [line["reason"] for line in of(logs, "redirect not followed")]
    assert reasons == ["it leads to a place visited before"] * 3
    # each time it waits longer
    assert waits.asked[2] > FIRST_DELAY_S


async def test_too_many_in_a_row_are_too_many(waits: Waits) -> None:
    with places(2) as (front, there), capture_logs() as logs:
        async with running_node(connecting(front.port, host=HERE, allow_redirect=True)):
            await send_away(front, there.at(name="0"))
            for hop in range(1, MOST_HOPS + 1):
                opened = await send_away(there, there.at(name=str(hop)))
                assert opened.hostname == str(hop - 1)
                assert waits.asked == []
            async with front.visited():
                assert len(waits.asked) == 1
                assert there.is_untouched()
    assert [line["hops"] for line in of(logs, "following a redirect")] == [1, 2, 3, 4, 5]
    (line,) = of(logs, "redirect not followed")
    assert line["reason"] == (f"it follows {MOST_HOPS} redirects in a row, which is the limit")


@pytest.mark.parametrize("how", ["lost", "closed", "refused"])
async def test_after_a_failure_there_it_begins_where_it_is_configured_to(
    waits: Waits, how: str
) -> None:
    with places(2) as (front, there), capture_logs() as logs:
        if how == "refused":
            there.listener.close()
        async with running_node(connecting(front.port, host=HERE, allow_redirect=True)):
            for number in range(4):
                await send_away(front, there.at())
                assert len(waits.asked) == number
                if how != "refused":
                    async with there.visited() as peer:
                        await meet(peer)
                        if how == "closed":
                            await leave(peer, None)
            async with front.visited():
                assert len(waits.asked) == 4
    assert waits.asked[3] > FIRST_DELAY_S * 2
    peers = {line["peer"] for line in of(logs, "connection failed")}
    assert peers == ({f"{HERE}:{there.port}"} if how == "refused" else set())


async def test_a_place_where_it_lasted_counts_as_a_success(
    waits: Waits, mock_clock: MockClock
) -> None:
    with places(2) as (front, there):
        async with running_node(connecting(front.port, host=HERE, allow_redirect=True)):
            for _ in range(2):
                await send_away(front, there.at())
                async with there.visited() as peer:
                    await meet(peer)
                    mock_clock.jump(LASTING_CONNECTION_S)
                    await leave(peer, None)
            async with front.visited():
                assert len(waits.asked) == 2
    assert all(wait <= FIRST_DELAY_S for wait in waits.asked)


async def test_who_has_lasted_may_be_sent_back_at_once(waits: Waits, mock_clock: MockClock) -> None:
    with places(2) as (one, other), capture_logs() as logs:
        async with running_node(connecting(one.port, host=HERE, allow_redirect=True)):
            for place, following in ((one, other), (other, one)):
                async with place.visited() as peer:
                    await meet(peer)
                    mock_clock.jump(LASTING_CONNECTION_S)
                    await leave(peer, following.at())
            async with one.visited():
                assert waits.asked == []
    assert of(logs, "redirect not followed") == []


async def test_a_redirect_that_names_no_host_is_said(waits: Waits) -> None:
    with places(1) as (front,), capture_logs() as logs:
        async with running_node(connecting(front.port, host=HERE, allow_redirect=True)):
            await send_away(front, Redirect(port=5672))
            await send_away(front, None)
    (line,) = of(logs, "redirect not followed")
    assert (line["reason"], line["to"]) == ("it names no host", "an unnamed place")


async def test_what_redirects_links_moves_no_connection(waits: Waits) -> None:
    with places(2) as (front, there), capture_logs() as logs:
        async with running_node(connecting(front.port, host=HERE, allow_redirect=True)):
            await send_away(front, there.at(), "link")
            await send_away(front, None)
            assert there.is_untouched()
    assert of(logs, "redirect not followed") == of(logs, "following a redirect") == []


@pytest.mark.spec("2.8.18-1")
async def test_a_link_s_redirect_names_the_container_that_it_leads_to(waits: Waits) -> None:
    with places(2) as (front, there):
        configuration = attrs.evolve(
            connecting(front.port, host=HERE, allow_redirect=True, role="route-container"),
            auto_links=(AutoLinkSettings(address="q", direction="out", connection="out"),),
        )
        async with running_node(configuration), front.visited() as peer:
            await meet(peer)
            await peer.hear(Begin)
            await peer.say(
                Begin(remote_channel=0, next_outgoing_id=0, incoming_window=9, outgoing_window=9)
            )
            await peer.attached(target=None)
            to = there.at(HERE, "container-2").info()
            error = Error(Symbol("amqp:link:redirect"), "not here", to)
            await peer.say(Detach(0, closed=True, error=error))
            async with there.visited() as other:
                init, opened = await meet(other)
                assert init.hostname == opened.hostname == "container-2"
