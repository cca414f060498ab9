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
    return int(getattr(view.counted, of))


ADDRESS: Final = EntityType[ListedAddress](
    "router.address",
    "An address in use, or one that other routers have announced.",
    OPERATIONAL,
    (
        *_OF.identified(lambda a: a.key, lambda a: a.key, "router.address"),
        Attribute("key", "string", "The letter of its class, and its name.", lambda a: a.key),
        Attribute(
            "distribution", "string", "How deliveries are distributed.", lambda a: a.distribution
        ),
        *_OF.integers(
            (
                ("inProcess", "Receivers that are the router itself.", lambda a: a.in_process),
                ("subscriberCount", "Other receivers here.", lambda a: a.subscribers),
                (
                    "remoteCount",
                    "Other routers with receivers, or with containers of a link route.",
                    lambda a: len(a.remote_routers),
                ),
                (
                    "containerCount",
                    "Of a link route's address, connections that links are forwarded to.",
                    lambda a: a.containers,
                ),
                (
                    "deliveriesIngress",
                    "Deliveries for it that came in from clients and containers.",
                    lambda a: router_traffic.entered(a.counted),
                ),
                (
                    "deliveriesEgress",
                    "Deliveries that went out to clients and containers.",
                    lambda a: router_traffic.left(a.counted),
                ),
                (
                    "deliveriesTransit",
                    "Deliveries that went on to other routers, from here or in transit.",
                    lambda a: a.counted.to_routers + a.passed,
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
                    "Deliveries that went to its fallback.",
                    partial(_address_count, "redirected"),
                ),
                (
                    "priority",
                    "Priority of all messages to it; -1 if each message's own applies.",
                    lambda a: a.priority,
                ),
                (
                    "receiversDropped",
                    "Links of stuck receivers that were closed (stuckReceiver).",
                    partial(_address_count, "receivers_dropped"),
                ),
                ("deliveriesToContainer", "To link routes' containers: none.", constant(0)),
                ("deliveriesFromContainer", "From those: none.", constant(0)),
            )
        ),
        Attribute(
            "remoteHostRouters",
            "list",
            "The ids of the routers in remoteCount.",
            lambda a: a.remote_routers,
        ),
        Attribute(
            "blockedReason",
            "string",
            "Why what is sent to it here would wait now, in a word such as no_credit; null where "
            "it would not.",
            lambda a: a.blocked_reason,
        ),
        Attribute(
            "blockedText",
            "string",
            "The same in words, which name the routers of the network that are waited for.",
            lambda a: a.blocked_text,
        ),
    ),
    unsupported=(*("transitOutstanding", "trackedDeliveries"),),
)
