"""The interfaces that management needs of a running router, compared with the router."""

from __future__ import annotations

import pytest

from router.config.model import Configuration
from router.config.plugins import PluginSettings
from router.hosting.host import HostedPlugin, PluginHost
from router.management import ports
from router.net.connection_counters import ConnectionCounters
from router.net.connector_status import ConnectorStatus
from router.net.places import Place
from router.net.tracing import Frame, Tracer
from router.node import Node
from router.plugin import ManagedAttribute, ManagedType

from support.loopback import dialled, running_node
from support.protocols import members, missing

PLACE = Place("h", 1, "h")
ATTRIBUTE = ManagedAttribute("name", "string", "Its name.")


@pytest.mark.parametrize(
    ("port", "provider"),
    [
        (ports.ConnectorStatus, ConnectorStatus((PLACE,), 0.0)),
        (ports.Endpoint, ConnectionCounters("l", "in", "normal")),
        (ports.FrameTraces, Tracer({})),
        (ports.PluginState, HostedPlugin(PluginSettings(plugin="example"))),
        (ports.Plugins, PluginHost),
        (ports.ReportedAttribute, ATTRIBUTE),
        (ports.ReportedType, ManagedType("thing", "A thing.", (ATTRIBUTE,), tuple)),
        (ports.RouterInternals, Node(Configuration()).hub),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_the_router_has_what_management_needs(port: type, provider: object) -> None:
    assert members(port)
    assert missing(port, provider) == set()


async def test_connections_and_their_frames_have_what_management_needs() -> None:
    heard: list[Frame] = []
    async with running_node() as running:
        running.node.hub.tracer.add_listener(lambda _: True, heard.append)
        async with dialled(running.address) as peer:
            await peer.begin()
            (pump,) = running.node.hub.pumps.values()
    for port, provider in ((ports.ConnectionRecord, pump), (ports.TracedFrame, heard[0])):
        assert missing(port, provider) == set()
