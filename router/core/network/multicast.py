"""Multicast in a network of routers: one copy per link, along the tree of the ingress router.

Each router attaches a link to each of its children in a tree. The attach identifies the child's
branch by a digest of all routers in the branch. A child accepts messages only once it sees the same
branch as its parent, and knows all receivers in it that the parent knows. So all routers of a tree
agree before a message is sent along it. A tree that has changed counts as a new one, and the links
of the old tree are kept until all their messages have been forwarded. So each message reaches each
router once, even if the routers disagree later (docs/decisions/0063-trees.md). Nothing here runs
per message.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Final

from router.core.addresses.related import is_exchange
from router.core.model.address import LAST_PHASE, MULTICAST, OWN_TREE, Address, Producer
from router.core.network.branch_links import BranchLink, MulticastTree, receiving
from router.core.network.broken_branches import BrokenBranches, first
from router.core.network.passing_trees import PassingTrees
from router.core.network.pending_tree_links import PendingTreeLinks
from router.core.network.tree_links import PendingTreeLink, add_sender, receive
from router.core.routers.names import address_in, key_of
from router.core.routers.routing_state import Branch, Tree
from router.engine import attaching
from router.engine.deferred import ITEMS_PER_STEP, DeferredPass
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.core.ports import Core
    from router.core.routers.routing_state import RoutingState
    from router.engine.link import Link

# How long the links of a tree without senders are kept.
IDLE_S: Final = 10.0
# The condition for detaching a link whose messages no longer reach all receivers.
TREE_CHANGED: Final = "trioute:route-changed"
# This many routers in a new tree, or with receivers, count as much work as one address.
ROUTERS_AS_ONE: Final = 16


class Multicast:
    """Manager of one router's multicast trees, and of the links along them.

    Changes are noted, and acted on at the end of the turn; if there are very many, partly in later
    turns. Until then a tree stays as it was.
    """

    def __init__(self, forwarder: Core) -> None:
        self.forwarder = forwarder
        # the trees that begin here, by address
        self._own: dict[Address, MulticastTree] = {}
        # since when each of these has been unused, the longest idle first
        self._idle: OrderedDict[MulticastTree, float] = OrderedDict()
        self._passing = PassingTrees()
        # links that wait until this router sees the same tree as their senders
        self._pending = PendingTreeLinks()
        # links of outdated trees, or without receivers
        self.leaving: dict[BranchLink, None] = {}
        self._broken = BrokenBranches()
        self._numbers = count(OWN_TREE + 1)
        # passing trees and waiting links to examine, the last one first; those noted meanwhile, and
        # the keys of their addresses; and whether to examine all
        self._again: list[MulticastTree | PendingTreeLink] = []
        self._noted: dict[MulticastTree | PendingTreeLink, None] = {}
        self._noted_keys: dict[str, None] = {}
        self._once_more = False
        self._check = DeferredPass()
        # the work done since the last `take_work`, as a number of addresses; and the roots whose
        # trees were computed since paths changed
        self._work = 0
        self._known: set[str] = set()

    @property
    def _reach(self) -> RoutingState:
        return self.forwarder.reach

    # Changes.

    def attach_received(self, link: Link) -> None:
        """Answer a tree link's attach; raise `AmqpError` at link scope if it is invalid.

        The link's messages are accepted as soon as both routers see the same tree.
        """
        pending = receive(self.forwarder, link)
        self._pending.add(pending)
        self._note(pending)

    def paths_changed(self) -> None:
        """Note that paths have changed, so that all trees of other routers are examined again."""
        self._known.clear()
        self._once_more = True
        self.forwarder.network.note_trees()

    def wanted_changed(self, key: str) -> None:
        """Note that other routers have started or stopped receiving from an address."""
        if self._pending or self._passing:
            self._noted_keys[key] = None
            self.forwarder.network.note_trees()

    def sender_left(self, producer: Producer) -> None:
        """Remove a producer that has left, if it was a link of a tree."""
        subtree = self._passing.numbered(producer.tree)
        if subtree is not None and producer in subtree.senders:
            del subtree.senders[producer]
            if not subtree.senders:
                self._note(subtree)

    def _note(self, thing: MulticastTree | PendingTreeLink) -> None:
        self._noted[thing] = None
        self.forwarder.network.note_trees()

    def address_changed(self, address: Address) -> None:
        """Update the tree of an address whose senders, treatment or paths have changed."""
        own = self._own.get(address)
        has_senders = self._has_senders(address)
        if own is not None:
            self._update_own(own)
        elif has_senders:
            self._make_tree(address)
        own = self._own.get(address)
        if own is None:
            return
        if has_senders:
            self._idle.pop(own, None)
        else:
            self._idle.setdefault(own, self.forwarder.turn.now)

    # Work.

    @property
    def is_behind(self) -> bool:
        """Return whether there are noted changes that have not been acted on yet."""
        return bool(self._again or self._noted or self._noted_keys or self._once_more)

    def finish(self, most: int) -> int:
        """Act on noted changes, up to the work for `most` addresses; return the work done."""
        if not self._again:
            self._gather()
        done = 0
        while self._again and done < most:
            thing = self._again.pop()
            if isinstance(thing, PendingTreeLink):
                self._judge_again(thing)
            else:
                self._update_passing(thing)
            done += 1 + self.take_work()
        return done

    def _gather(self) -> None:
        """Find the trees and links that the noted changes concern."""
        keys, self._noted_keys = self._noted_keys, {}
        noted, self._noted = self._noted, {}
        if self._once_more:
            self._once_more = False
            self._again = [*self._passing, *self._pending]
        else:
            self._again = list(noted)
            for key in keys:
                told = address_in(key)
                address = None if told is None else self.forwarder.table.in_use(*told)
                if address is not None:
                    self._again.extend(self._passing.at(address))
                self._again.extend(self._pending.at(key))
        # items are taken from the end, where no others have to be moved
        self._again.reverse()

    def take_work(self) -> int:
        """Return the work done since the last call, measured in addresses."""
        work, self._work = self._work, 0
        return work

    def _tree(self, root: str) -> Tree | None:
        """Return the tree with this root; if the tree is new, count the work of computing it."""
        if root not in self._known and (root in self._reach.paths or root == self._reach.me):
            self._known.add(root)
            self._work += len(self._reach.paths) // ROUTERS_AS_ONE
        tree: Tree | None = self._reach.tree(root)
        return tree

    def _update_passing(self, subtree: MulticastTree) -> None:
        """Update a tree of another router that passes through this router."""
        if subtree not in self._passing:
            return
        if not subtree.senders:
            self._give_up_tree(subtree)
        elif self._is_current(subtree):
            self._prune(subtree)
        elif not all(link.is_agreed for link in subtree.branches.values()):
            # a child that has not agreed by now never will
            self._break_up(subtree)

    def open_route(self, address: Address) -> bool:
        """Make an address's tree for one message; return whether other routers get the message."""
        own = self._own.get(address)
        if own is None:
            self._make_tree(address)
            own = self._own.get(address)
        if own is not None and not self._has_senders(address):
            self._idle.setdefault(own, self.forwarder.turn.now)
        return own is not None

    def tree_of(self, address: Address) -> MulticastTree | None:
        """Return this router's own tree for an address, or None if there is none."""
        return self._own.get(address)

    def is_left_out(self, link: BranchLink) -> bool:
        """Return whether a branch is being skipped because its link was refused."""
        return self._broken.is_left_out(link, self.forwarder.turn.now)

    def tick(self, now: float) -> None:
        """Do all work that is due; called at each periodic check."""
        self._check.start(self.forwarder.turn.deferred, self._check_due())

    def _check_due(self) -> Iterator[None]:
        """Do all work that is due, in steps."""
        now = self.forwarder.turn.now
        for link in list(self.leaving):
            if link in self.leaving and link.end_if_quiet():
                self.leaving.pop(link, None)
            yield
        for subtree in first(self._idle, now - IDLE_S):
            self._rest(subtree, now)
            yield from self._charged()
        for broken in self._broken.due(now):
            self._attach_again(broken)
            yield from self._charged()
        for pending in self._pending.take_overdue(now):
            self._judge_again(pending)
            yield from self._charged()
        self._pending.forget_lost()

    def _charged(self) -> Iterator[None]:
        """Yield once, and once more for each unit of work done since, as `take_work` returns it."""
        for _ in range(1 + self.take_work()):
            yield

    def _rest(self, subtree: MulticastTree, now: float) -> None:
        """Give up a tree without senders, unless it has carried messages since the last check."""
        carried = sum(each.link.deliveries for each in subtree.branches.values() if each.link)
        if carried == subtree.carried:
            self._give_up_tree(subtree)
        else:
            subtree.carried = carried
            self._idle.pop(subtree, None)
            self._idle[subtree] = now

    # Tree links from other routers.

    def _judge_again(self, pending: PendingTreeLink) -> None:
        if pending not in self._pending:
            return
        if pending.link.is_lost() or self._judge(pending):
            self._pending.remove(pending)
        elif pending.is_patient and not pending.has_waited(self.forwarder.turn.now):
            self._pending.wait_for_receivers(pending)

    def _judge(self, pending: PendingTreeLink) -> bool:
        """Accept a link if its sender sees the same tree; return whether it was accepted."""
        address = pending.enter(self.forwarder)
        if address is None:
            return False
        tree = self._tree(pending.origin)
        if tree is None or tree.digest != pending.digest or not self._knows(pending):
            self.forwarder.table.leave(address)
            return False
        subtree = self._passing.find(address, pending.origin, pending.digest)
        if subtree is None:
            subtree = MulticastTree(address, pending.key, tree, next(self._numbers))
            self._passing.add(subtree)
        subtree.senders[add_sender(self.forwarder, pending, address, subtree.number)] = None
        self._prune(subtree)
        return True

    def _knows(self, pending: PendingTreeLink) -> bool:
        """Return whether this router knows all receivers that a link's attach names.

        A receiver may have left recently, so return True after a while in any case.
        """
        wanted = self._reach.wanted.get(pending.key, {})
        if all(router in wanted or router == self._reach.me for router in pending.receivers):
            return True
        now = self.forwarder.turn.now
        return pending.has_waited(now)

    # Trees.

    def _has_senders(self, address: Address) -> bool:
        return bool(address.treatment == MULTICAST and self.forwarder.network.has_senders(address))

    def _make_tree(self, address: Address) -> None:
        """Make this router's own tree for an address, if another router has receivers of it."""
        key = key_of(address)
        tree = self._tree(self._reach.me)
        if tree is None or address.phase > LAST_PHASE or not self._reach.wanted.get(key):
            return
        if address.treatment != MULTICAST or is_exchange(address):
            return
        subtree = self._own[address] = MulticastTree(address, key, tree, OWN_TREE)
        self._prune(subtree)

    def _update_own(self, subtree: MulticastTree) -> None:
        """Update one of this router's own trees: give up the branches that have changed."""
        tree = self._tree(self._reach.me)
        if tree is None:
            self._give_up_tree(subtree)
            return
        subtree.tree = tree
        now = {branch.child: branch for branch in tree.branches}
        for child, link in list(subtree.branches.items()):
            connection = self._reach.connection(child)
            branch = now.get(child)
            if (
                branch is None
                or branch.digest != link.branch.digest
                or (connection is not None and connection is not link.connection)
            ):
                self._cut(subtree, link)
        self._prune(subtree)

    def _is_current(self, subtree: MulticastTree) -> bool:
        """Return whether a tree is still the same as when it was made, as this router sees it.

        An outdated tree is kept until all messages sent along it have been forwarded.
        """
        tree = self._tree(subtree.tree.root)
        return tree is not None and tree.digest == subtree.tree.digest

    def _prune(self, subtree: MulticastTree) -> None:
        """Keep a link to each child whose branch has a receiver, and to no other."""
        if not self._is_current(subtree):
            return
        wanted = self._reach.wanted.get(subtree.key, {})
        for branch in subtree.tree.branches:
            receivers = receiving(branch.routers, wanted)
            self._work += len(receivers) // ROUTERS_AS_ONE
            link = subtree.branches.get(branch.child)
            shows = any(wanted[router].shows for router in receivers)
            if not receivers:
                if link is not None:
                    self._cut(subtree, link)
            elif link is None:
                self._branch_out(subtree, branch, receivers, shows)
            elif link.shows != shows and link.consumer is not None:
                link.shows = link.consumer.shows_passage = shows
        if not subtree.branches and subtree.number == OWN_TREE:
            self._own.pop(subtree.address, None)
            self._idle.pop(subtree, None)

    def _branch_out(
        self,
        subtree: MulticastTree,
        branch: Branch,
        receivers: list[str],
        shows: bool,
        before: BranchLink | None = None,
    ) -> None:
        connection = self._reach.connection(branch.child)
        if connection is None or not connection.is_open():
            return
        self._work += 1
        link = BranchLink(self, subtree, branch, receivers, shows, before)
        subtree.branches[branch.child] = link
        try:
            link.begin(connection)
        except AmqpError:
            # for example, no channel is left: try again later
            subtree.branches.pop(branch.child)
            if before is not None:
                subtree.branches[branch.child] = before

    def _cut(self, subtree: MulticastTree, link: BranchLink) -> None:
        """Remove a link from its tree, so that the link gets no new messages."""
        if subtree.branches.get(link.branch.child) is link:
            del subtree.branches[link.branch.child]
        self._work += 1
        self._broken.forget(link)
        link.retire(self.forwarder)

    def _give_up_tree(self, subtree: MulticastTree) -> None:
        """Give up a tree that no sender uses any more."""
        address = subtree.address
        self._idle.pop(subtree, None)
        if self._own.get(address) is subtree:
            del self._own[address]
        self._passing.remove(subtree)
        for link in list(subtree.branches.values()):
            self._cut(subtree, link)
        self.forwarder.table.leave(address)

    # Ends of links.

    def link_ended(self, link: BranchLink) -> None:
        """Forget a link that was given up, and is now detached or lost."""
        self.leaving.pop(link, None)

    def branch_lost(self, link: BranchLink) -> None:
        """Note that a link was lost, and is to be attached again."""
        self._broken.lose(link, self.forwarder.turn.now)

    def is_refused(self, link: BranchLink) -> None:
        """Skip a branch for a while, because its router has refused the link."""
        self._broken.refuse(link, self.forwarder.turn.now)

    def branch_orphaned(self, link: BranchLink) -> None:
        """Give up the tree of a lost link whose address is no longer in use."""
        self._give_up_tree(link.subtree)

    def _break_up(self, subtree: MulticastTree) -> None:
        """Give up an outdated tree with a broken branch; first detach links from other routers."""
        if self._own.get(subtree.address) is subtree:
            self._give_up_tree(subtree)
            return
        # until the last sender has left, its messages are for the broken branch, too
        self._passing.close(subtree)
        self._work += min(ITEMS_PER_STEP, len(subtree.senders))
        text = f"the multicast tree for the address {subtree.address.name} has changed"
        gone = AmqpError(TREE_CHANGED, text, Scope.LINK)

        def detach(producer: Producer) -> None:
            if producer in subtree.senders and producer.link.is_attached():
                attaching.detach(producer.link, True, gone)

        senders = list(subtree.senders)
        deferred = self.forwarder.turn.deferred
        deferred.process_each(senders, detach, lambda: self._give_up_tree(subtree), ITEMS_PER_STEP)

    def _attach_again(self, link: BranchLink) -> None:
        """Attach a link in place of a lost one, or give up the messages waiting for it."""
        subtree = link.subtree
        if not self._broken.forget(link):
            # its tree was given up because of another branch
            return
        if self._own.get(subtree.address) is subtree:
            self._update_own(subtree)
        if subtree.branches.get(link.branch.child) is not link:
            return
        if not self._is_current(subtree):
            self._break_up(subtree)
            return
        wanted = self._reach.wanted.get(subtree.key, {})
        receivers = receiving(link.branch.routers, wanted)
        self._branch_out(subtree, link.branch, receivers, link.shows, link)
        if subtree.branches.get(link.branch.child) is link:
            link.give_up(self.forwarder)
            self._broken.lose(link, self.forwarder.turn.now)
