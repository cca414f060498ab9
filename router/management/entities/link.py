"""Links."""

from __future__ import annotations

from typing import Final

from router.management.entities.attributes import constant, identified, integers
from router.management.schema import OPERATIONAL, Attribute, EntityType

LINK: Final = EntityType(
    "router.link",
    "A link, seen from the router: what clients send on comes in.",
    OPERATIONAL,
    (
        *identified(lambda v: f"router.link/{v.identity}", lambda v: v.identity, "router.link"),
        Attribute("adminStatus", "string", "Always enabled.", constant("enabled")),
        Attribute(
            "operStatus",
            "string",
            "Whether it is attached (up) or on its way in or out (down).",
            lambda v: "up" if v.link.is_attached() else "down",
        ),
        Attribute("linkName", "string", "The name it was attached under.", lambda v: v.link.name),
        Attribute("linkType", "string", "Always endpoint.", constant("endpoint")),
        Attribute(
            "linkDir",
            "string",
            "Which way deliveries go.",
            lambda v: "in" if v.is_incoming else "out",
        ),
        Attribute(
            "owningAddr",
            "string",
            "The key of its address; null for an anonymous sender.",
            lambda v: v.address_key,
        ),
        Attribute("peer", "string", "Always null: no link is routed.", constant(None)),
        Attribute("connectionId", "string", "Its connection.", lambda v: str(v.pump.number)),
        *integers(
            (
                ("capacity", "The most credit a sender gets.", lambda v: v.capacity),
                (
                    "undeliveredCount",
                    "Deliveries that wait in the router.",
                    lambda v: v.undelivered,
                ),
                ("unsettledCount", "Deliveries without an outcome.", lambda v: v.link.unsettled),
                ("creditAvailable", "Deliveries that may come next.", lambda v: v.link.credit),
                (
                    "zeroCreditSeconds",
                    "Without credit for at least so long, as far as anybody asked.",
                    lambda v: v.zero_credit_s,
                ),
                ("deliveryCount", "Not kept by link.", constant(None)),
                ("presettledCount", "Not kept by link.", constant(None)),
                ("droppedPresettledCount", "Not kept by link.", constant(None)),
                ("acceptedCount", "Not kept by link.", constant(None)),
                ("rejectedCount", "Not kept by link.", constant(None)),
                ("releasedCount", "Not kept by link.", constant(None)),
                ("modifiedCount", "Not kept by link.", constant(None)),
            )
        ),
    ),
    absent=(
        *("deliveriesDelayed1Sec", "deliveriesDelayed10Sec", "deliveriesStuck"),
        *("settleRate", "ingressHistogram", "priority"),
    ),
)
