"""The address table: which addresses are in use, and how each name is treated.

An address exists while a link is attached to it or a delivery waits at it; what it has counted is
kept when it goes. Addresses come as clients write them: `amqp://host:port/orders`, `/orders` and
`orders/` all mean `orders`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from router.amqp.redirects import Redirect
from router.core.address import (
    BALANCED,
    CLOSEST,
    FALLBACK,
    PHASES,
    UNAVAILABLE,
    Address,
    key_of,
)
from router.core.counters import Counters
from router.core.network import through
from router.core.redirects import Redirects
from router.core.rules import TREATMENTS, AddressRule, Rules
from router.core.ties import tie, untie
from router.errors import AmqpError

# What a client says of itself, in the name of a dynamic node made for it.
_NO_WORD = re.compile(r"[^A-Za-z0-9_-]+")
MAX_WORD = 32
# From so many addresses on the next ones are entered into another table: one that grows is copied
# at once, and each name looked at, which takes some 40 ms for 90,000 where memory is slow
# (docs/decisions/0038-changes-under-traffic.md).
MOST_IN_A_TABLE = 20_000
_AUTHORITY = re.compile(r"^amqps?:(//[^/]*)?/?", re.IGNORECASE)


def address_name(text: str) -> str:
    """The name an address text means, without scheme, authority and outer separators."""
    return _AUTHORITY.sub("", text).lstrip("/").rstrip("/.")


def path_of(text: str) -> str:
    """An address text without the scheme and authority, which are those of this router."""
    return _AUTHORITY.sub("", text)


def _word(name: str) -> str:
    """A name as a part of another: without what separates parts, and not too long."""
    return _NO_WORD.sub("-", name)[:MAX_WORD]


class AddressTable:
    """All addresses of a router.

    The `rules` say how names are treated; `new_name` makes hard-to-guess names for dynamic nodes,
    which end with what it is given; `redirects` are of addresses, or hosts, that are elsewhere.
    Other rules, or redirects, take the place of these as a whole.
    """

    def __init__(
        self,
        rules: Iterable[AddressRule],
        default_treatment: str,
        new_name: Callable[[str], str],
        redirects: Redirects | None = None,
    ) -> None:
        self.redirects = Redirects() if redirects is None else redirects
        # by `key_of` their names and phases
        self._in_use: dict[str, Address] = {}
        # where there are very many, those that were entered before
        self._full: list[dict[str, Address]] = []
        # the keys in use that have become unavailable to whoever does not use them yet
        self._closed: set[str] = set()
        self.rules = Rules(rules, default_treatment)
        # how many auto-links each name has
        self._claims: Counter[str] = Counter()
        # the names of nodes that are the router's own, each with the one that stands for it
        self._own_nodes: dict[str, str] = {}
        self._new_name = new_name
        # what addresses counted that are no longer in use; those whose keys are in `kept` each on
        # its own
        self.retired = Counters()
        self.kept: dict[str, Counters] = {}
        # where the ends of routed links meet, each with its own
        self.routed: dict[Address, None] = {}
        # the ways through this router to others, by destination, key and lane: nobody finds them
        self.transit: dict[tuple[str, str, Any], Address] = {}
        # how a name is treated that no rule says anything of, if that is known elsewhere
        self.hint: Callable[[str], int | None] = lambda _: None
        # where messages go whose address nobody uses; it never has a consumer
        self.nowhere = Address("", BALANCED)

    def treatment_wanted(self, address: Address) -> int:
        """How an address in use would be treated if it came to be now; new links to one that would
        be unavailable are refused from now on.
        """
        treatment = address.treatment if address.is_dynamic else self.treatment(address.name)
        if treatment == UNAVAILABLE:
            self._closed.add(address.key)
            return treatment
        self._closed.discard(address.key)
        return BALANCED if address.phase == FALLBACK else treatment

    def addresses(self) -> Iterator[Address]:
        """Every address in use."""
        return iter(list(chain.from_iterable(table.values() for table in self._tables())))

    def __len__(self) -> int:
        return sum(map(len, self._tables()))

    def _tables(self) -> list[dict[str, Address]]:
        return [*self._full, self._in_use]

    def _used(self, key: str) -> Address | None:
        """The address in use with this key."""
        address = self._in_use.get(key)
        if address is None:
            for table in self._full:
                address = table.get(key)
                if address is not None:
                    break
        return address

    def _use(self, address: Address) -> None:
        """Have an address be in use, whose key is not."""
        if len(self._in_use) >= MOST_IN_A_TABLE:
            self._full.append(self._in_use)
            self._in_use = {}
            self._merge()
        self._in_use[address.key] = address

    def _merge(self) -> None:
        """Make one table of two that have room in one, so that there are never many."""
        for at, table in enumerate(self._full[:-1]):
            following = self._full[at + 1]
            if len(table) + len(following) <= MOST_IN_A_TABLE:
                table.update(following)
                del self._full[at + 1]
                return

    def _use_no_more(self, key: str) -> None:
        if self._in_use.pop(key, None) is None:
            for table in self._full:
                if table.pop(key, None) is not None:
                    break
            self._full = [table for table in self._full if table]

    def treatment(self, name: str) -> int:
        """How a name is treated, by the most specific rule."""
        return self._treatment(name, self.rules.match(name))

    def rule_of(self, name: str) -> AddressRule | None:
        """The most specific rule that matches a name, if one does."""
        return self.rules.match(name)

    def place_of(self, name: str, *, is_sender: bool) -> Redirect | None:
        """Where links to this name are sent, if anywhere; nobody is sent there by asking."""
        if not self.redirects.concern_addresses or self.is_here_alone(name):
            return None
        return self.redirects.place_of(name, is_sender=is_sender)

    def _treatment(self, name: str, rule: AddressRule | None) -> int:
        if name in self._own_nodes and (rule is None or address_name(rule.pattern) != name):
            # a pattern that happens to match does not mean what the router itself answers at
            return CLOSEST
        if rule is None:
            # Names such as $management and $cbs belong to services; routed to whoever attaches
            # to them, a client would receive its own requests.
            hint = UNAVAILABLE if name.startswith("$") else self.hint(name)
            treatment = self.rules.default if hint is None else hint
        else:
            treatment = TREATMENTS[rule.treatment]
        return BALANCED if treatment == UNAVAILABLE and self._claims[name] else treatment

    def claim(self, claims: Counter[str]) -> Counter[str]:
        """From now on addresses are available by these names, whatever the rules say, and by no
        others for this reason: so many auto-links are at each, or will be. `claims_changed` has to
        be said of the names that were not claimed, or are not any more. Returns those before.
        """
        before, self._claims = self._claims, claims
        return before

    def claims_changed(self, name: str) -> None:
        """Another number of auto-links is at a name, or none, or the first: see who may use it."""
        for phase in PHASES:
            address = self._used(key_of(name, phase))
            if address is not None:
                self.treatment_wanted(address)

    def add_own_node(self, name: str, *others: str) -> None:
        """From now on `name` is a node of the router's own, and `others` mean the same one.

        It can be used where no rule for this very name says otherwise; who receives from it,
        `linking` decides.
        """
        for each in (name, *others):
            self._own_nodes[each] = name

    def is_own_node(self, text: str) -> bool:
        """Whether this address text means a node that is the router's own."""
        return address_name(text) in self._own_nodes

    def dead_letter_of(self, name: str) -> str | None:
        """The name of the address that what has expired at this one goes to, or None.

        A dead-letter address has none of its own: a message is moved once.
        """
        if not self.rules.has_dead_letters or self.rules.is_dead_letter(name):
            return None
        rule = self.rules.match(name)
        return None if rule is None else rule.dead_letter

    def redirect_link(self, text: str, *, is_sender: bool) -> AmqpError | None:
        """What to refuse a link to this address with because the address is elsewhere, or None."""
        name = address_name(text)
        if not self.redirects.concern_addresses or self.is_here_alone(name):
            return None
        return self.redirects.of_link(name, path_of(text), is_sender=is_sender)

    def redirect_message(self, text: str) -> bytes | None:
        """The outcome of a single message to this address, if the address is elsewhere."""
        if not self.redirects.concern_addresses:
            return None
        name = address_name(text)
        return None if self.is_here_alone(name) else self.redirects.of_message(name, path_of(text))

    def is_here_alone(self, name: str) -> bool:
        """Whether the name is that of a node which is here and nowhere else: it has no waypoints,
        and nobody is sent anywhere else for it.
        """
        if name in self._own_nodes:
            return True
        address = self._used(name)
        return address is not None and address.is_dynamic

    def phase_of(self, name: str, *, is_sender: bool) -> int:
        """The phase at which who sends to this name enters, or who receives from it."""
        rule = self.rules.match(name)
        if rule is None or self.is_here_alone(name):
            return 0
        return rule.ingress_phase if is_sender else rule.egress_phase

    def enter(self, text: str, phase: int = 0, *, is_fallback: bool = False) -> Address | None:
        """The address for a link that attaches; None where the treatment is `unavailable`.

        `phase` is that of a link which is told where to enter, or what `phase_of` says; a link
        that receives what nobody else does enters as a fallback, at no phase.
        """
        name = address_name(text)
        key = key_of(name, FALLBACK if is_fallback else phase)
        address = self._used(key)
        if address is None and key in self._own_nodes:
            name = key = self._own_nodes[key]
            address = self._used(key)
        if address is None:
            rule = self.rules.match(name)
            treatment = self._treatment(name, rule)
            if treatment == UNAVAILABLE:
                return None
            address = self._make(name, FALLBACK if is_fallback else phase, treatment, rule)
            self.pair(address)
        return None if self._closed and key in self._closed else address

    def _make(self, name: str, phase: int, treatment: int, rule: AddressRule | None) -> Address:
        address = Address(
            name,
            BALANCED if phase == FALLBACK else treatment,
            redelivers=rule is None or rule.redelivers,
            phase=phase,
        )
        if rule is not None:
            address.priority = rule.priority
            address.drop_after_s = rule.drop_after_s
        self._use(address)
        return address

    def pair(self, address: Address) -> None:
        """Tie an address in use to its fallback, or its fallback to it, as its rule says by now.

        An address is in use as long as it has a fallback, so that messages find their way to it.
        """
        name = address.name
        fallback = self._used(key_of(name, FALLBACK))
        if fallback is None:
            return
        rule = self.rules.match(name)
        primary = self._used(name)
        if rule is not None and rule.fallback and not self.is_here_alone(name):
            if primary is None:
                primary = self._make(name, 0, self._treatment(name, rule), rule)
            tie(primary, fallback)
        elif primary is not None and primary.ties is not None:
            untie(primary, fallback)
            self.leave(primary)

    def enter_dynamic(self, *words: str, treatment: int = BALANCED) -> tuple[str, Address]:
        """A new address for one link: the text to tell the peer, and the address.

        Its name ends with as much of each word as fits into a name: of whom it is made for.
        """
        text = self._new_name(".".join(_word(name) for name in words))
        name = address_name(text)
        address = Address(name, treatment)
        address.is_dynamic = True
        self._use(address)
        return text, address

    def find(self, text: str, phase: int = 0) -> Address | None:
        """Where a single message goes; `nowhere` when the address is not in use.

        A message that has been at a waypoint goes on at its `phase`; one of phase 0 enters.
        """
        key = name = address_name(text)
        if phase or self.rules.ingress_phased:
            key = key_of(name, phase or self.phase_of(name, is_sender=True))
        address = self._in_use.get(key)
        if address is None and self._full:
            address = self._used(key)
        if address is not None:
            return None if self._closed and key in self._closed else address
        if self._own_nodes.get(name, name) != name:
            return self.find(self._own_nodes[name])
        return None if self.treatment(name) == UNAVAILABLE else self.nowhere

    def in_use(self, name: str, phase: int = 0) -> Address | None:
        """The address of this name and phase, if it is in use."""
        return self._used(key_of(name, phase))

    def is_in_use(self, address: Address) -> bool:
        """Whether this very address is, and not another one that has taken its place."""
        return self._used(address.key) is address

    def own_name(self, name: str) -> str:
        """The name that stands for a node of the router's own; any other name is its own."""
        return self._own_nodes.get(name, name)

    def leave(self, address: Address) -> None:
        """Forget an address if nothing hangs on it any more."""
        if address.producers or address.consumers or address.resuming:
            return
        if address.waiting or address.creator:
            return
        ties = address.ties
        if ties is not None:
            if ties.is_needed():
                return
            if ties.primary is not None:
                primary = ties.primary
                untie(primary, address)
                self.leave(primary)
        if self.is_in_use(address):
            self._use_no_more(address.key)
            self._closed.discard(address.key)
            heir = self.kept.get(address.key, self.retired)
            heir.add(address.counters)
            # how long it took what left it in this turn is known at the turn's end
            address.heir = heir

    def enter_routed(self, address: Address) -> None:
        """Where the ends of a routed link meet: nobody finds it, and what it counts is counted."""
        self.routed[address] = None

    def leave_routed(self, address: Address) -> None:
        """A routed link is over, and has counted all; nothing happens where it has left before."""
        if address in self.routed:
            del self.routed[address]
            through.add(self.retired, address)
            address.heir = self.retired

    def all_addresses(self) -> list[Address]:
        """Every address in use, and the ways through to other routers."""
        return [*self.addresses(), *self.transit.values()]

    def total(self) -> Counters:
        """What the router has counted so far, over all addresses."""
        total = Counters()
        total.add(self.retired)
        total.add(self.nowhere.counters)
        for counters in self.kept.values():
            total.add(counters)
        for address in (*self.all_addresses(), *self.routed):
            through.add(total, address)
        return total
