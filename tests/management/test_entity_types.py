"""The entity types fit together, and every attribute has a value that AMQP can carry."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.amqp.encode import encode_value
from router.config.auto_links import AutoLinkSettings
from router.config.claims import ClaimsSettings, SharedAccessKeySettings
from router.config.connectors import ConnectorSettings
from router.config.exchanges import BindingSettings, ExchangeSettings
from router.config.link_routes import LinkRouteSettings
from router.config.listeners import ListenerSettings
from router.config.model import AddressSettings, Configuration
from router.config.plugins import PluginSettings
from router.config.proxy_profiles import ProxyProfileSettings
from router.config.redirects import RedirectSettings
from router.config.secret import Secret
from router.config.vhosts import VhostGroupSettings, VhostSettings
from router.core.link_routes.route_outlets import LinkRouteRule
from router.management.entities.unsupported_types import UNSUPPORTED_TYPES
from router.management.entity_types import ENTITY_TYPES
from router.management.schema import AnyEntityType
from router.management.views import RouterView

from support.blocking_proton import Peer
from support.certificates import Authority
from support.loopback import running_node

TYPES = [entity_type for entity_type, _ in ENTITY_TYPES.values()]
KINDS = {"string": str, "integer": int, "boolean": bool, "map": dict, "list": list}


@pytest.mark.parametrize("entity_type", TYPES, ids=lambda each: str(each.name))
def test_names_stand_once(entity_type: AnyEntityType) -> None:
    names = [each.name for each in entity_type.attributes]
    assert len(names) == len(set(names))
    assert names[:3] == ["name", "identity", "type"]
    assert not set(names) & set(entity_type.unsupported)
    assert len(entity_type.unsupported) == len(set(entity_type.unsupported))


@pytest.mark.parametrize("entity_type", TYPES, ids=lambda each: str(each.name))
def test_everything_has_a_meaning(entity_type: AnyEntityType) -> None:
    for meaning in (entity_type.meaning, *(each.meaning for each in entity_type.attributes)):
        assert meaning.endswith(".")


async def test_every_value_is_of_its_kind_and_can_be_sent(tmp_path: Path) -> None:
    configuration = Configuration(
        listeners=(ListenerSettings(port=0), ListenerSettings(port=0, name="second")),
        connectors=(ConnectorSettings(port=1),),
        addresses=(AddressSettings(prefix="multicast", distribution="multicast"),),
        redirects=(RedirectSettings(prefix="elsewhere", to_network_host="192.0.2.1"),),
        auto_links=(AutoLinkSettings(address="queue", direction="in", container_id="c"),),
        exchanges=(ExchangeSettings(name="e", address="e", alternate_address="rest"),),
        bindings=(BindingSettings(exchange_name="e", binding_key="a", next_hop_address="q"),),
        link_routes=(LinkRouteSettings(prefix="far", direction="in", container_id="c"),),
        plugins=(PluginSettings(plugin="missing"),),
        ssl_profiles=(Authority(tmp_path).profile(),),
        proxy_profiles=(ProxyProfileSettings(name="p", host="h", port=1),),
        vhosts=(VhostSettings(hostname="h", groups={"g": VhostGroupSettings(users=("ann",))}),),
        shared_access_keys=(SharedAccessKeySettings(name="k", key=Secret("literal", "hidden")),),
        claims=(ClaimsSettings(name="c", shared_access_keys=("k",)),),
    )
    seen = set()
    async with running_node(configuration) as running, Peer(running.address[1]) as peer:
        for address in ("q", "multicast"):
            await peer.receiver(address)
            await peer.sender(address)
        await peer.sender(None)
        node = running.node
        hub, control = node.hub, node.control
        router = RouterView(
            "router", "host", configuration, hub, 0.0, control=control, gate=node.gate
        )
        scope = running.pumps[0].connection
        own = LinkRouteRule("own", "out", False, "own", scope=scope)
        node.control.link_routes.add_requested(own)
        router.requester_number = running.pumps[0].number
        for entity_type, entities in ENTITY_TYPES.values():
            identities = []
            for entity in filter(None, entities(router)):
                seen.add(entity_type.name)
                for attribute in entity_type.attributes:
                    value = attribute.read(entity)
                    assert value is None or type(value) is KINDS[attribute.kind], attribute.name
                    assert encode_value(value)
                    if attribute.name == "identity":
                        identities.append(value)
                    if attribute.name == "type":
                        assert value == entity_type.long_name
            assert len(identities) == len(set(identities))
    # those of a router that works alone
    assert seen == {each.name for each in TYPES} - {each.name for each in UNSUPPORTED_TYPES} - {
        "router.node"
    }
