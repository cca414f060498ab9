"""Report to edge routers whether the addresses that they watch have consumers elsewhere.

An edge watches the addresses that its clients use. It sends messages for such an address to this
router only if there is a consumer at this router, at another edge or at another interior. All
changes of a turn are sent at the end of the turn; if there are very many, some addresses are
examined in later turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from router.amqp.constants import Condition
from router.control.edge.key_streams import KEYS_A_STEP
from router.control.edge.messages import UNKNOWN_TREATMENT, InteriorAddress, Message, Watch, reached
from router.control.network.steps import Steps
from router.core.addresses import related
from router.core.addresses.rules import TREATMENTS
from router.core.forwarding.forward import Forwarder
from router.core.model.address import FALLBACK, LAST_PHASE, MANAGEMENT_WRITERS, Address
from router.core.routers.names import key_of
from router.core.routers.routing_state import (
    EDGE,
    FALLBACK_PHASE,
    MANAGERS_PHASE,
    MOBILE,
    mobile_key,
)
from router.engine.deferred import CHANGES_AT_ONCE, DeferredPass, pop_items
from router.errors import AmqpError

# Most addresses that an edge watches. For all others the edge assumes consumers: if there are none,
# its links to the interior get no credit.
MOST_WATCHED: Final = 200_000
# Work of watching an address, or of no longer doing so (`Steps`).
WORK_A_KEY: Final = 4
# Prefixes of names that contain a location: a router of this area, or an edge.
TOPOLOGICAL: Final = "_topo/0/"
AT_AN_EDGE: Final = "_edge/"


# Characters in a key that stand for a special phase.
_APART: Final = {FALLBACK_PHASE: FALLBACK, MANAGERS_PHASE: MANAGEMENT_WRITERS}


def key_of_address(address: Address) -> str:
    """Return the key under which routers advertise this address."""
    return key_of(address)


def split_key(key: str) -> tuple[str, int]:
    """Return the name and the phase of the address that a key stands for.

    Raises `AmqpError` if the key does not stand for an address.
    """
    phase = key[1:2]
    if key[:1] == MOBILE and len(key) > 2:
        if phase in _APART:
            return key[2:], _APART[phase]
        if phase.isascii() and phase.isdigit() and int(phase) <= LAST_PHASE:
            return key[2:], int(phase)
    raise AmqpError(Condition.INVALID_FIELD, f"the key {key[:64]!r} does not stand for an address")


class EdgeWatches:
    """Record of the addresses that one edge watches, with the state last reported for each.

    `side` is the side of the edge's links; `send` sends a message to the edge.
    """

    def __init__(self, side: int, send: Callable[[Message], None]) -> None:
        self.side = side
        self.send = send
        # the watched keys, each with the state that was last sent to the edge
        self.sent_states: dict[str, tuple[bool, int] | None] = {}
        # keys to examine, and changes to send at the end of the turn
        self.due: dict[str, None] = {}
        self.changed: list[InteriorAddress] = []
        self.check = DeferredPass()
        # whether a message of the edge is being processed, which may cause more changes
        self.is_receiving = False


class Watches:
    """Register of the addresses about which an interior's edges want reports."""

    def __init__(self, forwarder: Forwarder) -> None:
        self.forwarder = forwarder
        self.by_key: dict[str, dict[EdgeWatches, None]] = {}
        # the watched keys whose names contain a location
        self._placed: dict[str, None] = {}
        # watchers with due keys, or with changes to send
        self._due: dict[EdgeWatches, None] = {}
        # prefixes of keys to examine again
        self._starts: dict[str, None] = {}
        self._noting = DeferredPass()
        forwarder.reach.on_wanted.append(self.key_changed)
        forwarder.reach.on_paths.append(self.paths_changed)

    # Messages of edges.

    def receive(self, watcher: EdgeWatches, message: Watch) -> Steps[None]:
        """Add and remove addresses that an edge watches, in steps; report on the added ones later.

        Raises `AmqpError` if a key does not stand for an address, or if the edge watches too many.
        """
        watcher.is_receiving = True
        try:
            for key in message.removed:
                self._remove(watcher, key)
                yield WORK_A_KEY
            for key in message.added:
                self._add(watcher, key)
                yield WORK_A_KEY
        finally:
            watcher.is_receiving = False
        self._note_watcher(watcher)

    def _add(self, watcher: EdgeWatches, key: str) -> None:
        split_key(key)
        if key not in watcher.sent_states and len(watcher.sent_states) >= MOST_WATCHED:
            reason = f"the edge watches more than {MOST_WATCHED} addresses, which is the limit"
            raise AmqpError(Condition.RESOURCE_LIMIT_EXCEEDED, reason)
        watcher.sent_states[key] = None
        self.by_key.setdefault(key, {})[watcher] = None
        if _is_placed(key):
            self._placed[key] = None
        self._note(watcher, key)

    def left(self, watcher: EdgeWatches) -> None:
        """Forget the addresses watched over an uplink that has ended or is no longer active."""
        deferred = self.forwarder.turn.deferred
        states, watcher.sent_states = watcher.sent_states, {}
        deferred.forget(pop_items(watcher.due))
        watcher.due = {}
        watcher.changed.clear()
        self._due.pop(watcher, None)

        def forget(key: str) -> None:
            if key not in watcher.sent_states:
                self._forget(watcher, key)

        deferred.process_each(
            states, forget, lambda: deferred.forget(pop_items(states)), CHANGES_AT_ONCE
        )

    def _remove(self, watcher: EdgeWatches, key: str) -> None:
        if watcher.sent_states.pop(key, False) is False:
            return
        watcher.due.pop(key, None)
        self._forget(watcher, key)

    def _forget(self, watcher: EdgeWatches, key: str) -> None:
        watchers = self.by_key.get(key)
        if watchers is None:
            return
        watchers.pop(watcher, None)
        if not watchers:
            del self.by_key[key]
            self._placed.pop(key, None)

    # Changes.

    def address_changed(self, address: Address) -> None:
        """Note that an address may have gained or lost a consumer at this router."""
        if self.by_key:
            self.key_changed(key_of_address(address))

    def key_changed(self, key: str) -> None:
        """Examine again the watched address with this key.

        If the key stands for an edge, examine the watched addresses at that edge.
        """
        if key.startswith(EDGE):
            for phase in ("0", MANAGERS_PHASE):
                self._note_all(mobile_key(f"{AT_AN_EDGE}{key[1:]}/", phase))
            return
        for watcher in self.by_key.get(key, ()):
            self._note(watcher, key)
        if key.startswith(FALLBACK_PHASE, 1) and key.startswith(MOBILE):
            # a primary address can be forwarded if its fallback has a consumer
            self.key_changed(mobile_key(key[2:]))

    def paths_changed(self) -> None:
        """Examine watched addresses at other routers again, as the reachable routers changed."""
        self._note_all(MOBILE)

    def _note_all(self, start: str) -> None:
        """Examine watched addresses at routers and edges again if their keys begin with `start`."""
        if self._placed:
            self._starts[start] = None
            self._noting.start(self.forwarder.turn.deferred, self._note_placed())

    def _note_placed(self) -> Iterator[None]:
        while self._starts:
            starts, self._starts = tuple(self._starts), {}
            for key in list(self._placed):
                if key.startswith(starts):
                    for watcher in self.by_key.get(key, ()):
                        self._note(watcher, key)
                yield

    def _note(self, watcher: EdgeWatches, key: str) -> None:
        watcher.due[key] = None
        self._note_watcher(watcher)

    def _note_watcher(self, watcher: EdgeWatches) -> None:
        if not self._due:
            # the change may be of an address that is not in use here
            self.forwarder.network.note_edges()
        self._due[watcher] = None

    # Messages to edges.

    def send_changes(self) -> None:
        """Send each edge the changes found so far. Call this at the end of a turn."""
        if not self._due:
            return
        due, self._due = self._due, {}
        for watcher in due:
            if watcher.due:
                watcher.check.start(self.forwarder.turn.deferred, self._check_due(watcher))
            is_busy = watcher.check.is_running or watcher.is_receiving
            if is_busy and len(watcher.changed) < KEYS_A_STEP:
                # wait until there are more changes for one message
                continue
            changed, watcher.changed = watcher.changed, []
            for message in reached(changed):
                watcher.send(message)

    def _check_due(self, watcher: EdgeWatches) -> Iterator[None]:
        """Queue a report on each address in `watcher.due`, unless its state is already reported."""
        while watcher.due:
            keys, watcher.due = watcher.due, {}
            for key in keys:
                if key in watcher.sent_states:
                    now = self.state_of(key, watcher.side)
                    if watcher.sent_states[key] != now:
                        watcher.sent_states[key] = now
                        watcher.changed.append(InteriorAddress(key, *now))
                        self._note_watcher(watcher)
                yield
                # each key takes as much work as two ordinary steps
                yield
        if watcher.changed:
            self._note_watcher(watcher)

    def state_of(self, key: str, side: int) -> tuple[bool, int]:
        """Return whether an address has consumers, and the treatment of the address.

        `key` stands for the address. Consumers at this router do not count if they are on `side`.
        """
        name, phase = split_key(key)
        table = self.forwarder.table
        address = table.in_use(table.own_name(name), 0 if phase == MANAGEMENT_WRITERS else phase)
        rule = table.rule_of(name)
        treatment = UNKNOWN_TREATMENT if rule is None else TREATMENTS[rule.treatment]
        keys = [key]
        if phase == 0 and rule is not None and rule.fallback:
            keys.append(mobile_key(name, FALLBACK_PHASE))
            # the fallback is an address of its own, and may be the only one in use
            address = address or table.in_use(name, FALLBACK)
        places = [place for each in keys for place in self.forwarder.reach.nearest(each)]
        if places and rule is None:
            treatment = places[0][2].treatment
        is_reached = (
            bool(places)
            or (address is not None and self._is_received_here(address, side))
            or self._is_there(name, side)
        )
        return is_reached, treatment

    def _is_received_here(self, address: Address, side: int) -> bool:
        places = (
            [address] if address.related_addresses is None else related.receiving_addresses(address)
        )
        return any(consumer.side != side for place in places for consumer in place.consumers)

    def _is_there(self, name: str, side: int) -> bool:
        """Return whether a name is an address at a router or an edge that can be reached."""
        reach = self.forwarder.reach
        if name.startswith(TOPOLOGICAL):
            router = name[len(TOPOLOGICAL) :].partition("/")[0]
            return reach.path(router) is not None
        if name.startswith(AT_AN_EDGE):
            edge = EDGE + name[len(AT_AN_EDGE) :].partition("/")[0]
            return edge in reach.own_interests or bool(reach.nearest(edge))
        return False


def _is_placed(key: str) -> bool:
    return key.startswith((TOPOLOGICAL, AT_AN_EDGE), 2)
