"""State of auto-links: Dispatch's attributes, and the reason for a failure."""

from __future__ import annotations

from typing import Any

from router.config.auto_links import AutoLinkSettings
from router.core.addresses.rules import AddressRule, Rules
from router.engine.naming import link_identity
from router.management.entities.auto_link_state import AUTO_LINK_STATE
from router.management.entities.configured import CONFIGURED_AUTO_LINK, configured_auto_links
from router.management.schema import LiveEntity

from support.containers import Container, ControlledRouter, view_of

OUT = AutoLinkSettings(address="q", direction="out", container_id="broker")
IN = AutoLinkSettings(address="q", direction="in", container_id="broker", external_address="e")


def told(router: ControlledRouter, *settings: AutoLinkSettings) -> list[dict[str, Any]]:
    """All attributes of auto-links that are configured."""
    entities = configured_auto_links(view_of(router, *settings))
    return [
        {each.name: each.read(entity) for each in CONFIGURED_AUTO_LINK.attributes}
        for entity in entities
    ]


def test_dispatchs_attributes() -> None:
    router = ControlledRouter()
    rules = [AddressRule(True, "q", "balanced", True, None, 0, 1)]
    router.table.rules = Rules(rules, "balanced")
    Container(router)
    out, back = told(router, OUT, IN)
    assert {
        "name": "autoLink/out/q/broker",
        "identity": "autoLink/out/q/broker",
        "type": "org.apache.qpid.dispatch.router.config.autoLink",
        "address": "q",
        "direction": "out",
        "phase": 0,
        "containerId": "broker",
        "connection": None,
        "externalAddress": None,
        "fallback": False,
        "operStatus": "active",
        "lastError": None,
    }.items() <= out.items()
    assert (back["phase"], back["externalAddress"]) == (1, "e")
    names = router.auto_links.rules
    links = {
        link_identity(line.link)
        for name in names
        for line in router.auto_links.lines_of(name)
        if line.link is not None
    }
    assert {out["linkRef"], back["linkRef"]} == links


def test_a_phase_that_is_configured_is_told() -> None:
    [each] = told(ControlledRouter(), AutoLinkSettings(address="q", direction="in", phase=7))
    assert (each["phase"], each["operStatus"], each["connectionCount"]) == (7, "inactive", 0)


def test_a_failure_is_told_with_its_reason_and_what_follows() -> None:
    router = ControlledRouter()
    container = Container(router)
    container.refuses["q"] = "amqp:not-found"
    told(router, OUT)
    router.wait(1)
    [each] = told(router, OUT)
    assert (each["operStatus"], each["statusSeconds"]) == ("failed", 1)
    assert (each["lastError"], each["lastErrorCondition"]) == ("no such queue", "amqp:not-found")
    assert (each["lastErrorSeconds"], each["attempts"], each["linkCount"]) == (1, 1, 0)
    assert 1 <= each["retrySeconds"] <= 2
    assert each["linkRef"] is None
    del container.refuses["q"]
    router.wait(3)
    [each] = told(router, OUT)
    assert (each["operStatus"], each["linkCount"], each["retrySeconds"]) == ("active", 1, None)
    assert each["lastError"] == "no such queue"


def test_a_detach_without_a_reason_is_told_too() -> None:
    router = ControlledRouter()
    container = Container(router)
    told(router, OUT)
    container.attached("q")[0].detach()
    [each] = told(router, OUT)
    assert each["lastError"] == "the container detached the link without an error"
    assert each["lastErrorCondition"] is None


def test_the_best_of_several_connections_counts() -> None:
    router = ControlledRouter()
    one, other = Container(router, opens=False), Container(router)
    one.refuses["q"] = "amqp:not-found"
    told(router, OUT)
    one.open()
    [each] = told(router, OUT)
    assert (each["operStatus"], each["connectionCount"], each["linkCount"]) == ("active", 2, 1)
    assert each["lastError"] == "no such queue"
    other.lose()
    [each] = told(router, OUT)
    assert (each["operStatus"], each["connectionCount"]) == ("failed", 1)


def test_one_that_is_not_taken_up_yet_has_no_state() -> None:
    assert {each.read(LiveEntity(OUT, None)) for each in AUTO_LINK_STATE} == {None}
