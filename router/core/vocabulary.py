"""The states that a sending peer understands, where it says which (section 3.5.3).

A receiver may say any state of its deliveries, and most brokers understand all that AMQP defines,
or say nothing of it. Some list fewer outcomes at their source, and end the session when they are
told another one, or none at all. To such a peer the router says what comes nearest.
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
# as `codes` has it, which keeps it in C when compiled
NO_STATE = 0
# better said not at all
UNSAID = -1

# What comes nearest, the best first. Who is told less than was said has its message back: nothing
# is lost by it, at the worst a message is delivered once more.
_NEAREST: dict[int, tuple[int, ...]] = {
    ACCEPTED: (),
    REJECTED: (MODIFIED, RELEASED),
    RELEASED: (MODIFIED,),
    MODIFIED: (RELEASED, REJECTED),
    NO_STATE: (RELEASED, MODIFIED),
}


class Vocabulary:
    """What a source listed: the codes of its `outcomes`, and of its default outcome, or 0."""

    def __init__(self, outcomes: frozenset[int], default: int) -> None:
        self.outcomes = outcomes
        self._words = {
            code: next((each for each in (code, *nearest) if each in outcomes), code)
            for code, nearest in _NEAREST.items()
        }
        if default in outcomes:
            # what it means to settle without an outcome
            self._words[NO_STATE] = default

    def word(self, code: int, settled: bool) -> int:
        """The code to say in place of a state's; another one goes without its fields.

        `UNSAID` where it would say nothing that the peer has to know.
        """
        if code in self._words and (settled or code != NO_STATE):
            return self._words[code]
        # how far it has come, or an outcome of somebody's own
        return self._words[NO_STATE] if settled else UNSAID


def vocabulary_of(source: Source) -> Vocabulary | None:
    """What a peer's source understands; None where that is everything."""
    outcomes = frozenset(_CODES[name] for name in source.outcomes if name in _CODES)
    if not outcomes or outcomes.issuperset(_CODES.values()):
        return None
    name = getattr(source.default_outcome, "NAME", "")
    return Vocabulary(outcomes, _CODES.get(name, NO_STATE))
