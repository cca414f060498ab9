"""Links on which a multicast is forwarded to the next routers of a tree.

A `MulticastTree` is the part of a tree that begins at this router, for one address. Its messages
are forwarded on one link to each child whose branch has a receiver. While the link of a branch is
lost, a consumer without credit stands in for it, so that messages sent meanwhile wait for the next
link. Nothing here runs per message.
"""

from __future__ import annotations

from collections.abc import Collection
from heapq import nsmallest
from typing import TYPE_CHECKING, Final

from router.amqp.performatives import Error
from router.core.links import attach, detach
from router.core.model.address import NO_TREE, Address, Consumer, Producer
from router.core.network.next_links import NextLink
from router.core.routers.link_properties import ORIGIN, RECEIVERS, TREE
from router.core.routers.routing_state import Branch, Tree

if TYPE_CHECKING:
    from router.amqp.types import DecodedMap
    from router.core.network.multicast import Multicast
    from router.core.ports import Core

# How many receivers are listed at most, so that an attach fits into a frame.
MOST_NAMED: Final = 64
# The condition with which a router refuses a tree link to an address that is not multicast.
NO_MULTICAST: Final = "trioute:no-multicast"


class MulticastTree:
    """Part of a multicast tree that begins at this router, for one address.

    The producers and consumers of this part have its `number` as their `tree`.
    """

    def __init__(self, address: Address, key: str, tree: Tree, number: int) -> None:
        self.address = address
        self.key = key
        self.tree = tree
        self.number = number
        self.branches: dict[str, BranchLink] = {}
        # the links from the parent, unless the tree begins here
        self.senders: dict[Producer, None] = {}
        # how many deliveries its links had carried at the last check
        self.carried = 0


class BranchLink(NextLink):
    """Link to one child of a multicast tree.

    It may replace a lost link, `before`, whose messages it takes over.
    """

    def __init__(
        self,
        multicast: Multicast,
        subtree: MulticastTree,
        branch: Branch,
        receivers: list[str],
        shows: bool,
        before: BranchLink | None = None,
    ) -> None:
        properties: DecodedMap = {
            ORIGIN: subtree.tree.root,
            TREE: branch.digest,
            RECEIVERS: nsmallest(MOST_NAMED, receivers),
        }
        super().__init__(multicast.forwarder.network, subtree.address, properties, shows)
        self.multicast = multicast
        self.subtree = subtree
        self.branch = branch
        self._before = before

    def place(self, consumer: Consumer) -> None:
        """Set the consumer's tree; move the waiting messages of a replaced link to the consumer."""
        consumer.tree = self.subtree.number
        before, self._before = self._before, None
        if before is not None and before.consumer is not None:
            consumer.waiting = before.consumer.waiting
            before.remove_placeholder(self.multicast.forwarder)

    def over(self, forwarder: Core, error: Error | None, closed: bool) -> None:
        """Add a consumer in place of this lost link, unless the link was given up or refused."""
        consumer = self.consumer
        if consumer is None or self.is_leaving:
            self.multicast.link_ended(self)
            return
        self.consumer = None
        if error is not None and error.condition == NO_MULTICAST:
            self.multicast.is_refused(self)
            return
        if not forwarder.table.is_in_use(consumer.address):
            # no sender uses the address
            self.multicast.branch_orphaned(self)
            return
        # no message can be sent on the link any more, whatever the reason
        consumer.link.credit = 0
        self.consumer = place = Consumer(consumer.link, consumer.address)
        place.side, place.tree = consumer.side, consumer.tree
        attach.join_consumer(forwarder, place)
        self.multicast.branch_lost(self)

    def retire(self, forwarder: Core) -> None:
        """Stop new deliveries on the link, and end the link once all earlier ones are settled."""
        if self.is_leaving:
            return
        self.is_leaving = True
        if self.is_over:
            self.give_up(forwarder)
            self.remove_placeholder(forwarder)
        elif self.consumer is not None:
            # messages of the tree no longer go to this link
            self.consumer.tree = NO_TREE
            forwarder.credit.note(self.subtree.address, None)
            self.multicast.leaving[self] = None

    @property
    def is_agreed(self) -> bool:
        """Return whether the child accepts messages on the link, or has accepted some before."""
        link = self.link
        return not self.is_over and link is not None and (link.credit > 0 or link.deliveries > 0)

    def end_if_quiet(self) -> bool:
        """End the link if no delivery waits or is unsettled; return whether the link has ended.

        If the child has never granted credit, the waiting messages are given up first, because the
        child may see a different tree.
        """
        link, consumer = self.link, self.consumer
        if self.is_over or link is None or consumer is None:
            return True
        if not self.is_agreed:
            self.give_up(self.multicast.forwarder)
        if consumer.waiting.count or link.unsettled or link.current is not None:
            return False
        self.detach()
        return True

    def give_up(self, forwarder: Core) -> None:
        """Give up the messages waiting for this link: no receiver in its branch will get them."""
        if self.consumer is not None and self.consumer.waiting.count:
            detach.give_up_waiting(forwarder, self.consumer)

    def remove_placeholder(self, forwarder: Core) -> None:
        """Remove the consumer that stands in for the lost link."""
        consumer, self.consumer = self.consumer, None
        if consumer is not None:
            detach.remove_consumer(forwarder, consumer)
            forwarder.credit.note(self.subtree.address, None)


def receiving(routers: Collection[str], wanted: Collection[str]) -> list[str]:
    """Return which of `routers` are in `wanted`, in time linear in the smaller of the two."""
    fewer, others = (routers, wanted) if len(routers) < len(wanted) else (wanted, routers)
    return [router for router in fewer if router in others]
