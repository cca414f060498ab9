"""Keys of the attach properties on links between routers.

The page docs/reference/inter-router-protocol.md says what each key means.
"""

from __future__ import annotations

from typing import Final

from router.amqp.types import Symbol

# Any link: the destination router, and the cost of the path to it from the attaching router; the
# phase of the address, if not 0; whether a receiver gets the router annotations of messages.
DESTINATION: Final = Symbol("qd.destination")
COST: Final = Symbol("qd.cost")
PHASE: Final = Symbol("qd.phase")
SHOWS: Final = Symbol("qd.shows")
# Links to the management of another router: "change" if all their senders may make changes there.
RIGHTS: Final = Symbol("qd.rights")
# Lanes: the number of the lane, and the priority of its messages, if these are not 0 and 4.
LANE: Final = Symbol("qd.lane")
PRIORITY: Final = Symbol("qd.priority")
# Tree links: the root of the tree, the digest of the branch, and some of its receivers.
ORIGIN: Final = Symbol("qd.origin")
TREE: Final = Symbol("qd.tree")
RECEIVERS: Final = Symbol("qd.receivers")
# Routed links: the key of the link route, as in `RoutingState`, which only routed links have; and
# the facts about the link's client that routers need.
LINK_ROUTE: Final = Symbol("qd.link-route")
NAME: Final = Symbol("qd.name")
CONTAINER: Final = Symbol("qd.container")
IS_CONTAINER: Final = Symbol("qd.is-container")
CLIENT: Final = Symbol("qd.client")
USER: Final = Symbol("qd.user")
PROPERTIES: Final = Symbol("qd.properties")
