"""Entity type of addresses."""

from __future__ import annotations

from functools import partial
from typing import Final, TypeAlias

from router.core.routers import router_traffic
from router.management.entities.attributes import AttributesOf, constant
from router.management.entities.link_routes import LinkRouteAddress
from router.management.entities.remote_addresses import RemoteAddress
from router.management.schema import OPERATIONAL, Attribute, EntityType
from router.management.views import AddressView

ListedAddress: TypeAlias = AddressView | RemoteAddress | LinkRouteAddress

_OF: Final = AttributesOf[ListedAddress]()


def _address_count(of: str, view: ListedAddress) -> int:
    return int(getattr(view.counters, of))


ADDRESS: Final = EntityType[ListedAddress](
    "router.address",
    "An address in use, or one that other routers have announced.",
    OPERATIONAL,
    (
        *_OF.identified(lambda a: a.key, lambda a: a.key, "router.address"),
        Attribute(
            "key", "string", "The letter of its class, followed by its name.", lambda a: a.key
        ),
        Attribute(
            "distribution", "string", "How deliveries are distributed.", lambda a: a.distribution
        ),
        *_OF.integers(
            (
                ("inProcess", "Receivers within the router itself.", lambda a: a.in_process),
                ("subscriberCount", "Other receivers at this router.", lambda a: a.subscribers),
                (
                    "remoteCount",
                    "Other routers with receivers, or with containers of a link route.",
                    lambda a: len(a.remote_routers),
                ),
                (
                    "containerCount",
                    "For the address of a link route: connections that links are forwarded to.",
                    lambda a: a.containers,
                ),
                (
                    "deliveriesIngress",
                    "Deliveries for it that came in from clients and containers.",
                    lambda a: router_traffic.entered(a.counters),
                ),
                (
                    "deliveriesEgress",
                    "Deliveries that went out to clients and containers.",
                    lambda a: router_traffic.left(a.counters),
                ),
                (
                    "deliveriesTransit",
                    "Deliveries sent on to other routers, from here or in transit.",
                    lambda a: a.counters.to_routers + a.passed,
                ),
                (
                    "deliveriesIngressRouteContainer",
                    "Deliveries that came in on links from containers.",
                    partial(_address_count, "from_containers"),
                ),
                (
                    "deliveriesEgressRouteContainer",
                    "Deliveries that went out on links to containers.",
                    partial(_address_count, "to_containers"),
                ),
                (
                    "deliveriesRedirectedToFallback",
                    "Deliveries sent to its fallback.",
                    partial(_address_count, "redirected"),
                ),
                (
                    "priority",
                    "Priority of all messages to it; -1 if each message's own priority applies.",
                    lambda a: a.priority,
                ),
                (
                    "receiversDropped",
                    "Links of stuck receivers that were closed (stuckReceiver).",
                    partial(_address_count, "receivers_dropped"),
                ),
                (
                    "deliveriesToContainer",
                    "Deliveries to containers of link routes: always 0.",
                    constant(0),
                ),
                (
                    "deliveriesFromContainer",
                    "Deliveries from containers of link routes: always 0.",
                    constant(0),
                ),
            )
        ),
        Attribute(
            "remoteHostRouters",
            "list",
            "The ids of the routers that remoteCount counts.",
            lambda a: a.remote_routers,
        ),
        Attribute(
            "blockedReason",
            "string",
            "Why messages sent to it here would wait now, as one word such as no_credit; null "
            "if they would not wait.",
            lambda a: a.blocked_reason,
        ),
        Attribute(
            "blockedText",
            "string",
            "blockedReason in words, with the names of the routers that are waited for.",
            lambda a: a.blocked_text,
        ),
    ),
    unsupported=(*("transitOutstanding", "trackedDeliveries"),),
)
