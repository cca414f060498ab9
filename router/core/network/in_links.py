"""Accept links from other routers, for addresses at this router or at routers beyond it.

Messages for this router go to its own receivers and to its edges, never on to a third router.
Messages for another router pass through a transit (`transit`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.amqp.constants import Condition
from router.amqp.performatives import Source
from router.amqp.types import Symbol
from router.core.addresses.related import is_exchange
from router.core.addresses.table import address_name
from router.core.links import attach
from router.core.model.address import FALLBACK, HERE, LAST_PHASE, MESH, Address, Producer
from router.core.network.lane_numbers import lane_in
from router.core.network.transit import no_route
from router.core.routers.link_properties import COST, DESTINATION, PHASE, SHOWS
from router.engine import attaching
from router.engine.link import IncomingLink, Link
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.core.ports import Core

# The highest cost of a path through a network.
MAX_COST = 2**62


def attach_received(forwarder: Core, link: Link) -> None:
    """Accept another router's link to the destination that its attach names.

    Raise `AmqpError` at link scope if the attach is invalid, if there is no path to the
    destination, or if the address is unavailable.
    """
    remote = link.remote_attach
    properties = remote.properties or {}
    if not isinstance(link, IncomingLink):
        raise _invalid("a link with the property qd.destination must be attached as a sender")
    destination = properties.get(DESTINATION)
    declared_cost = _number(properties.get(COST), MAX_COST, "qd.cost")
    lane = lane_in(properties, remote.rcv_settle_mode)
    phase = _number(properties.get(PHASE, 0), FALLBACK, "qd.phase")
    text = getattr(remote.target, "address", None)
    if not isinstance(destination, str) or not isinstance(text, str) or not address_name(text):
        raise _invalid(
            "the link's property qd.destination must be a string, and its target a valid address"
        )
    if LAST_PHASE < phase < FALLBACK:
        raise _invalid(
            f"the link's property qd.phase is {phase}, but must be 0 to {LAST_PHASE}, or {FALLBACK}"
        )
    network = forwarder.network
    phase = network.phase_of(link, address_name(text), phase)
    is_here = destination == network.reach.me
    if is_here:
        address = _enter(forwarder, text, phase)
    elif network.reach.path(destination) is None:
        raise no_route()
    else:
        address = network.transit_to(destination, address_name(text), phase, lane)
    producer = Producer(link, address, link.session.connection.settings.link_capacity)
    # a transit has no sides: its messages always leave on its one link
    producer.side = link.side = MESH if is_here else HERE
    if is_exchange(address):
        # messages that an exchange forwards count as sent here
        link.side = HERE
    link.owner = producer
    attach.add_producer(forwarder, producer)
    transit = address.transit
    if transit is not None:
        transit.add(producer, declared_cost, bool(properties.get(SHOWS)))
        transit.update()
    attaching.accept(link, remote.source if remote.source is not None else Source(), remote.target)
    forwarder.credit.note(address, producer)


def _enter(forwarder: Core, text: str, phase: int) -> Address:
    address: Address | None = forwarder.table.enter(text, phase, is_fallback=phase == FALLBACK)
    if address is None:
        info = {Symbol("address"): text}
        raise AmqpError(Condition.NOT_FOUND, "Node not found", Scope.LINK, info)
    return address


def _number(value: object, most: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise _invalid(f"the link's property {what} must be an integer from 0 to {most}")
    return int(value)


def _invalid(problem: str) -> AmqpError:
    return AmqpError(Condition.INVALID_FIELD, problem, Scope.LINK)
