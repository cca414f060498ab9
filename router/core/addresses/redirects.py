"""Redirects: refuse configured connections, links and messages, and name the place to use instead.

A connection is redirected according to the hostname in its open, a link according to its address,
and a message of an anonymous sender according to its `to` field (sections 2.8.16 and 2.8.18). Of
several redirects that match an address, the most specific one applies, as with treatments. Those
that are meant for another tenant are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from router.amqp.composite import encode_composite
from router.amqp.constants import Condition
from router.amqp.performatives import Rejected
from router.amqp.redirects import Redirect
from router.core.model.patterns import PatternTree
from router.engine.beginning import wire_error
from router.engine.deferred import pop_items
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.core.addresses.tenants import Tenant

CONNECTION = "connection"
LINK = "link"
MESSAGE = "message"
KINDS = (CONNECTION, LINK, MESSAGE)

# Largest size of an error that fits into the smallest frame with everything else that may be in it
# (MIN-MAX-FRAME-SIZE, section 2.8.19).
_FITTING_BYTES = 400


@attrs.frozen
class _OfAddresses:
    """Redirect of the addresses that match a pattern, or that begin with it."""

    pattern: str
    redirect: Redirect


class Redirects:
    """Set of a router's redirects; `issued` counts, by kind, how often they were applied."""

    def __init__(self) -> None:
        self._of_hosts: dict[str, Redirect] = {}
        self._of_senders: PatternTree[_OfAddresses] = PatternTree()
        self._of_receivers: PatternTree[_OfAddresses] = PatternTree()
        # whether any redirect is for addresses; without one, no message is checked
        self.concern_addresses = False
        self.issued = dict.fromkeys(KINDS, 0)

    def add_host(self, hostname: str, redirect: Redirect) -> None:
        """Redirect connections whose open names this host; case is ignored."""
        self._of_hosts[hostname.lower()] = redirect

    def add_addresses(
        self, is_prefix: bool, pattern: str, redirect: Redirect, *, senders: bool, receivers: bool
    ) -> None:
        """Redirect peers' senders, receivers or both, if their address matches a pattern.

        With `is_prefix`, the pattern is a prefix of addresses.
        """
        self.concern_addresses = True
        concerned = ((senders, self._of_senders), (receivers, self._of_receivers))
        for tree in [tree for is_concerned, tree in concerned if is_concerned]:
            add = tree.add_prefix if is_prefix else tree.add
            add(pattern, _OfAddresses(pattern, redirect))

    def pieces(self) -> Iterator[object]:
        """Free discarded redirects in small steps, for `Deferred.forget`; yield after each step."""
        yield from pop_items(self._of_hosts)
        yield from self._of_senders.pieces()
        yield from self._of_receivers.pieces()

    def redirect_of_host(self, hostname: str | None) -> Redirect | None:
        """Return the redirect for connections whose open names this host, or None."""
        return self._of_hosts.get((hostname or "").lower())

    def redirect_for(
        self, name: str, *, is_sender: bool, tenant: Tenant | None = None
    ) -> Redirect | None:
        """Return the redirect for a link of a peer of `tenant` to this address, or None."""
        tree = self._of_senders if is_sender else self._of_receivers
        if tenant is None:
            found = tree.match(name)
        else:
            found = tree.match(name, lambda each: tenant.is_in(each.pattern))
        return None if found is None else found.redirect

    def error_for_connection(self, hostname: str | None) -> AmqpError | None:
        """Return the error that redirects a connection to this host, and count it as issued.

        Return None if connections to the host are not redirected.
        """
        redirect = self.redirect_of_host(hostname)
        if redirect is None:
            return None
        self.issued[CONNECTION] += 1
        return _error(Condition.CONNECTION_REDIRECT, Scope.CONNECTION, redirect, None)

    def error_for_link(
        self, name: str, asked: str, *, is_sender: bool, tenant: Tenant | None = None
    ) -> AmqpError | None:
        """Return the error that redirects a peer's link, and count it as issued.

        Return None if the link is not redirected. `name` is the name of the link's address, and
        `asked` the address as the peer wrote it. The error names `asked`, unless the redirect has
        an address of its own.
        """
        redirect = self.redirect_for(name, is_sender=is_sender, tenant=tenant)
        if redirect is None:
            return None
        self.issued[LINK] += 1
        return _error(Condition.LINK_REDIRECT, Scope.LINK, redirect, asked)

    def outcome_for_message(
        self, name: str, asked: str, *, tenant: Tenant | None = None
    ) -> bytes | None:
        """Return the encoded outcome that redirects an anonymous sender's message, and count it.

        Return None if the message is not redirected. `name` is the name of the message's address,
        and `asked` the address as the peer wrote it.
        """
        redirect = self.redirect_for(name, is_sender=True, tenant=tenant)
        if redirect is None:
            return None
        self.issued[MESSAGE] += 1
        error = _error(Condition.LINK_REDIRECT, Scope.LINK, redirect, asked)
        return encode_composite(Rejected(error=wire_error(error)))


def _error(condition: str, scope: Scope, redirect: Redirect, asked: str | None) -> AmqpError:
    """Return the error of a redirect, shortened if it does not fit into the smallest frame.

    The description is omitted first, and then also the address that the peer wrote.
    """
    place = redirect if redirect.address else attrs.evolve(redirect, address=asked or None)
    whole = AmqpError(condition, f"redirected to {place}", scope, place.info())
    for error in (
        whole,
        AmqpError(condition, "", scope, place.info()),
        AmqpError(condition, "", scope, redirect.info()),
    ):
        if _size(error) <= _FITTING_BYTES:
            return error
    return whole


def _size(error: AmqpError) -> int:
    wired = wire_error(error)
    assert wired is not None
    return len(encode_composite(wired))
