"""Auto-links: links that the router attaches between an address of its own and a container's node.

What is wanted is a `Plan`; each attempt at it is an `AutoLink`. When to attempt one, and again, is
decided in `router.control.auto_links`. None of this runs once a message.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import attrs

from router.amqp.constants import Condition
from router.amqp.performatives import Attach, Error, Source, Target
from router.core import linking, parting, terms
from router.core.address import FALLBACK, Address, Consumer, Producer
from router.core.own_links import OwnLink
from router.core.table import address_name
from router.core.vocabulary import vocabulary_of
from router.engine.beginning import wire_error
from router.errors import AmqpError, Scope


@attrs.frozen
class Plan:
    """One auto-link as it is wanted.

    `receives`: the container sends, from its node `external_address`, and what comes goes to
    `address`; otherwise it is sent what is sent to `address`. `phase` None is that of the senders
    or receivers that this link is to serve. The container is named by `container_id`, or else by
    `connection`, which is a listener's or connector's name.
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
    """An auto-link has become active on a connection, or has failed there, for a new reason."""

    plan: Plan
    status: str
    error: Error | None


class Keeper(Protocol):
    """Who wants to know what becomes of an attempt."""

    def attached(self, auto_link: AutoLink) -> None:
        """The container has answered, and the link is at its address."""

    def over(self, auto_link: AutoLink, error: Error | None) -> None:
        """The link was refused, or detached, or lost; `error` says why, if anybody did."""


# Why an auto-link has failed whose container attaches its end without saying to what.
NO_NODE: Final = "trioute:no-node"


class AutoLink(OwnLink):
    """One attempt at an auto-link, on one connection; `link_name` is unlike any before it."""

    # as `AutoLinkChanged`, and not each time that it is tried again
    is_announced = True

    def __init__(self, plan: Plan, link_name: str, keeper: Keeper) -> None:
        node, here = plan.external_address, plan.address
        super().__init__(
            Attach(
                link_name,
                0,
                plan.receives,
                # which outcomes there are is not said: a broker that has fewer says which
                source=Source(address=node if plan.receives else here),
                target=Target(address=here if plan.receives else node),
                initial_delivery_count=None if plan.receives else 0,
            )
        )
        self.plan = plan
        self.keeper = keeper
        # what hangs on the address, once the container has answered
        self.end: Producer | Consumer | None = None
        # why the router itself gives it up, where the container is not told
        self._reason: Error | None = None

    def attached(self, forwarder: Any) -> None:
        """Hang the link on its address, on the terms of the container.

        One that names no node of its own has none: as in Dispatch, nothing is sent there.
        """
        link: Any = self.link
        source = link.remote_attach.source
        node = source if self.plan.receives else link.remote_attach.target
        if getattr(node, "address", None) is None:
            words = f"the container's answer names no node for {self.plan.external_address}"
            self._reason = wire_error(AmqpError(NO_NODE, words, Scope.LINK))
            # without an error: there are clients that close their connection for one
            self.detach()
            return
        address = enter(forwarder.table, self.plan)
        if address is None:
            reason = f"the address {self.plan.address} is unavailable"
            self.detach(error=AmqpError(Condition.NOT_FOUND, reason, Scope.LINK))
            return
        settings = link.session.connection.settings
        if self.plan.receives:
            producer = Producer(link, address, settings.link_capacity)
            producer.is_fallback = self.plan.is_fallback
            link.session.vocabulary = vocabulary_of(source)
            linking.hang(forwarder, producer)
            link.owner = self.end = producer
        else:
            consumer = Consumer(link, address)
            consumer.shows_passage = settings.shows_annotations
            link.terms = _terms(source)
            link.owner = self.end = consumer
            linking.join(forwarder, consumer)
        self.keeper.attached(self)

    def over(self, forwarder: Any, error: Error | None, closed: bool) -> None:
        """Tell who keeps it."""
        self.keeper.over(self, error or self._reason)

    def quiesce(self, forwarder: Any) -> None:
        """Take nothing new any more; what is under way goes on, and is settled."""
        if self.end is not None:
            parting.quiesce(forwarder, self.end)

    def is_in_place(self, table: Any) -> bool:
        """Whether it is at the phase where it would be put now."""
        end = self.end
        if end is None or end.address is None or end.address.phase == FALLBACK:
            return True
        return end.address.phase == phase_of(table, self.plan)


def enter(table: Any, plan: Plan) -> Address | None:
    """The address of an auto-link, which is there from now on; None where it cannot be."""
    if not plan.receives and table.is_own_node(plan.address):
        # nobody but the router answers there
        return None
    is_fallback = plan.is_fallback and not plan.receives
    address: Address | None = table.enter(
        plan.address, phase_of(table, plan), is_fallback=is_fallback
    )
    return address


def phase_of(table: Any, plan: Plan) -> int:
    """At which phase of its address an auto-link is.

    Where it is not said, a link to the container takes what senders send, and one from it brings
    what receivers get: at a waypoint that is phase 0 and phase 1, as it is in Dispatch.
    """
    if plan.phase is not None:
        return plan.phase
    name = address_name(plan.address)
    ingress: int = table.phase_of(name, is_sender=True)
    if not plan.receives or plan.is_fallback:
        return ingress
    # of a chain of waypoints this is the first one
    return min(ingress + 1, int(table.phase_of(name, is_sender=False)))


def _terms(source: Any) -> terms.Terms | None:
    """What the container means by settling without an outcome, where it says so.

    The source is ours: which outcomes are possible there is not for the container to say.
    """
    if source is None or source.default_outcome is None:
        return None
    try:
        return terms.agree(attrs.evolve(source, outcomes=()))
    except AmqpError:
        return None
