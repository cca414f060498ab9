"""Views of links, addresses and counters agree with the activity of clients."""

from __future__ import annotations

import pytest
from proton import Message

from router.core.model.address import BALANCED, FALLBACK, Address
from router.management import views
from router.management.views import address_key

from support.blocking_proton import Peer, threaded
from support.entities import view_of
from support.loopback import dialled, running_node


@pytest.mark.parametrize(
    ("name", "phase", "key"),
    [
        ("q", 0, "M0q"),
        ("$management", 0, "M0$management"),
        ("_local/q", 0, "Lq"),
        ("_topo/0/solo/temp.1", 0, "Ltemp.1"),
        ("_topo/0/other/temp.1", 0, "Rother/temp.1"),
        ("_topo/q", 0, "M0_topo/q"),
        ("q", 1, "M1q"),
        ("q", 9, "M9q"),
        ("q", FALLBACK, "MFq"),
    ],
)
def test_keys_begin_with_the_letter_of_the_class(name: str, phase: int, key: str) -> None:
    assert address_key(Address(name, BALANCED, phase=phase), "solo") == key


async def test_links_of_clients_are_seen_and_those_of_the_router_are_not() -> None:
    async with running_node() as running, Peer(running.address[1]) as peer:
        assert list(view_of(running).links()) == []
        receiver = await peer.receiver("q", credit=3)
        await peer.sender("q")
        await peer.sender(None)
        out, into, anonymous = view_of(running).links()
        (connection,) = view_of(running).connections()
        assert not out.is_incoming
        assert (out.address_key, out.undelivered) == ("M0q", 0)
        # Proton gives what was asked for, and as much again
        assert out.capacity in (3, 6)
        assert into.is_incoming
        assert (into.capacity, into.address_key, into.undelivered) == (1000, "M0q", 0)
        assert (anonymous.address_key, anonymous.undelivered) == (None, 0)
        assert len({each.identity for each in (out, into, anonymous)}) == 3
        assert {each.identity.split(".")[0] for each in (out, into)} == {connection.identity}
        assert connection.role == "normal"
        await threaded(receiver.close)


async def test_what_is_counted_is_added_up_once() -> None:
    async with running_node() as running, Peer(running.address[1]) as peer:
        receiver = await peer.receiver("q")
        sender = await peer.sender("q", settled=True)
        router = view_of(running)
        (before,) = router.with_totals()
        assert before is not None
        assert before.totals is before.totals
        await threaded(sender.send, Message(body="one"))
        await threaded(receiver.receive)
        assert (before.totals.counters.ingress, router.totals.counters.ingress) == (0, 1)


async def test_time_without_credit_is_reckoned_from_when_it_ended() -> None:
    async with running_node() as running, dialled(running.address) as peer:
        await peer.begin()
        await peer.attach_receiver("q", credit=0)
        router = view_of(running)
        (link,) = router.links()
        turn = running.node.hub.turn
        link.link.no_credit_since = 1000.0
        turn.now = 1009.5
        assert (link.zero_credit_s, router.totals.links_blocked) == (9, 0)
        turn.now = 1010.5
        assert (link.zero_credit_s, router.totals.links_blocked) == (10, 1)
        link.link.credit = 1
        assert (link.zero_credit_s, router.totals.links_blocked) == (0, 0)


async def test_links_tell_how_much_has_come_and_gone_by_them() -> None:
    async with running_node() as running, Peer(running.address[1]) as peer:
        await peer.receiver("q")
        await peer.sender("q")
        out, into = view_of(running).links()
        assert (out.ingress_histogram, into.ingress_histogram) == ([0], None)
        assert out.settle_rate == into.settle_rate == 0
        out.link.stuck, into.link.stuck = 2, 3
        assert view_of(running).totals.deliveries_stuck == 5


async def test_the_router_is_no_subscriber_of_its_own_node() -> None:
    async with running_node() as running, Peer(running.address[1]) as peer:
        await peer.receiver("q")
        seen = {each.key: each for each in view_of(running).addresses() if each is not None}
        assert (seen["M0$management"].in_process, seen["M0$management"].subscribers) == (1, 0)
        assert (seen["M0q"].in_process, seen["M0q"].subscribers) == (0, 1)
        assert seen["M0q"].distribution == "balanced"
        # nor is a further link to a place that has one
        (consumer,) = seen["M0q"].address.consumers
        consumer.lane_mask = 1 << 20
        seen = {each.key: each for each in view_of(running).addresses() if each is not None}
        assert seen["M0q"].subscribers == 0


async def test_what_waits_is_told_with_the_link_it_came_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with (
        running_node() as running,
        dialled(running.address) as sender,
        dialled(running.address) as receiver,
    ):
        await receiver.begin()
        await receiver.attach_receiver("q", credit=1)
        await sender.begin()
        await sender.attach_sender("q")
        # credit that was given stays given when the receiver goes back on its own
        await receiver.grant(0, handle=1)
        (out,) = (each for each in view_of(running).links() if not each.is_incoming)
        await running.until(lambda: out.capacity == 0)
        await sender.transfer(0)
        address = out.link.owner.address
        await running.until(lambda: len(address.waiting))
        (into,) = (each for each in view_of(running).links() if each.is_incoming)
        assert (into.undelivered, out.undelivered) == (1, 0)
        monkeypatch.setattr(views, "MAX_SEARCHED", 0)
        told = into.undelivered
        assert told is None
