"""Allowed outcomes and default outcome of a receiver's source (section 3.5.3).

A receiver that lists outcomes is granted those of them that AMQP defines; if AMQP defines none of
them, the receiver is refused. A receiver without a list may use any outcome. The default outcome
applies to deliveries that are settled without an outcome, or whose link is lost. States that are
not outcomes of section 3.4 are not checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from router.amqp.composite import encode_composite
from router.amqp.constants import Condition, Descriptor
from router.amqp.performatives import Accepted, Modified, Rejected, Released, Source
from router.amqp.types import Symbol
from router.core.addresses.sources import listed, short
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.amqp.reading_disposition import DispositionFrame
    from router.core.ports import Settlement
    from router.engine.delivery import Delivery

_KINDS = (Accepted, Rejected, Released, Modified)
_CODES: dict[str, int] = {kind.NAME: int(kind.CODE) for kind in _KINDS}
ALL = frozenset(_CODES.values())
# repeated from `codes`, whose constants cannot be imported once it is compiled
NO_STATE = 0
RECEIVED = int(Descriptor.RECEIVED)


@attrs.frozen
class OutcomeTerms:
    """Outcomes agreed for a link: the codes of the allowed ones, and the default outcome.

    `default_code` is 0 if there is no default outcome. `default_state` is the encoded default
    outcome; it is empty if this outcome has no fields.
    """

    outcomes: frozenset[int] = ALL
    default_code: int = NO_STATE
    default_state: bytes = b""


USUAL = OutcomeTerms()


def agreed_terms(source: Source) -> OutcomeTerms | None:
    """Return the outcomes agreed for a receiver's source; None in the usual case.

    Usually any outcome is allowed, and there is no default outcome. Raises amqp:not-implemented at
    link scope if AMQP does not define the default outcome, or none of the listed outcomes.
    """
    outcomes = frozenset(_CODES[name] for name in source.outcomes if name in _CODES)
    if source.outcomes and not outcomes:
        unknown = listed([short(name) for name in source.outcomes])
        text = f"unsupported source outcomes: {unknown}; supported are {', '.join(_CODES)}"
        raise AmqpError(Condition.NOT_IMPLEMENTED, text, Scope.LINK)
    outcomes = outcomes or ALL
    default = source.default_outcome
    if default is None:
        agreed = OutcomeTerms(outcomes)
    elif isinstance(default, _KINDS):
        is_plain = default == type(default)()
        state = b"" if is_plain else encode_composite(default)
        agreed = OutcomeTerms(outcomes, _CODES[default.NAME], state)
    else:
        raise AmqpError(
            Condition.NOT_IMPLEMENTED,
            "unsupported default-outcome: it must be accepted, rejected, released or modified",
            Scope.LINK,
        )
    return None if agreed == USUAL else agreed


def granted_outcomes(agreed: OutcomeTerms | None) -> tuple[Symbol, ...]:
    """Return the allowed outcomes for the answering attach, as symbolic descriptors."""
    outcomes = ALL if agreed is None else agreed.outcomes
    return tuple(Symbol(name) for name, code in _CODES.items() if code in outcomes)


def apply_terms(settler: Settlement, delivery: Delivery, frame: DispositionFrame) -> bool:
    """Check a receiver's disposition against the outcomes agreed on for its link.

    If the outcome is not among them, the link is detached with an error. If the receiver settles
    without an outcome, the link's default outcome applies, if it has one. Return whether the
    disposition has been handled in one of these ways.
    """
    link = delivery.outgoing
    agreed: OutcomeTerms = link.outcome_terms
    code = frame.state_code
    if code in ALL and code not in agreed.outcomes:
        if frame.settled:
            # the delivery no longer belongs to the link, and so is not lost with it
            delivery.address.counters.count_outcome(settle_lost(settler, delivery))
        error = AmqpError(
            Condition.NOT_ALLOWED,
            "the disposition has an outcome that is not among the outcomes of the link's source",
            Scope.LINK,
        )
        link.session.connection.fail_link(link, error)
        return True
    if (
        not frame.settled
        or agreed.default_code == NO_STATE
        or code not in (NO_STATE, RECEIVED)
        or delivery.outcome in ALL
    ):
        return False
    settler.outcomes.count_for_receiver(delivery, agreed.default_code)
    settler.settle(delivery, agreed.default_code, agreed.default_state)
    return True


def settle_lost(settler: Settlement, delivery: Delivery) -> int:
    """Settle a delivery whose receiver is lost, with the default outcome; return the code used.

    If there is no default outcome, or the receiver has not received all of the message, the outcome
    is modified with delivery-failed.
    """
    agreed: OutcomeTerms | None = delivery.outgoing.outcome_terms
    is_told = delivery.parent is None and delivery.outcome in ALL
    if agreed is None or agreed.default_code == NO_STATE or delivery.discarded or is_told:
        return int(settler.settle_lost(delivery))
    settler.settle(delivery, agreed.default_code, agreed.default_state)
    return agreed.default_code
