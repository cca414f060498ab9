"""Auto-links as a file has them: their defaults, and what they are called."""

from __future__ import annotations

from router.config.auto_links import AutoLinkSettings
from router.config.load import parse_configuration


def test_an_auto_link_needs_to_say_little() -> None:
    text = '[[autoLink]]\naddress = "orders"\ndirection = "in"\ncontainerId = "artemis"\n'
    (auto_link,) = parse_configuration(text, source="f").auto_links
    assert auto_link == AutoLinkSettings(address="orders", direction="in", container_id="artemis")
    assert auto_link.name == "autoLink/in/orders/artemis"
    assert (auto_link.external_address, auto_link.phase, auto_link.fallback) == (None, None, False)


def test_an_auto_link_may_say_all() -> None:
    text = """
        [[autoLink]]
        name = "orders out"
        address = "orders"
        direction = "out"
        connection = "to-broker"
        externalAddress = "/queue/orders of today"
        phase = 3
        fallback = true
        """
    (auto_link,) = parse_configuration(text, source="f").auto_links
    assert auto_link == AutoLinkSettings(
        name="orders out",
        address="orders",
        direction="out",
        connection="to-broker",
        external_address="/queue/orders of today",
        phase=3,
        fallback=True,
    )
