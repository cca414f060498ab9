"""Multicasts in a network of routers: one copy a link, along the tree of the router where it began.

Each router makes the links of a tree to its own children, and says by which branch it means each: a
digest of all that lies behind. A child takes what comes only once it sees the same branch as its
parent does, and knows of the receivers there that its parent knows. So all routers of a tree agree
before anything is sent along it, and whatever they think later, what was sent goes to each of them
once: a tree that has changed is another one, and the links of the old one are there until all that
came by them has gone on. (docs/decisions/0063-trees.md.) None of this runs once a message.
"""

from __future__ import annotations

from itertools import count
from typing import Any, Final

from router.core.address import LAST_PHASE, MULTICAST, OWN_TREE, Address
from router.core.network.branch_links import BranchLink, Spread, named
from router.core.network.names import address_in, key_of
from router.core.network.reach import Branch, Tree
from router.core.network.tree_links import Asked, hang, receive
from router.core.ties import has_senders, is_exchange
from router.engine import attaching
from router.engine.link import Link
from router.errors import AmqpError, Scope

# For how long the links of a tree are kept that nobody sends by.
IDLE_S: Final = 10.0
# What a router is told by whose links nothing comes to all any more.
CHANGED: Final = "trioute:route-changed"
# For how long a router is left alone that treats an address in another way.
REFUSED_S: Final = 60.0


class Multicast:
    """The trees of one router, and who sends and receives along them."""

    def __init__(self, forwarder: Any) -> None:
        self.forwarder = forwarder
        # the trees that begin here, by address
        self._own: dict[Address, Spread] = {}
        # those of others, by address, root and digest
        self._passing: dict[tuple[Address, str, bytes], Spread] = {}
        self._passing_at: dict[Address, list[Spread]] = {}
        # links that wait until this router thinks as their senders do
        self._asked: dict[Link, Asked] = {}
        # links of trees that are no more, or that nobody receives by
        self.leaving: dict[BranchLink, None] = {}
        # branches without a link, and until when they are left alone
        self._broken: dict[BranchLink, float] = {}
        self._numbers = count(OWN_TREE + 1)

    @property
    def _reach(self) -> Any:
        return self.forwarder.reach

    # What has changed.

    def attach_received(self, link: Any) -> None:
        """Another router attaches a link of a tree; raises `AmqpError` at link scope where that is
        none. What comes by it is taken as soon as both routers think the same of the tree.
        """
        asked = receive(self.forwarder, link)
        if not self._judge(asked):
            self._asked[link] = asked

    def paths_changed(self) -> None:
        """There are other trees, or other neighbours."""
        for spread in list(self._own.values()):
            self._replant(spread)
        for spread in list(self._passing.values()):
            if self._is_current(spread):
                self._prune(spread)
            elif not all(link.is_agreed for link in spread.branches.values()):
                # a child that has not come to think so until now never will
                self._break_up(spread)
        self._judge_all()

    def wanted_changed(self, key: str) -> None:
        """Other routers receive from an address than did before."""
        told = address_in(key)
        if told is None:
            return
        address = self.forwarder.table.in_use(*told)
        if address is not None:
            self.address_changed(address)
            for spread in list(self._passing_at.get(address, ())):
                self._prune(spread)
        for asked in [each for each in self._asked.values() if each.key == key]:
            self._judge_again(asked)

    def address_changed(self, address: Address) -> None:
        """Who sends to an address has changed, or how it is treated."""
        own = self._own.get(address)
        if self._has_senders(address):
            if own is None:
                self._plant(address)
            else:
                own.idle_since = None
                self._prune(own)
        elif own is not None and own.idle_since is None:
            own.idle_since = self.forwarder.turn.now
        for spread in list(self._passing_at.get(address, ())):
            if not any(each.tree == spread.number for each in address.producers):
                self._uproot(spread)

    def opens_way(self, address: Address) -> bool:
        """Whether others receive what is sent here to an address, for a moment at least; a sender
        of single messages has one.
        """
        own = self._own.get(address)
        if own is None:
            self._plant(address)
            own = self._own.get(address)
        if own is not None and own.idle_since is None and not self._has_senders(address):
            own.idle_since = self.forwarder.turn.now
        return own is not None

    def tree_of(self, address: Address) -> Spread | None:
        """The tree that begins here, if anybody sends."""
        return self._own.get(address)

    def is_left_out(self, link: BranchLink) -> bool:
        """Whether a branch is done without, for a while."""
        return self._broken.get(link, 0.0) > float(self.forwarder.turn.now)

    def look(self, now: float) -> None:
        """See to what takes its time; to be called now and then."""
        for link in list(self.leaving):
            if link.end_if_quiet():
                self.leaving.pop(link, None)
        for spread in list(self._own.values()):
            if spread.idle_since is not None and now - spread.idle_since >= IDLE_S:
                self._rest(spread, now)
        for broken, until in list(self._broken.items()):
            if until <= now:
                self._mend(broken)
        for asked in list(self._asked.values()):
            if asked.link.is_lost():
                del self._asked[asked.link]
            elif asked.is_patient and asked.patient_until <= now:
                self._judge_again(asked)

    def _rest(self, spread: Spread, now: float) -> None:
        """No sender has a link to an address: give up its tree, unless messages come even so."""
        carried = sum(each.link.deliveries for each in spread.branches.values() if each.link)
        if carried == spread.carried:
            self._uproot(spread)
        else:
            spread.carried, spread.idle_since = carried, now

    # What others think.

    def _judge_all(self) -> None:
        for asked in list(self._asked.values()):
            self._judge_again(asked)

    def _judge_again(self, asked: Asked) -> None:
        if asked.link.is_lost() or self._judge(asked):
            self._asked.pop(asked.link, None)

    def _judge(self, asked: Asked) -> bool:
        """Take what comes by a link if its sender sees the tree as this router does."""
        address = asked.enter(self.forwarder)
        if address is None:
            return False
        tree: Tree | None = self._reach.tree(asked.origin)
        if tree is None or tree.digest != asked.digest or not self._knows(asked):
            self.forwarder.table.leave(address)
            return False
        where = address, asked.origin, asked.digest
        spread = self._passing.get(where)
        if spread is None:
            spread = self._passing[where] = Spread(address, asked.key, tree, next(self._numbers))
            self._passing_at.setdefault(address, []).append(spread)
        hang(self.forwarder, asked, address, spread.number)
        self._prune(spread)
        return True

    def _knows(self, asked: Asked) -> bool:
        """Whether all who receive, as the sender of a link has heard, are known here; one of them
        may have left of late, and so this is not waited for without end.
        """
        wanted = self._reach.wanted.get(asked.key, {})
        if all(router in wanted or router == self._reach.me for router in asked.receivers):
            return True
        now = self.forwarder.turn.now
        return asked.has_waited(now)

    # Trees.

    def _has_senders(self, address: Address) -> bool:
        return address.treatment == MULTICAST and has_senders(address)

    def _plant(self, address: Address) -> None:
        """Make the tree that begins here, if anybody is in it."""
        key = key_of(address)
        tree = self._reach.tree(self._reach.me)
        if tree is None or address.phase > LAST_PHASE or not self._reach.wanted.get(key):
            return
        if address.treatment != MULTICAST or is_exchange(address):
            return
        spread = self._own[address] = Spread(address, key, tree, OWN_TREE)
        self._prune(spread)

    def _replant(self, spread: Spread) -> None:
        """What is sent here goes along another tree from now on, if it is another."""
        tree = self._reach.tree(self._reach.me)
        if tree is None:
            self._uproot(spread)
            return
        spread.tree = tree
        now = {branch.child: branch for branch in tree.branches}
        for child, link in list(spread.branches.items()):
            connection = self._reach.connection(child)
            branch = now.get(child)
            if (
                branch is None
                or branch.digest != link.branch.digest
                or (connection is not None and connection is not link.connection)
            ):
                self._cut(spread, link)
        self._prune(spread)

    def _is_current(self, spread: Spread) -> bool:
        """Whether a tree is still as this router sees it. One that is not stays as it is until all
        that was sent along it has come through: it may have routers that cannot be reached now.
        """
        tree: Tree | None = self._reach.tree(spread.tree.root)
        return tree is not None and tree.digest == spread.tree.digest

    def _prune(self, spread: Spread) -> None:
        """Have a link to each child in whose branch somebody receives, and to no other."""
        if not self._is_current(spread):
            return
        wanted = self._reach.wanted.get(spread.key, {})
        for branch in spread.tree.branches:
            receivers = named(branch.routers, wanted)
            link = spread.branches.get(branch.child)
            shows = any(wanted[router].shows for router in receivers)
            if not receivers:
                if link is not None:
                    self._cut(spread, link)
            elif link is None:
                self._branch_out(spread, branch, receivers, shows)
            elif link.shows != shows and link.consumer is not None:
                link.shows = link.consumer.shows_passage = shows
        if not spread.branches and spread.number == OWN_TREE:
            self._own.pop(spread.address, None)

    def _branch_out(
        self,
        spread: Spread,
        branch: Branch,
        receivers: list[str],
        shows: bool,
        before: BranchLink | None = None,
    ) -> None:
        connection = self._reach.connection(branch.child)
        if connection is None or not connection.is_open():
            return
        link = BranchLink(self, spread, branch, receivers, shows, before)
        spread.branches[branch.child] = link
        try:
            link.begin(connection)
        except AmqpError:
            # no channel is left, or the like: it is tried again
            spread.branches.pop(branch.child)
            if before is not None:
                spread.branches[branch.child] = before

    def _cut(self, spread: Spread, link: BranchLink) -> None:
        """Nothing new goes by a link."""
        if spread.branches.get(link.branch.child) is link:
            del spread.branches[link.branch.child]
        self._broken.pop(link, None)
        link.leave(self.forwarder)

    def _uproot(self, spread: Spread) -> None:
        """Nobody sends along a tree any more."""
        address = spread.address
        if self._own.get(address) is spread:
            del self._own[address]
        else:
            self._passing.pop((address, spread.tree.root, spread.tree.digest), None)
            others = self._passing_at.get(address, [])
            if spread in others:
                others.remove(spread)
            if not others:
                self._passing_at.pop(address, None)
        for link in list(spread.branches.values()):
            self._cut(spread, link)
        self.forwarder.table.leave(address)

    # What becomes of links.

    def is_over(self, link: BranchLink) -> None:
        """A link that had taken its leave is detached, or lost."""
        self.leaving.pop(link, None)

    def is_broken(self, link: BranchLink) -> None:
        """A link is lost, and its place is kept."""
        self._broken[link] = self.forwarder.turn.now

    def is_refused(self, link: BranchLink) -> None:
        """A router does not take part in a multicast: it is done without."""
        self._broken[link] = self.forwarder.turn.now + REFUSED_S

    def is_orphaned(self, link: BranchLink) -> None:
        """The last that had to do with an address was a link, and it is lost."""
        self._uproot(link.spread)

    def _break_up(self, spread: Spread) -> None:
        """A branch of a tree that is no more has broken: nothing can come by it to all."""
        if self._own.get(spread.address) is spread:
            self._uproot(spread)
            return
        gone = AmqpError(CHANGED, "the tree is another one by now", Scope.LINK)
        for producer in list(spread.address.producers):
            if producer.tree == spread.number:
                attaching.detach(producer.link, True, gone)
        self._uproot(spread)

    def _mend(self, link: BranchLink) -> None:
        """Attach a link in the place of one that is lost, or give up what waits for it."""
        spread = link.spread
        if self._broken.pop(link, None) is None:
            # its tree was given up for another branch of it
            return
        if spread.branches.get(link.branch.child) is not link:
            return
        if not self._is_current(spread):
            self._break_up(spread)
            return
        wanted = self._reach.wanted.get(spread.key, {})
        receivers = named(link.branch.routers, wanted)
        self._branch_out(spread, link.branch, receivers, link.shows, link)
        if spread.branches.get(link.branch.child) is link:
            link.give_up(self.forwarder)
            self._broken[link] = self.forwarder.turn.now
