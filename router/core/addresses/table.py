"""Address table: the addresses in use, and the treatment of each name.

An address exists while a link is attached to it or a delivery waits at it; its counts are kept when
it is removed. Clients may write the same address in several ways: `amqp://host:port/orders`,
`/orders` and `orders/` all mean `orders`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from router.amqp.redirects import Redirect
from router.core.addresses.redirects import Redirects
from router.core.addresses.related import tie, untie
from router.core.addresses.rules import TREATMENTS, AddressRule, Rules
from router.core.model.address import (
    BALANCED,
    CLOSEST,
    FALLBACK,
    PHASES,
    UNAVAILABLE,
    Address,
    key_of,
)
from router.core.model.counters import Counters
from router.core.routers import router_traffic
from router.errors import AmqpError

if TYPE_CHECKING:
    from router.core.addresses.tenants import Tenant

# Characters that are replaced when a client's name becomes part of a dynamic node's name.
_NO_WORD = re.compile(r"[^A-Za-z0-9_-]+")
MAX_WORD = 32
# Most addresses in one table; further ones go into another table. A table that grows is copied in
# one step, name by name, which takes some 40 ms for 90,000 names where memory is slow
# (docs/decisions/0038-changes-under-traffic.md).
MOST_IN_A_TABLE = 20_000
# Beginning of the names of addresses that are at one router alone, as its own clients know them.
LOCAL = "_local/"
_AUTHORITY = re.compile(r"^amqps?:(//[^/]*)?/?", re.IGNORECASE)


def address_name(text: str) -> str:
    """Return the name in an address text, without scheme, authority and outer separators."""
    return _AUTHORITY.sub("", text).lstrip("/").rstrip("/.")


def path_of(text: str) -> str:
    """Return an address text without its scheme and authority."""
    return _AUTHORITY.sub("", text)


def _word(name: str) -> str:
    """Shorten a name and replace its separators, for use as a part of another name."""
    return _NO_WORD.sub("-", name)[:MAX_WORD]


class AddressTable:
    """Table of a router's addresses.

    `rules` decide the treatment of each name, and `redirects` list the names that are served at
    another place; both can be replaced as a whole. `new_name` returns a name for a dynamic node: it
    is hard to guess, and ends with the function's argument.
    """

    def __init__(
        self,
        rules: Iterable[AddressRule],
        default_treatment: str,
        new_name: Callable[[str], str],
        redirects: Redirects | None = None,
    ) -> None:
        self.redirects = Redirects() if redirects is None else redirects
        # addresses by key (`key_of`)
        self._in_use: dict[str, Address] = {}
        # full tables of addresses entered earlier, if there are very many
        self._full: list[dict[str, Address]] = []
        # keys in use that have become unavailable to new links
        self._closed: set[str] = set()
        self.rules = Rules(rules, default_treatment)
        # how many auto-links each name has
        self._auto_links: Counter[str] = Counter()
        # names of nodes that are the router's own, each with the main name of its node
        self._own_nodes: dict[str, str] = {}
        self._new_name = new_name
        # what stands for the prefix `_local/` in names: the prefix by which other routers know the
        # addresses of this router alone
        self.place = ""
        # total counts of addresses that are no longer in use; addresses whose keys are in `kept`
        # have separate counts
        self.retired = Counters()
        self.kept: dict[str, Counters] = {}
        # internal addresses that connect the two ends of a routed link, one for each link
        self.routed: dict[Address, None] = {}
        # the transit addresses, for messages that go through this router to others, by destination,
        # key and lane; they are not found by name
        self.transit: dict[tuple[str, str, object], Address] = {}
        # returns the treatment of a name that no rule here matches, if another router knows one
        self.hint: Callable[[str], int | None] = lambda _: None
        # placeholder for unused addresses; it never has a consumer
        self.unused = Address("", BALANCED)

    def treatment_wanted(self, address: Address) -> int:
        """Return the treatment that the current rules give an address; close or reopen the address.

        An address whose treatment is UNAVAILABLE is closed: `enter` and `find` refuse it.
        """
        treatment = address.treatment if address.is_dynamic else self.treatment(address.name)
        if treatment == UNAVAILABLE:
            self._closed.add(address.key)
            return treatment
        self._closed.discard(address.key)
        return BALANCED if address.phase == FALLBACK else treatment

    def whole_name(self, name: str) -> str:
        """Return the name by which all routers know an address of this router alone (`_local/`).

        Any other name is returned unchanged.
        """
        if self.place and name.startswith(LOCAL):
            return self.place + name[len(LOCAL) :]
        return name

    def addresses(self) -> Iterator[Address]:
        """Return an iterator over the addresses in use now."""
        return iter(list(chain.from_iterable(table.values() for table in self._tables())))

    def __len__(self) -> int:
        return sum(map(len, self._tables()))

    def _tables(self) -> list[dict[str, Address]]:
        return [*self._full, self._in_use]

    def _used(self, key: str) -> Address | None:
        """Return the address in use with this key (`model.address.key_of`), or None."""
        address = self._in_use.get(key)
        if address is None:
            for table in self._full:
                address = table.get(key)
                if address is not None:
                    break
        return address

    def _use(self, address: Address) -> None:
        """Add an address, whose key no other address in use has."""
        if len(self._in_use) >= MOST_IN_A_TABLE:
            self._full.append(self._in_use)
            self._in_use = {}
            self._merge()
        self._in_use[address.key] = address

    def _merge(self) -> None:
        """Merge two adjacent dicts of `_full` that fit into one, so that there are never many."""
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
        """Return the treatment of a name, according to the most specific rule."""
        return self._treatment(name, self.rules.match(name))

    def rule_of(self, name: str) -> AddressRule | None:
        """Return the most specific rule that matches a name, or None."""
        return self.rules.match(name)

    def redirect_for(
        self, name: str, *, is_sender: bool, tenant: Tenant | None = None
    ) -> Redirect | None:
        """Return the redirect for links of a tenant to this name, without counting it as issued.

        Return None if there is none.
        """
        if not self.redirects.concern_addresses or self.is_local_only(name):
            return None
        return self.redirects.redirect_for(name, is_sender=is_sender, tenant=tenant)

    def _treatment(self, name: str, rule: AddressRule | None) -> int:
        treatment = self._treatment_by_rule(name, rule)
        return BALANCED if treatment == UNAVAILABLE and self._auto_links[name] else treatment

    def needs_auto_links(self, name: str) -> bool:
        """Return whether a name is available only while it has auto-links."""
        return self._treatment_by_rule(name, self.rules.match(name)) == UNAVAILABLE

    def _treatment_by_rule(self, name: str, rule: AddressRule | None) -> int:
        if name in self._own_nodes and (rule is None or address_name(rule.pattern) != name):
            # a pattern that happens to match does not apply to the router's own nodes
            return CLOSEST
        if rule is None:
            # Names such as $management and $cbs belong to services; if they were routed to any
            # receiver that attaches there, a client would receive its own requests.
            hint = UNAVAILABLE if name.startswith("$") else self.hint(name)
            return self.rules.default if hint is None else hint
        return TREATMENTS[rule.treatment]

    def set_auto_links(self, auto_links: Counter[str]) -> Counter[str]:
        """Set how many auto-links are configured for each name; return the former counts.

        A name that has auto-links is available even if its rule says `unavailable`. The caller then
        calls `auto_links_changed` for each name that got its first or lost its last auto-link.
        """
        before, self._auto_links = self._auto_links, auto_links
        return before

    def auto_links_changed(self, name: str) -> None:
        """Allow or refuse new links to a name that has gained or lost its auto-links."""
        for phase in PHASES:
            address = self._used(key_of(name, phase))
            if address is not None:
                self.treatment_wanted(address)

    def add_own_node(self, name: str, *others: str) -> None:
        """Add a node of the router itself under `name`, with `others` as further names.

        Only a rule for exactly `name` applies to the node; patterns that match the name do not.
        """
        for each in (name, *others):
            self._own_nodes[each] = name

    def is_own_node(self, text: str) -> bool:
        """Return whether this address text names a node of the router itself."""
        return address_name(text) in self._own_nodes

    def dead_letter_of(self, name: str) -> str | None:
        """Return the name of an address's dead-letter address, or None if it has none.

        A dead-letter address never has a dead-letter address itself: a message is moved only once.
        """
        if not self.rules.has_dead_letters or self.rules.is_dead_letter(name):
            return None
        rule = self.rules.match(name)
        return None if rule is None else rule.dead_letter

    def redirect_link(
        self, text: str, shown: str, *, is_sender: bool, tenant: Tenant | None = None
    ) -> AmqpError | None:
        """Return the error for a link to a redirected address; None if it is not redirected.

        `shown` is the address as the peer knows it, and `tenant` the peer's tenant.
        """
        name = address_name(text)
        if not self.redirects.concern_addresses or self.is_local_only(name):
            return None
        return self.redirects.error_for_link(
            name, path_of(shown), is_sender=is_sender, tenant=tenant
        )

    def redirect_message(
        self, text: str, shown: str, *, tenant: Tenant | None = None
    ) -> bytes | None:
        """Return the outcome for a message to a redirected address; None for any other address.

        `shown` is the address as the sender knows it, and `tenant` the sender's tenant.
        """
        if not self.redirects.concern_addresses:
            return None
        name = address_name(text)
        return (
            None
            if self.is_local_only(name)
            else self.redirects.outcome_for_message(name, path_of(shown), tenant=tenant)
        )

    def is_local_only(self, name: str) -> bool:
        """Return whether a name belongs to a node that exists only at this router.

        It is a node of the router itself, or a dynamic node. Such nodes have no waypoints or
        redirects.
        """
        if name in self._own_nodes:
            return True
        address = self._used(name)
        return address is not None and address.is_dynamic

    def phase_of(self, name: str, *, is_sender: bool) -> int:
        """Return the phase at which the rules attach a peer's link to this name."""
        rule = self.rules.match(name)
        if rule is None or self.is_local_only(name):
            return 0
        return rule.ingress_phase if is_sender else rule.egress_phase

    def enter(self, text: str, phase: int = 0, *, is_fallback: bool = False) -> Address | None:
        """Return the address for a link that attaches; None if the treatment is `unavailable`.

        If the address is not in use yet, it is created. `phase` is the one configured for the link,
        or the result of `phase_of`. If `is_fallback`, the link belongs to the fallback, and `phase`
        is ignored.
        """
        name = self.whole_name(address_name(text))
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
            self.tie_fallback(address)
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

    def tie_fallback(self, address: Address) -> None:
        """Tie an address to its fallback, or untie them, as the current rule says.

        `address` may be either of the two. Nothing is done while the fallback is not in use. The
        primary address is created if necessary, and stays in use while it is tied.
        """
        name = address.name
        fallback = self._used(key_of(name, FALLBACK))
        if fallback is None:
            return
        rule = self.rules.match(name)
        primary = self._used(name)
        if rule is not None and rule.fallback and not self.is_local_only(name):
            if primary is None:
                primary = self._make(name, 0, self._treatment(name, rule), rule)
            tie(primary, fallback)
        elif primary is not None and primary.related_addresses is not None:
            untie(primary, fallback)
            self.leave(primary)

    def create_dynamic(self, *words: str, treatment: int = BALANCED) -> tuple[str, Address]:
        """Create an address for a dynamic node; return its text for the peer, and the address.

        The name ends with the `words`, which identify the peer; long words are shortened.
        """
        text = self._new_name(".".join(_word(name) for name in words))
        name = address_name(text)
        address = Address(name, treatment)
        address.is_dynamic = True
        self._use(address)
        return text, address

    def find(self, text: str, phase: int = 0) -> Address | None:
        """Return the address that an address text names, without adding it to the table.

        Return None if the address is unavailable, and the placeholder `unused` if it is available
        but not in use. `phase` is the phase of the address; 0 stands for the phase at which senders
        attach.
        """
        key = name = self.whole_name(address_name(text))
        if phase or self.rules.ingress_phased:
            key = key_of(name, phase or self.phase_of(name, is_sender=True))
        address = self._in_use.get(key)
        if address is None and self._full:
            address = self._used(key)
        if address is not None:
            return None if self._closed and key in self._closed else address
        if self._own_nodes.get(name, name) != name:
            return self.find(self._own_nodes[name])
        return None if self.treatment(name) == UNAVAILABLE else self.unused

    def in_use(self, name: str, phase: int = 0) -> Address | None:
        """Return the address with this name and phase, or None if it is not in use."""
        return self._used(key_of(name, phase))

    def is_in_use(self, address: Address) -> bool:
        """Return whether the table contains this very object, not another address with its name."""
        return self._used(address.key) is address

    def own_name(self, name: str) -> str:
        """Return the main name of a node of the router itself; return any other name unchanged."""
        return self._own_nodes.get(name, name)

    def leave(self, address: Address) -> None:
        """Remove an address unless it is still used."""
        if address.producers or address.consumers or address.resuming:
            return
        if address.waiting or address.creator:
            return
        ties = address.related_addresses
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
            # the latencies of deliveries that left it in this turn are counted at the turn's end
            address.successor = heir

    def enter_routed(self, address: Address) -> None:
        """Add the address of a routed link, so that the router's counts include its traffic."""
        self.routed[address] = None

    def leave_routed(self, address: Address) -> None:
        """Remove the address of a routed link that has ended, and keep its counts."""
        if address in self.routed:
            del self.routed[address]
            router_traffic.add(self.retired, address)
            address.successor = self.retired

    def all_addresses(self) -> list[Address]:
        """Return every address in use, including the transit addresses to other routers."""
        return [*self.addresses(), *self.transit.values()]

    def total(self) -> Counters:
        """Return the router's counts so far, summed over all addresses."""
        total = Counters()
        total.add(self.retired)
        total.add(self.unused.counters)
        for counters in self.kept.values():
            total.add(counters)
        for address in (*self.all_addresses(), *self.routed):
            router_traffic.add(total, address)
        return total
