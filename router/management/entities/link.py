"""Entity type of links."""

from __future__ import annotations

from typing import Final

from router.core.network.lane_numbers import priority_of
from router.management.entities.attributes import AttributesOf, constant
from router.management.schema import OPERATIONAL, Attribute, EntityType
from router.management.views import LinkView

# Link types by the role of the connection; with any other role it is endpoint.
_TYPES: Final = {"inter-router": "inter-router", "edge": "edge"}


def _type(view: LinkView) -> str:
    return _TYPES.get(view.pump.connection.settings.role, "endpoint")


_OF: Final = AttributesOf[LinkView]()

LINK: Final = EntityType[LinkView](
    "router.link",
    "A link, seen from the router: what clients send on comes in.",
    OPERATIONAL,
    (
        # as in Dispatch: several links may have the same name
        *_OF.identified(lambda v: v.link.name, lambda v: v.identity, "router.link"),
        Attribute("adminStatus", "string", "Always enabled.", constant("enabled")),
        Attribute(
            "operStatus",
            "string",
            "Whether it is attached (up) or on its way in or out (down).",
            lambda v: "up" if v.link.is_attached() else "down",
        ),
        Attribute("linkName", "string", "The name it was attached under.", lambda v: v.link.name),
        Attribute(
            "linkType",
            "string",
            "A client's or a container's (endpoint), another router's of the network "
            "(inter-router), or an edge's (edge).",
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
            "Of a link that is routed, the identity of the one that it is joined to.",
            lambda v: v.peer,
        ),
        Attribute("connectionId", "string", "Its connection.", lambda v: str(v.pump.number)),
        *_OF.integers(
            (
                ("capacity", "The most credit a sender gets.", lambda v: v.capacity),
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
                    "Of those, the ones dropped because nobody could take them at once.",
                    lambda v: v.link.dropped_presettled,
                ),
                ("acceptedCount", "Those that were accepted.", lambda v: v.link.accepted),
                ("rejectedCount", "Those that were rejected.", lambda v: v.link.rejected),
                ("releasedCount", "Those that were released.", lambda v: v.link.released),
                ("modifiedCount", "Those that were modified.", lambda v: v.link.modified),
                (
                    "deliveriesDelayed1Sec",
                    "Those that took more than a second until they were settled, up to ten.",
                    lambda v: v.link.delayed_1s,
                ),
                (
                    "deliveriesDelayed10Sec",
                    "Those that took more than ten seconds.",
                    lambda v: v.link.delayed_10s,
                ),
                (
                    "deliveriesStuck",
                    "Those that are unsettled now, and have been for more than ten seconds.",
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
            "Why nothing can come or go by it now, in a word such as no_credit; null where it can.",
            lambda v: v.blocked_reason,
        ),
        Attribute(
            "blockedText",
            "string",
            "The same in words, which name the router of the network that is waited for.",
            lambda v: v.blocked_text,
        ),
        Attribute(
            "ingressHistogram",
            "list",
            "Of an outgoing link, how many of its deliveries came into the network by which router:"
            " this one. Null for an incoming link.",
            lambda v: v.ingress_histogram,
        ),
    ),
)
