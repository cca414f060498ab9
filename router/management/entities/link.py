"""Entity type of links."""

from __future__ import annotations

from typing import Final

from router.core.network.lane_numbers import priority_of
from router.management.entities.attributes import AttributesOf, constant
from router.management.schema import OPERATIONAL, Attribute, EntityType
from router.management.views import LinkView

# Link types by the role of the connection; with any other role, the type is endpoint.
_TYPES: Final = {"inter-router": "inter-router", "edge": "edge"}


def _type(view: LinkView) -> str:
    return _TYPES.get(view.pump.connection.settings.role, "endpoint")


_OF: Final = AttributesOf[LinkView]()

LINK: Final = EntityType[LinkView](
    "router.link",
    "A link, as seen from the router: a link on which a client sends is incoming.",
    OPERATIONAL,
    (
        # as in Dispatch: several links may have the same name
        *_OF.identified(lambda v: v.link.name, lambda v: v.identity, "router.link"),
        Attribute("adminStatus", "string", "Always enabled.", constant("enabled")),
        Attribute(
            "operStatus",
            "string",
            "up while it is attached; down while it is being attached or detached.",
            lambda v: "up" if v.link.is_attached() else "down",
        ),
        Attribute(
            "linkName", "string", "The name with which it was attached.", lambda v: v.link.name
        ),
        Attribute(
            "linkType",
            "string",
            "endpoint (with a client or container), inter-router (with another router of the "
            "network), or edge (between an edge router and an interior router).",
            _type,
        ),
        Attribute(
            "linkDir",
            "string",
            "Direction of deliveries: in or out.",
            lambda v: "in" if v.is_incoming else "out",
        ),
        Attribute(
            "owningAddr",
            "string",
            "The key of its address; null for an anonymous sender.",
            lambda v: v.address_key,
        ),
        Attribute(
            "peer",
            "string",
            "For a routed link: the identity of the link that it is joined to.",
            lambda v: v.peer,
        ),
        Attribute(
            "connectionId",
            "string",
            "The identity of its connection.",
            lambda v: str(v.pump.number),
        ),
        *_OF.integers(
            (
                ("capacity", "The maximum credit that a sender gets.", lambda v: v.capacity),
                (
                    "undeliveredCount",
                    "Deliveries that wait in the router.",
                    lambda v: v.undelivered,
                ),
                ("unsettledCount", "Deliveries without an outcome.", lambda v: v.link.unsettled),
                (
                    "creditAvailable",
                    "Credit: deliveries that may be sent now.",
                    lambda v: v.link.credit,
                ),
                (
                    "zeroCreditSeconds",
                    "Seconds without credit.",
                    lambda v: v.zero_credit_s,
                ),
                ("deliveryCount", "Deliveries since it was attached.", lambda v: v.link.deliveries),
                (
                    "presettledCount",
                    "Presettled deliveries.",
                    lambda v: v.link.presettled,
                ),
                (
                    "droppedPresettledCount",
                    "Presettled deliveries that were dropped because no receiver had credit.",
                    lambda v: v.link.dropped_presettled,
                ),
                ("acceptedCount", "Deliveries that were accepted.", lambda v: v.link.accepted),
                ("rejectedCount", "Deliveries that were rejected.", lambda v: v.link.rejected),
                ("releasedCount", "Deliveries that were released.", lambda v: v.link.released),
                ("modifiedCount", "Deliveries that were modified.", lambda v: v.link.modified),
                (
                    "deliveriesDelayed1Sec",
                    "Deliveries that were settled after more than one second, and at most ten.",
                    lambda v: v.link.delayed_1s,
                ),
                (
                    "deliveriesDelayed10Sec",
                    "Deliveries that were settled after more than ten seconds.",
                    lambda v: v.link.delayed_10s,
                ),
                (
                    "deliveriesStuck",
                    "Deliveries that have been unsettled for more than ten seconds.",
                    lambda v: v.link.stuck,
                ),
                (
                    "settleRate",
                    "Deliveries settled per second, recently.",
                    lambda v: v.settle_rate,
                ),
                (
                    "priority",
                    "The priority of the messages on a link between routers; 4 on any other link.",
                    lambda v: priority_of(v.link),
                ),
            )
        ),
        Attribute(
            "blockedReason",
            "string",
            "Why no message can pass on it now, as one word such as no_credit; null if messages "
            "can pass.",
            lambda v: v.blocked_reason,
        ),
        Attribute(
            "blockedText",
            "string",
            "blockedReason in words, with the name of the router that is waited for.",
            lambda v: v.blocked_text,
        ),
        Attribute(
            "ingressHistogram",
            "list",
            "For an outgoing link: its deliveries by the router where they entered the network, "
            "all counted for this one. Null for an incoming link.",
            lambda v: v.ingress_histogram,
        ),
    ),
)
