"""Settings of a running router that change: each has its effect, and none is forgotten."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import pytest

from router.amqp.constants import Condition
from router.amqp.performatives import Attach, Detach, Flow
from router.config.auto_links import AutoLinkSettings
from router.config.differences import RESTART_ONLY
from router.config.link_routes import LinkRouteSettings
from router.config.listeners import ListenerSettings
from router.config.log_settings import LogSettings
from router.config.model import ENTITIES, AddressSettings, Configuration, MetricsSettings
from router.config.redirects import RedirectSettings
from router.config.router_settings import RouterSettings
from router.core.model.address import BALANCED, MULTICAST, UNAVAILABLE
from router.settings import LIVE

from support.loopback import Running, dialled, listening, running_node
from support.transcripts import attach_receiver, attach_sender

SINGLE = [entity for entity in ENTITIES if not entity.repeated]


@pytest.mark.parametrize("entity", SINGLE, ids=lambda entity: entity.name)
def test_each_attribute_changes_at_once_or_it_is_said_why_not(entity: Any) -> None:
    for field in attrs.fields(entity.settings):
        assert ((entity.name, field.name) in LIVE) != ((entity.name, field.name) in RESTART_ONLY)


def test_nothing_is_said_of_what_there_is_not() -> None:
    fields = {
        (entity.name, field.name) for entity in SINGLE for field in attrs.fields(entity.settings)
    }
    assert set(itertools.chain(LIVE, RESTART_ONLY)) <= fields


async def change(running: Running, **fields: Any) -> None:
    await running.node.apply(attrs.evolve(running.node.configuration, **fields))


async def test_addresses_in_use_are_treated_otherwise() -> None:
    async with running_node() as running, dialled(running.address) as peer:
        await peer.begin()
        await peer.attach_receiver("q", credit=1)
        address = running.node.table.in_use("q")
        assert address is not None
        await change(running, addresses=(AddressSettings(prefix="q", distribution="multicast"),))
        assert address.treatment == MULTICAST
        await change(running, addresses=())
        assert address.treatment == BALANCED
        await change(running, router=RouterSettings(default_distribution="multicast"))
        assert address.treatment == MULTICAST
        await peer.attach_sender("q")
        await peer.transfer(0, b"one")
        assert (await peer.message())[1] == b"one"


async def test_a_stuck_receiver_is_dropped_once_that_is_wanted() -> None:
    waits = AddressSettings(prefix="q", distribution="multicast")
    drops = attrs.evolve(waits, stuck_receiver="drop", stuck_receiver_timeout_seconds=0.1)
    configuration = Configuration(listeners=(ListenerSettings(port=0),), addresses=(waits,))
    async with (
        running_node(configuration) as running,
        dialled(running.address) as stuck,
        dialled(running.address) as other,
    ):
        for peer, credit in ((stuck, 0), (other, 10)):
            await peer.begin()
            await peer.attach_receiver("q", credit=credit)
        await other.say(attach_sender(0, "q"))
        await change(running, addresses=(drops,))
        detach = await stuck.hear_until(Detach)
        assert detach.error is not None
        assert detach.error.condition == Condition.RESOURCE_LIMIT_EXCEEDED
        await other.hear_until(Flow)


async def test_an_address_that_has_to_wait_turns_when_its_queue_is_empty() -> None:
    async with running_node() as running, dialled(running.address) as peer:
        await peer.begin()
        await peer.attach_receiver("q", credit=1)
        await peer.attach_sender("q")
        await peer.grant(0, handle=1)
        await peer.transfer(0, b"one")
        address = running.node.table.in_use("q")
        assert address is not None
        await running.until(lambda: address.waiting.count)
        await change(running, router=RouterSettings(default_distribution="multicast"))
        assert address.treatment == BALANCED
        await peer.grant(5, handle=1)
        assert (await peer.message())[1] == b"one"
        await running.until(lambda: address.treatment == MULTICAST)
        assert running.node.treating.pending == {}


async def test_redirects_come_and_go_and_their_counts_stay() -> None:
    redirect = RedirectSettings(prefix="q", to_network_host="elsewhere")
    async with running_node() as running, dialled(running.address) as peer:
        await peer.begin()
        for handle, redirects in enumerate([(redirect,), (), (redirect,)]):
            await change(running, redirects=redirects)
            await peer.say(attach_receiver(handle, "q"))
            assert ((await peer.hear_until(Attach)).source is None) == bool(redirects)
        assert running.node.table.redirects.issued["link"] == 2


async def test_link_routes_come_and_go_and_those_that_stay_are_the_same() -> None:
    one, other = (LinkRouteSettings(prefix=p, direction="in", container_id="c") for p in "ab")
    async with running_node() as running:
        routing = running.node.control.link_routes
        await change(running, link_routes=(one, other))
        first, second = routing.configured(one.name), routing.configured(other.name)
        again = attrs.evolve(other, add_external_prefix="x.")
        await change(running, link_routes=(again, one))
        assert routing.configured(one.name) is first
        assert routing.configured(other.name) not in (None, second)
        await change(running, link_routes=())
        assert len(running.node.hub.forwarder.link_routes) == 0


async def test_auto_links_come_and_go_and_follow_their_addresses() -> None:
    auto_link = AutoLinkSettings(address="q", direction="in", container_id="c")
    async with running_node() as running:
        auto_links = running.node.control.auto_links
        await change(running, auto_links=(auto_link,))
        assert list(auto_links.rules) == [auto_link.name]
        assert running.node.table.treatment("q") == BALANCED
        closed = RouterSettings(default_distribution="unavailable")
        await change(running, auto_links=(auto_link,), router=closed)
        assert running.node.table.treatment("q") == BALANCED
        await change(running, auto_links=(), router=closed)
        assert auto_links.rules == {}
        assert running.node.table.treatment("q") == UNAVAILABLE


async def test_numbers_change_where_they_are_kept() -> None:
    async with running_node() as running:
        forwarder = running.node.hub.forwarder
        router = RouterSettings(
            memory_limit_bytes=2**21,
            terminus_timeout_limit_seconds=5,
            link_stealing="any",
            honour_absolute_expiry_time=True,
            allow_resumable_link_route=False,
            unsupported_filters="ignore",
            unroutable_presettled="detach",
            durable_subscriptions="ignore",
            reject_unconfirmed_durable=True,
        )
        await change(running, router=router)
        assert forwarder.backlog.limit_bytes == 2**21
        ledger = running.node.hub.turn.ledger
        assert (ledger.limit_bytes, ledger.connection_limit_bytes) == (2**26, 2**25)
        router = attrs.evolve(
            router, state_limit_bytes=5_000_000, connection_state_limit_bytes=1_000_000
        )
        await change(running, router=router)
        assert (ledger.limit_bytes, ledger.connection_limit_bytes) == (5_000_000, 1_000_000)
        assert forwarder.redelivery.limit_bytes == forwarder.intake.limit_bytes == 2**18
        assert forwarder.suspended.limit_s == 5
        assert not forwarder.link_routes.allows_resumable
        assert not forwarder.sources.refuses_filters
        assert not forwarder.sources.refuses_durable
        assert forwarder.detaches_unroutable
        assert forwarder.sources.rejects_unconfirmed
        assert forwarder.link_names.stealing == "any"
        assert forwarder.backlog.wall_ahead_s > 0
        await change(running, router=RouterSettings())
        assert forwarder.backlog.wall_ahead_s == 0


async def test_links_that_are_there_have_names_once_names_count() -> None:
    configuration = attrs.evolve(listening(), router=RouterSettings(link_stealing="off"))
    async with running_node(configuration) as running, dialled(running.address) as peer:
        await peer.begin()
        await peer.attach_receiver("q")
        names = running.node.hub.forwarder.link_names
        assert len(names) == 0
        await change(running, router=RouterSettings(link_stealing="any"))
        assert len(names) == 1
        await change(running, router=RouterSettings(link_stealing="off"))
        assert len(names) == 0


async def test_what_is_written_to_the_log_changes() -> None:
    async with running_node() as running:
        modules = running.node.journal.modules
        await change(running, log=LogSettings(levels={"AGENT": "none"}))
        before = modules["SERVER"].mask
        assert modules["AGENT"].mask == 0 != before
        await change(running, log=LogSettings(level="error"))
        assert modules["AGENT"].mask == modules["SERVER"].mask != before


async def test_labels_of_addresses_are_limited_anew() -> None:
    configuration = Configuration(
        listeners=(ListenerSettings(port=0),), metrics=MetricsSettings(address_label_limit=0)
    )
    async with running_node(configuration) as running, dialled(running.address) as peer:
        await peer.begin()
        await peer.attach_receiver("q")
        assert b'address="q"' not in (await running.node.exposition.render(""))[1]
        await change(running, metrics=MetricsSettings(address_label_limit=5))
        assert b'address="q"' in (await running.node.exposition.render(""))[1]
        await change(running, metrics=MetricsSettings(address_label_limit=0))
        assert b'address="q"' not in (await running.node.exposition.render(""))[1]


async def test_the_times_of_the_routing_protocol_change() -> None:
    configuration = Configuration(router=RouterSettings(id="r", mode="interior"))
    async with running_node(configuration) as running:
        router = attrs.evolve(
            configuration.router,
            hello_interval_seconds=2.0,
            hello_max_age_seconds=9.0,
            ra_interval_seconds=12.0,
        )
        await change(running, router=router)
        network = running.node.control.network
        assert network is not None
        assert network.protocol is not None
        for timing in (network.timing, network.protocol.timing, network.protocol.links.timing):
            assert (timing.hello_interval_s, timing.hello_max_age_s) == (2, 9)
            assert timing.ra_interval_s == 12
