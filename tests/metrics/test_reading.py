"""Metrics of a real router agree with what Proton's clients have done."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import trio
from proton import Delivery, Message
from proton.utils import LinkDetached

from router.amqp.constants import TerminusExpiryPolicy
from router.amqp.framing import AMQP_HEADER, encode_frame
from router.amqp.performatives import Attach, Detach, Open, Source
from router.config.connectors import ConnectorSettings
from router.config.model import AddressSettings
from router.config.redirects import RedirectSettings
from router.metrics import reading
from router.metrics.address_labels import AddressLabels
from router.metrics.connection_labels import ConnectionLabels
from router.metrics.reading import LINKS_AT_ONCE, read_in_steps

from support.blocking_proton import Peer, send, settle, threaded
from support.loopback import dialled
from support.scraping import RunningNode, Scrape, running_node
from support.transcripts import attach_receiver

MULTICAST = (AddressSettings(prefix="multicast", distribution="multicast"),)
TOTAL = "trioute_deliveries_outcome_total"
ISSUED = "trioute_redirects_issued_total"
FOLLOWED = "trioute_redirects_followed_total"
BY_ADDRESS = "trioute_address_deliveries_outcome_total"


def outcomes(scraped: Scrape) -> dict[str, float]:
    """Return the outcomes that were counted at all."""
    return {name: count for name, count in scraped.by("outcome", TOTAL).items() if count}


@asynccontextmanager
async def peers(running: RunningNode, count: int) -> AsyncIterator[list[Peer]]:
    """Open a connection for each of the calls that block at the same time."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(Peer(running.amqp_port)) for _ in range(count)]


async def test_every_outcome_and_octet_is_counted() -> None:
    said = ["accepted"] * 5 + ["rejected"] * 2 + ["released", "modified"]
    messages = [Message(id=n, body="x" * n) for n in range(len(said))]
    async with running_node() as running, peers(running, 2) as (one, other):
        async with trio.open_nursery() as nursery:
            receiver = await one.receiver("orders")
            nursery.start_soon(settle, receiver, said)
            sender = await other.sender("orders")
            for message in messages:
                await send(sender, message)
        scraped = await running.scrape()
    assert outcomes(scraped) == {"accepted": 5, "rejected": 2, "released": 1, "modified": 1}
    octets = sum(len(message.encode()) for message in messages)
    for direction in ("ingress", "egress"):
        assert scraped(f"trioute_deliveries_{direction}_total") == 9
        assert scraped(f"trioute_address_deliveries_{direction}_total", address="orders") == 9
        assert scraped(f"trioute_address_deliveries_{direction}_total", address="other") == 0
        assert scraped(f"trioute_{direction}_bytes_total") == octets
    assert scraped(BY_ADDRESS, address="orders", outcome="accepted") == 5
    assert scraped("trioute_deliveries_presettled_total") == 0


async def test_settled_messages_have_no_outcome() -> None:
    async with running_node() as running, Peer(running.amqp_port) as peer:
        receiver = await peer.receiver("news")
        sender = await peer.sender("news", settled=True)
        for _ in range(3):
            await send(sender, Message(body="x"))
            await threaded(receiver.receive, timeout=20)
        scraped = await running.scrape()
    assert scraped("trioute_deliveries_presettled_total") == 3
    assert scraped("trioute_deliveries_dropped_presettled_total") == 0
    assert outcomes(scraped) == {}


async def test_a_multicast_goes_out_to_each() -> None:
    async with running_node(addresses=MULTICAST) as running, Peer(running.amqp_port) as peer:
        receivers = [await peer.receiver("multicast/news", name=name) for name in "abc"]
        sender = await peer.sender("multicast/news", settled=True)
        await send(sender, Message(body="x"))
        for receiver in receivers:
            await threaded(receiver.receive, timeout=20)
        scraped = await running.scrape()
    assert scraped("trioute_deliveries_ingress_total") == 1
    assert scraped("trioute_deliveries_egress_total") == 3
    assert scraped("trioute_address_consumers", address="multicast/news") == 3


@pytest.mark.parametrize("address", ["slow", "multicast/slow"])
async def test_what_waits_and_what_holds_it_up_is_shown(address: str) -> None:
    async with (
        running_node(addresses=MULTICAST) as running,
        peers(running, 3) as (one, other, third),
    ):
        async with trio.open_nursery() as nursery:
            # credit for one: each sender may send one ahead of it, so the second message waits
            receiver = await one.receiver(address, credit=1)
            senders = [await other.sender(address), await third.sender(address)]
            for sender in senders:
                nursery.start_soon(send, sender, Message(body="x" * 1000))
            held = await running.scrape_until(lambda s: s("trioute_deliveries_waiting") == 1)
            nursery.start_soon(settle, receiver, ["accepted"] * 2)
        after = await running.scrape_until(lambda s: outcomes(s) == {"accepted": 2})
    assert held("trioute_address_deliveries_waiting", address=address) == 1
    assert 1000 < held("trioute_held_bytes") < held("trioute_held_limit_bytes")
    assert held("trioute_deliveries_unsettled", direction="in") == 2
    assert held("trioute_deliveries_unsettled", direction="out") == 1
    # both senders have used up what they were granted, and the receiver has given nothing more
    assert held("trioute_links_blocked", direction="in") == 2
    assert held("trioute_links_blocked", direction="out") == 1
    for name in ("trioute_deliveries_waiting", "trioute_held_bytes"):
        assert after(name) == 0
    assert after("trioute_deliveries_unsettled", direction="in") == 0


async def test_a_message_whose_ttl_ends_is_counted() -> None:
    async with running_node() as running, peers(running, 3) as (one, other, third):
        receiver = await one.receiver("slow", credit=1)
        sender, late_sender = await other.sender("slow"), await third.sender("slow")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send, sender, Message(body="x"))
            await running.scrape_until(lambda s: s("trioute_deliveries_egress_total") == 1)
            late = Message(body="x", ttl=0.01)
            assert await send(late_sender, late) == Delivery.REJECTED
            nursery.start_soon(settle, receiver, ["accepted"])
        scraped = await running.scrape()
    assert outcomes(scraped) == {"accepted": 1, "expired": 1}
    assert scraped(BY_ADDRESS, address="slow", outcome="expired") == 1


async def test_a_message_to_nobody_is_counted_among_other() -> None:
    async with running_node() as running, Peer(running.amqp_port) as peer:
        sender = await peer.sender(None)
        assert await send(sender, Message(address="nobody", body="x")) == Delivery.RELEASED
        scraped = await running.scrape()
    assert outcomes(scraped) == {"no_destination": 1}
    assert scraped(BY_ADDRESS, address="other", outcome="no_destination") == 1
    assert scraped("trioute_links", direction="in") == 1
    assert scraped("trioute_address_producers", address="other") == 0


@pytest.mark.parametrize("to", [None, "unavailable/x"])
async def test_a_message_without_a_destination_is_counted_among_other(to: str | None) -> None:
    none = AddressSettings(prefix="unavailable", distribution="unavailable")
    message = Message(address=to, body="x")
    async with running_node(addresses=(none,)) as running, Peer(running.amqp_port) as peer:
        sender = await peer.sender(None)
        assert await send(sender, message) == Delivery.REJECTED
        scraped = await running.scrape()
    assert outcomes(scraped) == {"no_destination": 1}
    assert scraped("trioute_deliveries_ingress_total") == 1
    assert scraped("trioute_ingress_bytes_total") == len(message.encode())


async def test_redirects_are_counted_by_what_was_redirected() -> None:
    redirects = (
        RedirectSettings(prefix="moved", to_network_host="10.0.0.2"),
        RedirectSettings(hostname="moved.example.org", to_network_host="10.0.0.2"),
    )
    own = {"endpoint": "amqp", "direction": "in", "role": "normal"}
    async with (
        running_node(redirects=redirects) as running,
        Peer(running.amqp_port) as peer,
    ):
        before = await running.scrape()
        for _ in range(2):
            with pytest.raises(LinkDetached):
                await peer.receiver("moved/a")
        with pytest.raises(LinkDetached):
            await peer.sender("moved")
        relay = await peer.sender(None)
        assert await send(relay, Message(address="moved/b", body="x")) == Delivery.REJECTED
        async with await trio.open_tcp_stream("127.0.0.1", running.amqp_port) as stream:
            opened = encode_frame(0, Open("peer", hostname="moved.example.org"))
            await stream.send_all(AMQP_HEADER + opened)
            after = await running.scrape_until(lambda s: s(ISSUED, kind="connection") == 1)
    assert before.by("kind", ISSUED) == {"connection": 0, "link": 0, "message": 0}
    assert after.by("kind", ISSUED) == {"connection": 1, "link": 3, "message": 1}
    assert after("trioute_connections_failed_total", **own) == 0
    assert after(FOLLOWED, **own) == 0


async def test_redirects_that_a_connector_has_followed_are_counted() -> None:
    """From a host's name to an address that goes nowhere, over and over."""
    moved = RedirectSettings(hostname="localhost", to_network_host="127.0.0.1", to_port=1)
    async with running_node(redirects=(moved,)) as front:
        connector = ConnectorSettings(
            host="localhost",
            port=front.amqp_port,
            name="out",
            allow_redirect=True,
            redirect_hosts=("127.0.0.1",),
        )
        async with running_node(connectors=(connector,)) as running:
            out = {"endpoint": "out", "direction": "out", "role": "normal"}
            failed = "trioute_connections_failed_total"
            scraped = await running.scrape_until(lambda s: s(failed, **out) >= 1)
        issued = await front.scrape()
    assert scraped(FOLLOWED, **out) >= 1
    assert issued(ISSUED, kind="connection") >= scraped(FOLLOWED, **out)


async def test_connections_sessions_and_links_are_counted_while_they_last() -> None:
    own = {"endpoint": "amqp", "direction": "in", "role": "normal"}
    async with running_node() as running:
        async with Peer(running.amqp_port) as peer:
            await peer.receiver("orders")
            await peer.sender("orders")
            await peer.receiver(None, dynamic=True)
            during = await running.scrape()
        after = await running.scrape_until(lambda s: s("trioute_connections", **own) == 0)
        # a peer that is gone without a close
        (await trio.open_tcp_stream("127.0.0.1", running.amqp_port)).socket.close()
        await running.scrape_until(lambda s: s("trioute_connections_failed_total", **own) == 1)
    assert during("trioute_connections", **own) == 1
    assert during("trioute_connections_opened_total", **own) == 1
    assert during("trioute_sessions") >= 1
    assert during.by("direction", "trioute_links") == {"in": 1, "out": 2}
    assert during.by("kind", "trioute_addresses") == {"named": 1, "dynamic": 1}
    assert during.by("address", "trioute_address_consumers") == {"orders": 1, "other": 1}
    assert during.by("address", "trioute_address_producers") == {"orders": 1, "other": 0}
    assert after("trioute_connections_opened_total", **own) == 1
    assert after("trioute_connections_failed_total", **own) == 0
    assert after("trioute_sessions") == 0
    assert after.by("direction", "trioute_links") == {"in": 0, "out": 0}
    assert after.by("kind", "trioute_addresses") == {"named": 0, "dynamic": 0}


async def deliver(running: RunningNode, address: str, count: int) -> None:
    """Send to an address that is in use only meanwhile."""
    async with Peer(running.amqp_port) as peer:
        receiver = await peer.receiver(address)
        sender = await peer.sender(address, settled=True)
        for _ in range(count):
            await send(sender, Message(body="x"))
            await threaded(receiver.receive, timeout=20)
        name = "trioute_address_deliveries_ingress_total"
        before = (await running.scrape()).by("address", name)
        assert sum(before.values()) >= count


async def test_totals_outlive_addresses() -> None:
    name = "trioute_address_deliveries_ingress_total"
    async with running_node(address_label_limit=2) as running:
        for count, address in enumerate(["one", "two", "three", "one", "four", "two"], 1):
            await deliver(running, address, count)
        scraped = await running.scrape()
    assert scraped.by("address", name) == {"one": 1 + 4, "two": 2 + 6, "other": 3 + 5}
    assert scraped("trioute_deliveries_ingress_total") == 21


async def test_without_labels_there_is_nothing_by_address() -> None:
    async with running_node(address_label_limit=0) as running, Peer(running.amqp_port) as peer:
        await peer.receiver("orders")
        scraped = await running.scrape()
    assert scraped("trioute_links", direction="out") == 1
    assert not [name for name in scraped.families if name.startswith("trioute_address_")]


async def test_stolen_links_and_refusals_are_counted() -> None:
    async with running_node() as running, dialled(("127.0.0.1", running.amqp_port)) as peer:
        await peer.begin()
        # links of one name, one after the other
        for handle in range(3):
            await peer.say(attach_receiver(handle, name="same"))
            await peer.hear_until(Attach)
        running.node.hub.forwarder.link_names.stealing = "never"
        await peer.say(attach_receiver(3, name="same"))
        await peer.hear_until(Attach)
        scraped = await running.scrape()
    assert scraped("trioute_links_stolen_total") == 2
    assert scraped("trioute_link_stealing_refused_total") == 1


async def test_suspended_and_resumed_links_are_counted() -> None:
    lasts = Source(address="q", expiry_policy=TerminusExpiryPolicy.LINK_DETACH, timeout=60)
    async with running_node() as running, dialled(("127.0.0.1", running.amqp_port)) as peer:
        await peer.begin()
        for handle in range(2):
            await peer.say(attach_receiver(handle, name=f"r{handle}", source=lasts))
            await peer.hear_until(Attach)
            await peer.say(Detach(handle, closed=False))
            await peer.hear_until(Detach)
        await peer.say(attach_receiver(0, name="r0", source=lasts))
        await peer.hear_until(Attach)
        scraped = await running.scrape()
    assert scraped("trioute_links_suspended") == 1
    assert scraped("trioute_links_resumed_total") == 1


async def test_few_links_of_a_connection_are_read_in_each_step() -> None:
    links = 2 * LINKS_AT_ONCE
    async with running_node() as running, dialled(("127.0.0.1", running.amqp_port)) as peer:
        await peer.begin()
        for number in range(links):
            await peer.attach_receiver("q", handle=number)
        hub = running.node.hub
        labels, none = AddressLabels(hub.table, 1), ConnectionLabels(hub, 0)
        assert len(list(read_in_steps(hub, labels, none, 0.0))) == 2


async def test_few_receivers_of_addresses_are_looked_at_in_each_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "EXAMINED_AT_ONCE", 100)
    async with running_node() as running, dialled(("127.0.0.1", running.amqp_port)) as peer:
        await peer.begin()
        for number in range(200):
            await peer.attach_receiver(f"q{number % 10}", handle=number)
        hub = running.node.hub
        labels, none = AddressLabels(hub.table, 10), ConnectionLabels(hub, 0)
        # 20 receivers of each, and an address counts as 16 of them: three addresses in each step
        assert len(list(read_in_steps(hub, labels, none, 0.0))) == 3
