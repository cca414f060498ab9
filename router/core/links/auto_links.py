"""Auto-links: links that the router attaches between one of its addresses and a container's node.

An `AutoLinkRule` is the configured auto-link; each attempt to attach it is an `AutoLink`.
`router.control.auto_links` decides when to attempt one, and when to try again. Nothing here runs
per message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import attrs

from router.amqp.constants import Condition
from router.amqp.performatives import Attach, Error, Source, Target
from router.core.addresses.table import address_name
from router.core.deliveries import source_outcomes
from router.core.links import attach, detach
from router.core.model.address import FALLBACK, Address, Consumer, Producer
from router.core.model.own_links import OwnLink
from router.core.model.peer_outcomes import listed_outcomes
from router.engine.beginning import wire_error
from router.engine.link import IncomingLink, OutgoingLink
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.core.addresses.table import AddressTable
    from router.core.ports import Core


@attrs.frozen
class AutoLinkRule:
    """Configured auto-link.

    If `receives`, messages from the container's node `external_address` go to `address`; otherwise
    messages sent to `address` go to that node. If `phase` is None, `phase_of` chooses it. The
    container is identified by its `container_id`, or by `connection`, the name of a listener or
    connector.
    """

    name: str
    address: str
    receives: bool
    external_address: str
    phase: int | None = None
    is_fallback: bool = False
    container_id: str | None = None
    connection: str | None = None


@attrs.frozen
class AutoLinkChanged:
    """Event: an auto-link became active on a connection, or failed there for a new reason."""

    rule: AutoLinkRule
    status: str
    error: Error | None


class AutoLinkObserver(Protocol):
    """Observer of an attempt to attach an auto-link."""

    def attached(self, auto_link: AutoLink) -> None:
        """Note that the container has answered, and that the link has been added to its address."""

    def over(self, auto_link: AutoLink, error: Error | None) -> None:
        """Note that the link was refused, detached or lost; `error` is the reason, if known."""


# The condition of an auto-link whose container answers without naming a node.
NO_NODE: Final = "trioute:no-node"


class AutoLink(OwnLink):
    """One attempt to attach an auto-link on a connection.

    Each attempt needs a `link_name` of its own.
    """

    # logged by `AutoLinkChanged`, which is not reported at each new attempt
    is_announced = True

    def __init__(self, rule: AutoLinkRule, link_name: str, observer: AutoLinkObserver) -> None:
        node, here = rule.external_address, rule.address
        super().__init__(
            Attach(
                link_name,
                0,
                rule.receives,
                # without outcomes: a broker that supports only some lists these in its answer
                source=Source(address=node if rule.receives else here),
                target=Target(address=here if rule.receives else node),
                initial_delivery_count=None if rule.receives else 0,
            )
        )
        self.rule = rule
        self.observer = observer
        # the link's producer or consumer at the address, once the container has answered
        self.end: Producer | Consumer | None = None
        # why the router detaches the link, if the container is not told
        self._reason: Error | None = None

    def attached(self, forwarder: Core) -> None:
        """Add the link to its address, once the container has answered.

        Detach the link if the container's attach names no source or target, which means that the
        container does not have the node.
        """
        link = self.link
        assert link is not None
        source = link.remote_attach.source
        node = source if self.rule.receives else link.remote_attach.target
        if getattr(node, "address", None) is None:
            words = f"the container's attach names no node for {self.rule.external_address}"
            self._reason = wire_error(AmqpError(NO_NODE, words, Scope.LINK))
            # without an error: some clients close their connection on an error
            self.detach()
            return
        address = enter(forwarder.table, self.rule)
        if address is None:
            reason = f"the address {self.rule.address} is unavailable"
            self.detach(error=AmqpError(Condition.NOT_FOUND, reason, Scope.LINK))
            return
        settings = link.session.connection.settings
        if isinstance(link, IncomingLink):
            producer = Producer(link, address, settings.link_capacity)
            producer.is_fallback = self.rule.is_fallback
            link.session.peer_outcomes = listed_outcomes(source)
            attach.add_producer(forwarder, producer)
            link.owner = self.end = producer
        elif isinstance(link, OutgoingLink):
            consumer = Consumer(link, address)
            consumer.shows_passage = settings.shows_annotations
            link.outcome_terms = _terms(source)
            link.owner = self.end = consumer
            attach.join_consumer(forwarder, consumer)
        self.observer.attached(self)

    def over(self, forwarder: Core, error: Error | None, closed: bool) -> None:
        """Report the end of the attempt to its observer, with the reason if it is known."""
        self.observer.over(self, error or self._reason)

    def quiesce(self, forwarder: Core) -> None:
        """Accept no new deliveries; those already begun are completed and settled."""
        if self.end is not None:
            detach.quiesce(forwarder, self.end)

    def is_at_current_phase(self, table: AddressTable) -> bool:
        """Return whether the link is at the phase that a new attempt would choose now."""
        end = self.end
        if end is None or end.address is None or end.address.phase == FALLBACK:
            return True
        return end.address.phase == phase_of(table, self.rule)


def enter(table: AddressTable, rule: AutoLinkRule) -> Address | None:
    """Return an auto-link's address, added to the table if needed; None if it is unavailable."""
    if not rule.receives and table.is_own_node(rule.address):
        # only the router answers there
        return None
    is_fallback = rule.is_fallback and not rule.receives
    address: Address | None = table.enter(
        rule.address, phase_of(table, rule), is_fallback=is_fallback
    )
    return address


def phase_of(table: AddressTable, rule: AutoLinkRule) -> int:
    """Return the phase at which an auto-link joins its address.

    If no phase is configured, a link to the container gets the phase at which clients send to the
    address. A link from the container gets the next phase, but none later than the phase at which
    clients receive. At a waypoint these are the phases 0 and 1, as in Dispatch.
    """
    if rule.phase is not None:
        return rule.phase
    name = address_name(rule.address)
    ingress: int = table.phase_of(name, is_sender=True)
    if not rule.receives or rule.is_fallback:
        return ingress
    # of a chain of waypoints, the link is to the first one
    return min(ingress + 1, int(table.phase_of(name, is_sender=False)))


def _terms(source: Source | None) -> source_outcomes.OutcomeTerms | None:
    """Return the default outcome for deliveries on an auto-link to a container, as `OutcomeTerms`.

    `source` is the source in the container's attach. Return None if it has no default outcome, or
    one that AMQP does not define. Outcomes that it lists are ignored: every outcome is allowed.
    """
    if source is None or source.default_outcome is None:
        return None
    try:
        return source_outcomes.agreed_terms(attrs.evolve(source, outcomes=()))
    except AmqpError:
        return None
