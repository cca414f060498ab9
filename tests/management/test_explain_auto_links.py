"""EXPLAIN tells which auto-links an address has, and what is the matter with them."""

from __future__ import annotations

from typing import Any

import attrs

from router.config.auto_links import AutoLinkSettings
from router.core.addresses.rules import AddressRule
from router.management.explain import explain
from router.management.requests import Request

from support.containers import Container, ControlledRouter, view_of

OUT = AutoLinkSettings(address="q", direction="out", container_id="broker", name="to broker")
IN = AutoLinkSettings(address="q", direction="in", container_id="broker", name="from broker")
OTHER = AutoLinkSettings(address="other", direction="in", container_id="broker")


def explained(router: ControlledRouter, direction: str = "send") -> dict[str, Any]:
    """Return the router's explanation of `q`."""
    properties = {"operation": "EXPLAIN", "address": "q", "direction": direction}
    return explain(view_of(router, OUT, IN, OTHER), Request(properties, None))


def reasons(told: dict[str, Any]) -> list[tuple[str, str]]:
    """Why nothing flows, without what others tell."""
    found = [(each["reason"], each["text"]) for each in told["reasons"]]
    return [each for each in found if each[0].startswith("auto_link")]


def test_a_container_that_is_not_there() -> None:
    told = explained(ControlledRouter())
    assert reasons(told) == [
        (
            "auto_link_inactive",
            "the auto-link to broker waits for the container broker to be connected",
        )
    ]
    assert [each["name"] for each in told["autoLinks"]] == ["to broker", "from broker"]
    told = explained(ControlledRouter(), "receive")
    assert [each for each, _ in reasons(told)] == ["auto_link_inactive"]


def test_one_that_failed() -> None:
    router = ControlledRouter()
    container = Container(router)
    container.refuses["q"] = "amqp:not-found"
    explained(router)
    router.wait(0.25)
    [(reason, text)] = reasons(explained(router))
    assert reason == "auto_link_failed"
    head = "the auto-link to broker failed at the container broker: no such queue; the next attempt"
    assert text.startswith(head)


def test_one_that_waits_for_an_answer() -> None:
    router = ControlledRouter()
    Container(router).silent = {"attach"}
    [(reason, _)] = reasons(explained(router))
    assert reason == "auto_link_attaching"


def test_one_that_is_there() -> None:
    router = ControlledRouter()
    container = Container(router)
    explained(router)
    told = explained(router)
    assert [each["reason"] for each in told["reasons"]] == ["no_credit"]
    node = next(each for each in container.attached("q") if not each.sends)
    node.grant(1)
    told = explained(router)
    assert told["flows"]
    assert told["autoLinks"][0] == {
        "name": "to broker",
        "direction": "out",
        "phase": 0,
        "containerId": "broker",
        "connection": None,
        "externalAddress": "q",
        "fallback": False,
        "operStatus": "active",
        "lastError": None,
        "retrySeconds": None,
    }
    assert explained(router, "receive")["flows"]


def test_those_of_a_fallback_are_told_at_each_phase() -> None:
    router = ControlledRouter([AddressRule(True, "q", "balanced", egress_phase=1, fallback=True)])
    plans = [OUT, attrs.evolve(OUT, name="spare", fallback=True)]
    properties = {"operation": "EXPLAIN", "address": "q", "direction": "receive"}
    told = explain(view_of(router, *plans), Request(properties, None))
    assert [each["name"] for each in told["autoLinks"]] == ["spare"]
