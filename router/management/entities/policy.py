"""Entity type of the policy, which limits and denies nothing: this router has no policies."""

from __future__ import annotations

from typing import Final

from router.management.entities.attributes import AttributesOf, constant
from router.management.entities.unsupported_types import NOT_SUPPORTED
from router.management.schema import CONFIGURATION, Attribute, EntityType
from router.management.views import RouterView


def _processed(router: RouterView) -> int:
    return sum(counters.opened for counters in router.observed.connection_counters)


_OF: Final = AttributesOf[RouterView]()

POLICY: Final = EntityType[RouterView](
    "policy",
    "The policy. There is none, so any client that can connect may do anything.",
    CONFIGURATION,
    (
        *_OF.identified(constant("policy"), constant("policy"), "policy"),
        *_OF.integers((("maxConnections", "Null: there is no limit.", constant(None)),)),
        Attribute("enableVhostPolicy", "boolean", "Always false.", constant(False)),
        Attribute("enableVhostNamePatterns", "boolean", "Always false.", constant(False)),
        Attribute("policyDir", "string", "Always empty.", constant("")),
        Attribute("defaultVhost", "string", "Always empty.", constant("")),
        *_OF.integers(
            (
                ("connectionsProcessed", "Connections that have been opened.", _processed),
                ("connectionsDenied", "Connections denied by policy: always 0.", constant(0)),
                (
                    "connectionsCurrent",
                    "Connections that are open.",
                    lambda r: r.totals.connections,
                ),
                ("linksDenied", "Links denied by policy: always 0.", constant(0)),
                ("totalDenials", "Connections and links denied by policy: always 0.", constant(0)),
            )
        ),
    ),
    unsupported=("maxMessageSize", "maxMessageSizeDenied"),
    missing_feature=NOT_SUPPORTED,
)
