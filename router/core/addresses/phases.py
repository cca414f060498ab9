"""Phases of addresses: the phase at which a link is attached to its address.

Messages that pass through a waypoint, such as a broker's queue, are at one phase of their address
before the waypoint and at the next phase after it. Each phase has its own senders and receivers, so
nothing that comes out of the queue goes back into it. A link to a configured waypoint is attached
at the configured phase. Any other peer may declare itself a waypoint by a capability of its
terminus: the n-th waypoint of an address receives from phase n - 1 and sends into phase n. In the
same way, a receiver may declare itself a fallback for messages that no other receiver gets.
(docs/decisions/0052-phases.md)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from router.amqp.types import Symbol
from router.core.addresses.table import AddressTable
from router.core.model.address import LAST_PHASE

if TYPE_CHECKING:
    from router.amqp.performatives import Source, Target

WAYPOINT: Final = "qd.waypoint"
FALLBACK_CAPABILITY: Final = "qd.fallback"
_ORDINALS: Final = {
    WAYPOINT: 1,
    **{f"{WAYPOINT}.{ordinal}": ordinal for ordinal in range(1, LAST_PHASE + 1)},
}


def ordinal_of(terminus: Source | Target) -> int:
    """Return n if a terminus declares itself the n-th waypoint of its address, otherwise 0."""
    return next((_ORDINALS[each] for each in terminus.capabilities if each in _ORDINALS), 0)


def is_fallback(terminus: Source | Target) -> bool:
    """Return whether a terminus declares itself a fallback for messages without a receiver."""
    return FALLBACK_CAPABILITY in terminus.capabilities


def phase_of(table: AddressTable, name: str, terminus: Source | Target, *, is_sender: bool) -> int:
    """Return the phase at which a peer's link, with this terminus, is attached to a name."""
    ordinal = ordinal_of(terminus)
    if ordinal and not table.is_local_only(name):
        return ordinal if is_sender else ordinal - 1
    return table.phase_of(name, is_sender=is_sender)


def granted_capabilities(terminus: Source | Target) -> tuple[Symbol, ...]:
    """Return the capabilities of `terminus` that the router acts on, for the answering attach."""
    return tuple(
        Symbol(each)
        for each in terminus.capabilities
        if each in _ORDINALS or each == FALLBACK_CAPABILITY
    )
