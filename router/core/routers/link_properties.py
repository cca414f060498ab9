"""Attach properties of links between routers: the keys.

The page docs/reference/inter-router-protocol.md says what each of them means.
"""

from __future__ import annotations

from typing import Final

from router.amqp.types import Symbol

# Of any link: the router that it leads to, and what the way there costs from where it is attached;
# the phase of the address, where that is not 0; whether somebody is shown where messages were.
DESTINATION: Final = Symbol("qd.destination")
COST: Final = Symbol("qd.cost")
PHASE: Final = Symbol("qd.phase")
SHOWS: Final = Symbol("qd.shows")
# Of a link to the management of another router: "change" where all who send by it may change
# things there.
RIGHTS: Final = Symbol("qd.rights")
# Of one of several to one destination: which lane it is, and the priority of what takes it, where
# these are not 0 and 4.
LANE: Final = Symbol("qd.lane")
PRIORITY: Final = Symbol("qd.priority")
# Of a link of a tree: whose tree it is, which branch of it, and who receives there.
ORIGIN: Final = Symbol("qd.origin")
TREE: Final = Symbol("qd.tree")
RECEIVERS: Final = Symbol("qd.receivers")
# Of a link that is routed: by which key, as `Reach` has them, it was matched, which no other link
# says; and what is to be known of the client whose link it is.
LINK_ROUTE: Final = Symbol("qd.link-route")
NAME: Final = Symbol("qd.name")
CONTAINER: Final = Symbol("qd.container")
IS_CONTAINER: Final = Symbol("qd.is-container")
CLIENT: Final = Symbol("qd.client")
USER: Final = Symbol("qd.user")
PROPERTIES: Final = Symbol("qd.properties")
