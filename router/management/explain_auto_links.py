"""EXPLAIN: the auto-links of an address, and why they are not attached."""

from __future__ import annotations

from typing import Final

from router.control.link_supervisor import Status
from router.core.addresses.table import address_name
from router.management.entities.auto_link_state import AutoLinkState, state_of
from router.management.requests import AnswerMap
from router.management.views import RouterView

# Maximum number of auto-links that are listed.
MAX_LISTED: Final = 100


def auto_links_at(router: RouterView, name: str, phase: int) -> list[AutoLinkState]:
    """Return the auto-links for a phase of an address or for its fallback, attached or not."""
    auto_links = router.observed.auto_links
    if auto_links is None:
        return []
    states = (
        state_of(router, rule)
        for rule in auto_links.rules.values()
        if address_name(rule.address) == name
    )
    return [each for each in states if each.phase == phase or each.rule.is_fallback]


def describe_auto_links(states: list[AutoLinkState]) -> list[AnswerMap]:
    """Describe auto-links, at most MAX_LISTED of them."""
    return [
        {
            "name": each.rule.name,
            "direction": "in" if each.rule.receives else "out",
            "phase": each.phase,
            "containerId": each.rule.container_id,
            "connection": each.rule.connection,
            "externalAddress": each.rule.external_address,
            "fallback": each.rule.is_fallback,
            "operStatus": str(each.status),
            "lastError": each.error,
            "retrySeconds": each.retry_s,
        }
        for each in states[:MAX_LISTED]
    ]


def reasons_of(states: list[AutoLinkState], *, sends: bool) -> list[dict[str, str]]:
    """Return why the auto-links of one direction are not active.

    If the user sends, these are the auto-links that send to containers; otherwise the auto-links
    that receive from containers.
    """
    return [
        {"reason": f"auto_link_{each.status}", "text": _why(each)}
        for each in states[:MAX_LISTED]
        if each.rule.receives != sends and each.status is not Status.ACTIVE
    ]


def _why(state: AutoLinkState) -> str:
    rule = state.rule
    where = rule.container_id or rule.connection
    if where is None:
        return f"the auto-link {rule.name} has neither a containerId nor a connection"
    if state.status is Status.INACTIVE:
        return f"the auto-link {rule.name} waits for the container {where} to be connected"
    if state.status is Status.ATTACHING:
        return f"the auto-link {rule.name} waits for an answer from the container {where}"
    retry = "" if state.retry_s is None else f"; the next attempt is in {state.retry_s} s"
    return f"the auto-link {rule.name} failed at the container {where}: {state.error}{retry}"
