"""The node offers everything that the management agent needs of a router."""

from __future__ import annotations

from router.config.model import Configuration
from router.management.configurable_router import ConfigurableRouter
from router.node import Node


def test_a_node_is_changeable() -> None:
    configuration = Configuration()
    # mypy looks whether this holds
    configurable: ConfigurableRouter = Node(configuration)
    assert configurable.configuration is configuration
    assert callable(configurable.apply)
