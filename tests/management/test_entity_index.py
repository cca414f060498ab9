"""A lookup by name or identity finds the same entities as a search, without one."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from router.config.auto_links import AutoLinkSettings
from router.config.exchanges import BindingSettings, ExchangeSettings
from router.config.link_routes import LinkRouteSettings
from router.config.listeners import ListenerSettings
from router.config.model import AddressSettings, Configuration
from router.config.redirects import RedirectSettings
from router.config.validate import find_mistakes
from router.core.model.address import FALLBACK, MANAGEMENT_WRITERS
from router.core.routers.routing_state import Interest
from router.management.entities.address import ADDRESS
from router.management.entities.configured import (
    CONFIGURED_ADDRESS,
    CONFIGURED_BINDING,
    CONFIGURED_EXCHANGE,
    LISTENER,
)
from router.management.entities.link_routes import LINK_ROUTE
from router.management.entity_index import index_of, look_up, update_indexes as edit_indexes
from router.management.entity_types import ENTITY_TYPES
from router.management.names import long_name
from router.management.schema import settings_of
from router.management.views import RouterView
from router.node import Node

from support.blocking_proton import Peer
from support.edits import EXCHANGES, STEP, edited
from support.entities import view_of
from support.examples import examples
from support.loopback import running_node

CONFIGURATION = Configuration(
    listeners=(ListenerSettings(port=0),),
    addresses=(AddressSettings(prefix="a"), AddressSettings(pattern="b.*", name="named")),
    redirects=(RedirectSettings(prefix="elsewhere", to_network_host="192.0.2.1"),),
    auto_links=(AutoLinkSettings(address="queue", direction="in", container_id="c"),),
    exchanges=(ExchangeSettings(name="e", address="e", alternate_address="rest"),),
    bindings=(BindingSettings(exchange_name="e", binding_key="a", next_hop_address="q"),),
    link_routes=(LinkRouteSettings(prefix="far", direction="in", container_id="c"),),
)
LOOKED_UP = (
    *(f"router.config.{kind}" for kind in ("address", "redirect", "linkRoute", "autoLink")),
    *(f"router.config.{kind}" for kind in ("exchange", "binding")),
    *("connection", "router.link", "router.address", "router.linkRoute"),
)


def told(entity_type: Any, entity: Any) -> dict[str, Any]:
    return {each.name: each.read(entity) for each in entity_type.attributes}


def enter_addresses(view: RouterView) -> None:
    """Have an address of each class."""
    core: Any = view.observed.forwarder
    for name in ("_local/own", f"_topo/0/{view.id}/here", "_topo/0/other/there"):
        core.table.enter(name)
    for phase in (3, FALLBACK, MANAGEMENT_WRITERS):
        core.table.enter("q", phase)
    for key in ("M0far", "M0q", "M4q"):
        core.reach.set_interest("other", key, Interest(1))


async def test_each_entity_is_looked_up_by_its_name_and_its_identity() -> None:
    async with running_node(CONFIGURATION) as running, Peer(running.address[1]) as peer:
        await peer.receiver("q")
        await peer.sender("q")
        view = view_of(running)
        enter_addresses(view)
        seen = set()
        for entity_type, entities in ENTITY_TYPES.values():
            for entity in [each for each in entities(view) if each is not None]:
                for wanted in ("identity", "name"):
                    attribute = entity_type.attribute(wanted)
                    assert attribute is not None
                    key = str(attribute.read(entity))
                    found = await look_up(view, entity_type, wanted, key)
                    if found is None:
                        continue
                    there = [each for each in found if each is not None]
                    same = [each for each in there if attribute.read(each) == key]
                    assert told(entity_type, entity) in [told(entity_type, each) for each in same]
                    # two addresses of one name are called the same if one is for changes alone
                    assert len(same) == 1 + (key == "M0q")
                    seen.add(entity_type.name)
        assert seen == set(LOOKED_UP)


NOTHING = (
    *(("router.link", key) for key in ("", "1", "1.0", "1.0.77", "9.0.0", "1.x.0", "1.0.0.0")),
    *(("connection", key) for key in ("", "x", "-1", "77", "9" * 40)),
    *(("router.address", key) for key in ("M", "Mx", "M0", "M0nosuch", "M9q", "Lx", "Rx")),
    ("router.linkRoute", "router.linkRoute/nosuch"),
    ("router.config.address", "nosuch"),
)


async def test_nothing_is_found_by_what_nothing_is_called() -> None:
    async with running_node(CONFIGURATION) as running, Peer(running.address[1]) as peer:
        await peer.receiver("q")
        view = view_of(running)
        for kind, key in NOTHING:
            entity_type, _ = ENTITY_TYPES[long_name(kind)]
            found = await look_up(view, entity_type, "identity", key) or ()
            assert [each for each in found if each is not None] == [], key


async def test_what_has_no_table_is_searched() -> None:
    async with running_node(CONFIGURATION) as running:
        view = view_of(running)
        assert await look_up(view, LISTENER, "name", "x") is None
        # those of link routes are among the addresses
        assert await look_up(view, ADDRESS, "identity", "Cfar") is None
        view.control = None
        assert await look_up(view, LINK_ROUTE, "identity", "far") is None


async def test_an_entity_has_its_place_until_it_is_another() -> None:
    async with running_node(CONFIGURATION) as running:
        view = view_of(running)
        (exchange,) = await look_up(view, CONFIGURED_EXCHANGE, "name", "e") or ()
        settings = settings_of(exchange)
        assert await index_of(view, CONFIGURED_EXCHANGE, settings) == 0
        assert await index_of(view, CONFIGURED_EXCHANGE, ExchangeSettings(name="e")) is None
        listener = view.configuration.listeners[0]
        assert await index_of(view, LISTENER, listener) == 0


@examples(100)
@given(st.lists(STEP, max_size=20))
async def test_an_index_that_was_changed_is_as_one_made_anew(steps: list[Any]) -> None:
    view = RouterView("r", "h", EXCHANGES, Node(EXCHANGES).hub, 0.0)
    for step in steps:
        before = view.configuration
        view.configuration, edits = edited(before, step)
        if find_mistakes(view.configuration):
            view.configuration = before
            continue
        edit_indexes(view, before, edits)
        for entity_type in (CONFIGURED_EXCHANGE, CONFIGURED_BINDING, CONFIGURED_ADDRESS):
            entity = entity_type.entity
            assert entity is not None
            every = getattr(view.configuration, entity.attribute)
            index = view.indexes.get(entity.name)
            # where it has been asked for, it is not made again
            assert index is None or index.every is every
            for at, each in enumerate(every):
                first = next(n for n, other in enumerate(every) if other.name == each.name)
                place = await index_of(view, entity_type, each)
                assert place == (at if first == at else None)
