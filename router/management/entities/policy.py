"""Entity type of the policy: what is configured for all vhosts, and what has been refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from router.control.policy.counts import PolicyCounts
from router.management.entities.attributes import AttributesOf, constant
from router.management.schema import (
    CONFIGURATION,
    Attribute,
    EntityType,
    configured_entity,
    settings_attributes,
)
from router.management.views import RouterView

_NOTHING: Final = PolicyCounts()


def _processed(router: RouterView) -> int:
    opened = sum(counters.opened for counters in router.observed.connection_counters)
    return opened + _counts(router).denied


def _counts(router: RouterView) -> PolicyCounts:
    return _NOTHING if router.gate is None else router.gate.totals


def _count(read: Callable[[PolicyCounts], int]) -> Callable[[RouterView], int]:
    return lambda router: read(_counts(router))


def _setting(attribute: Attribute[object]) -> Attribute[RouterView]:
    """Return an attribute of the configured policy, read from the router."""
    return Attribute(
        attribute.name,
        attribute.kind,
        attribute.meaning,
        lambda router: attribute.read(router.configuration.policy),
        attribute.setting,
    )


_OF: Final = AttributesOf[RouterView]()
_ENTITY: Final = configured_entity("policy")

POLICY: Final = EntityType[RouterView](
    "policy",
    "What applies to all vhosts, and what has been refused since the router started.",
    CONFIGURATION,
    (
        *_OF.identified(constant("policy"), constant("policy"), "policy"),
        *map(_setting, settings_attributes(_ENTITY)),
        Attribute(
            # qdstat shows it, and fails without it
            "policyDir",
            "string",
            "Always empty: the vhosts of Dispatch's policyDir are a part of the configuration.",
            constant(""),
        ),
        *_OF.integers(
            (
                (
                    "connectionsProcessed",
                    "Connections that have been opened or refused.",
                    _processed,
                ),
                (
                    "connectionsDenied",
                    "Connections that were refused.",
                    _count(lambda counts: counts.denied),
                ),
                (
                    "connectionsCurrent",
                    "Connections that are open.",
                    lambda router: router.totals.connections,
                ),
                ("linksDenied", "Links that were refused.", _count(lambda c: c.links_denied)),
                (
                    "messagesDenied",
                    "Messages of anonymous senders that were refused.",
                    _count(lambda counts: counts.messages_denied),
                ),
                (
                    "maxMessageSizeDenied",
                    "Messages that were larger than maxMessageSize.",
                    _count(lambda counts: counts.large_messages_denied),
                ),
                (
                    "totalDenials",
                    "Connections, sessions, links and messages that were refused.",
                    _count(lambda counts: counts.total_denied),
                ),
            )
        ),
    ),
    operations=("READ", "UPDATE"),
    entity=_ENTITY,
)
