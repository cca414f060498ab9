"""The entities of what is configured."""

from __future__ import annotations

from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.model import AddressSettings, Configuration
from router.management.entities.configured import CONFIGURED_ADDRESS, CONNECTOR, LISTENER

from support.entities import told
from support.loopback import running_node


async def test_what_is_configured_is_told_under_its_names() -> None:
    configuration = Configuration(
        listeners=(ListenerSettings(port=0, name="front"),),
        connectors=(ConnectorSettings(port=1),),
        addresses=(AddressSettings(prefix="multicast", distribution="multicast"),),
    )
    async with running_node(configuration) as running:
        (listener,) = told(running, LISTENER)
        assert (listener["name"], listener["identity"]) == ("front", "listener/127.0.0.1:0:front")
        assert (listener["port"], listener["role"]) == ("0", "normal")
        (connector,) = told(running, CONNECTOR)
        # what it is called where no name is configured says the same as its identity
        assert connector["identity"] == connector["name"]
        (address,) = told(running, CONFIGURED_ADDRESS)
        assert (address["prefix"], address["distribution"]) == ("multicast", "multicast")
