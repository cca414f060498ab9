"""Outcomes that a sending peer understands, if it lists them (section 3.5.3).

A receiver may send any state of its deliveries. Most brokers understand all states that AMQP
defines, or list none. Some list fewer outcomes at their source, and end the session when they get
an outcome that is not listed, or no outcome at all. Such a peer is sent the nearest outcome that it
lists.
"""

from __future__ import annotations

from router.amqp.constants import Descriptor
from router.amqp.performatives import Accepted, Modified, Rejected, Released, Source

_CODES: dict[str, int] = {
    kind.NAME: int(kind.CODE) for kind in (Accepted, Rejected, Released, Modified)
}
ACCEPTED = int(Descriptor.ACCEPTED)
REJECTED = int(Descriptor.REJECTED)
RELEASED = int(Descriptor.RELEASED)
MODIFIED = int(Descriptor.MODIFIED)
# the same value as in `codes`, where it is a C constant when compiled
NO_STATE = 0
# in place of a code: nothing is sent
NOT_SENT = -1

# Nearest outcomes, the best first. A sender that gets less than the receiver's outcome keeps its
# message, so nothing is lost; at worst a message is delivered once more.
_NEAREST: dict[int, tuple[int, ...]] = {
    ACCEPTED: (),
    REJECTED: (MODIFIED, RELEASED),
    RELEASED: (MODIFIED,),
    MODIFIED: (RELEASED, REJECTED),
    NO_STATE: (RELEASED, MODIFIED),
}


class PeerOutcomes:
    """Set of outcomes that a source lists, with the nearest of them for each other outcome.

    `outcomes` are the codes of the listed outcomes; `default` is the code of the default outcome,
    or 0 if there is none.
    """

    def __init__(self, outcomes: frozenset[int], default: int) -> None:
        self.outcomes = outcomes
        self._codes_to_send = {
            code: next((each for each in (code, *nearest) if each in outcomes), code)
            for code, nearest in _NEAREST.items()
        }
        if default in outcomes:
            # settling without an outcome means the default
            self._codes_to_send[NO_STATE] = default

    def code_to_send(self, code: int, settled: bool) -> int:
        """Return the code of the outcome to send instead of a state with this code.

        An outcome with a different code is sent without fields. Return `NOT_SENT` if nothing is to
        be sent, because the delivery is unsettled and its state is not an outcome.
        """
        if code in self._codes_to_send and (settled or code != NO_STATE):
            return self._codes_to_send[code]
        # `received`, or an extension's outcome
        return self._codes_to_send[NO_STATE] if settled else NOT_SENT


def listed_outcomes(source: Source) -> PeerOutcomes | None:
    """Return the outcomes that a peer's source lists; None if it lists all of them or none."""
    outcomes = frozenset(_CODES[name] for name in source.outcomes if name in _CODES)
    if not outcomes or outcomes.issuperset(_CODES.values()):
        return None
    name = getattr(source.default_outcome, "NAME", "")
    return PeerOutcomes(outcomes, _CODES.get(name, NO_STATE))
