"""Who is sent elsewhere: the redirects that are configured, and what is said to whom they concern.

A connection is redirected by the hostname of its open, a link by its address, and a message of an
anonymous sender by its `to` (sections 2.8.16 and 2.8.18). Of several redirects that match an
address the most specific one speaks, as with treatments.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from router.amqp.composite import encode_composite
from router.amqp.constants import Condition
from router.amqp.performatives import Rejected
from router.amqp.redirects import Redirect
from router.core.patterns import PatternTree
from router.engine.beginning import wire_error
from router.engine.deferred import emptied
from router.errors import AmqpError, Scope

CONNECTION = "connection"
LINK = "link"
MESSAGE = "message"
KINDS = (CONNECTION, LINK, MESSAGE)

# What an error may take so that it fits into the smallest frame there can be, whatever is around it
# (MIN-MAX-FRAME-SIZE, section 2.8.19).
_FITTING_BYTES = 400


class Redirects:
    """All redirects of a router. `issued` counts them by kind; it only grows."""

    def __init__(self) -> None:
        self._of_hosts: dict[str, Redirect] = {}
        self._of_senders: PatternTree[Redirect] = PatternTree()
        self._of_receivers: PatternTree[Redirect] = PatternTree()
        # whether there is any of addresses: without one, no message is looked at
        self.concern_addresses = False
        self.issued = dict.fromkeys(KINDS, 0)

    def add_host(self, hostname: str, redirect: Redirect) -> None:
        """Send whoever opens a connection to this host elsewhere; hosts have no case."""
        self._of_hosts[hostname.lower()] = redirect

    def add_addresses(
        self, is_prefix: bool, pattern: str, redirect: Redirect, *, senders: bool, receivers: bool
    ) -> None:
        """Send peers' senders, receivers or both elsewhere, by the address they name."""
        self.concern_addresses = True
        concerned = ((senders, self._of_senders), (receivers, self._of_receivers))
        for tree in [tree for is_concerned, tree in concerned if is_concerned]:
            add = tree.add_prefix if is_prefix else tree.add
            add(pattern, redirect)

    def pieces(self) -> Iterator[object]:
        """What they were made of, taken apart piece by piece (`router.engine.deferred`)."""
        yield from emptied(self._of_hosts)
        yield from self._of_senders.pieces()
        yield from self._of_receivers.pieces()

    def place_of_host(self, hostname: str | None) -> Redirect | None:
        """Where the connections of peers are sent that name this host, if anywhere."""
        return self._of_hosts.get((hostname or "").lower())

    def place_of(self, name: str, *, is_sender: bool) -> Redirect | None:
        """Where peers' senders to this address, or receivers from it, are sent, if anywhere."""
        return (self._of_senders if is_sender else self._of_receivers).match(name)

    def of_connection(self, hostname: str | None) -> AmqpError | None:
        """What to close a connection with whose open names this host; None lets it be."""
        redirect = self.place_of_host(hostname)
        if redirect is None:
            return None
        self.issued[CONNECTION] += 1
        return _error(Condition.CONNECTION_REDIRECT, Scope.CONNECTION, redirect, None)

    def of_link(self, name: str, asked: str, *, is_sender: bool) -> AmqpError | None:
        """What to refuse a peer's sender or receiver with; None lets it be.

        `name` is the address's name, `asked` how the peer wrote it: at the place it is sent to the
        address is the same unless the redirect has another.
        """
        redirect = self.place_of(name, is_sender=is_sender)
        if redirect is None:
            return None
        self.issued[LINK] += 1
        return _error(Condition.LINK_REDIRECT, Scope.LINK, redirect, asked)

    def of_message(self, name: str, asked: str) -> bytes | None:
        """The outcome of an anonymous sender's message, encoded; None lets it be."""
        redirect = self._of_senders.match(name)
        if redirect is None:
            return None
        self.issued[MESSAGE] += 1
        error = _error(Condition.LINK_REDIRECT, Scope.LINK, redirect, asked)
        return encode_composite(Rejected(error=wire_error(error)))


def _error(condition: str, scope: Scope, redirect: Redirect, asked: str | None) -> AmqpError:
    """The error; where it is long it goes without what is said twice in it or known to the peer.

    First the description is left out, then the address that the peer itself has named.
    """
    place = redirect if redirect.address else attrs.evolve(redirect, address=asked or None)
    whole = AmqpError(condition, f"go to {place}", scope, place.info())
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
