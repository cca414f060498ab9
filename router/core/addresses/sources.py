"""Check what a receiver asks for in its source, and refuse what the router cannot do.

The router could leave a filter or mode out of its answer to the attach (section 2.6.3), but few
clients look there: they would continue and get messages that they did not ask for. So a request
that the router cannot serve is refused, with its name, unless the configuration says to ignore it.
None of this runs per message. (docs/decisions/0085-what-a-source-is-granted.md)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from router.amqp.constants import Condition, TerminusExpiryPolicy
from router.amqp.encoded import AnyMap, EncodedMap
from router.amqp.performatives import Source
from router.amqp.types import Described, Symbol
from router.core.model.address import MULTICAST, Address
from router.errors import AmqpError, Scope

MOVE: Final = Symbol("move")
COPY: Final = Symbol("copy")
# Filters whose descriptors clients send as numbers, by the registry of filters.
_REGISTERED: Final = {
    0x468C00000000: "apache.org:legacy-amqp-direct-binding:string",
    0x468C00000001: "apache.org:legacy-amqp-topic-binding:string",
    0x468C00000002: "apache.org:legacy-amqp-headers-binding:map",
    0x468C00000003: "apache.org:no-local-filter:list",
    0x468C00000004: "apache.org:selector-filter:string",
}
_NO_DURABLE: Final = (
    "durable subscriptions are not available here: the router keeps no messages for a receiver "
    "that is away; use a broker's queue or subscription through a link route or an auto-link"
)
# How much of a peer's text is quoted: an error's description has to fit into the smallest frame.
MOST_NAMED: Final = 4
MOST_TEXT: Final = 450
_MOST_OF_A_NAME: Final = 45


class SourceRules:
    """Rules for requests of receivers: which are refused; others are ignored, not answered.

    `refuses_filters` is about filters and distribution modes, `refuses_durable` is about durable
    sources that never expire. With `rejects_unconfirmed`, receivers that take everything settled
    get no durable messages (`unconfirmed_durable`).
    """

    def __init__(self) -> None:
        self.refuses_filters = True
        self.refuses_durable = True
        self.rejects_unconfirmed = False

    def configure(
        self, *, refuses_filters: bool, refuses_durable: bool, rejects_unconfirmed: bool = False
    ) -> None:
        """Set which requests are refused from now on; links that are attached stay as they are."""
        self.refuses_filters = refuses_filters
        self.refuses_durable = refuses_durable
        self.rejects_unconfirmed = rejects_unconfirmed

    def check(self, source: Source) -> None:
        """Check a source for requests that no address of the router can serve.

        Raises amqp:not-implemented at link scope.
        """
        if self.refuses_filters:
            _check_filters(source.filter)
        # one of the two alone does not ask for messages to be kept while the receiver is away
        never_expires = source.expiry_policy is TerminusExpiryPolicy.NEVER
        if self.refuses_durable and never_expires and source.durable:
            raise AmqpError(Condition.NOT_IMPLEMENTED, _NO_DURABLE, Scope.LINK)

    def mode(self, source: Source, address: Address) -> Symbol:
        """Return the distribution mode of an address, for the answer (section 3.5.2).

        Raises amqp:not-implemented at link scope if the source asks for another mode. Only `move`
        is always accepted: on a multicast address the receiver gets copies instead.
        """
        in_force = COPY if address.treatment == MULTICAST else MOVE
        asked = source.distribution_mode
        if not self.refuses_filters or asked in (None, MOVE, in_force):
            return in_force
        raise mode_unavailable(asked, in_force)


def mode_unavailable(asked: str, in_force: str) -> AmqpError:
    """Return the error for a receiver that asks for another mode than its address has."""
    text = (
        f"distribution-mode {short(asked)!r} is not available here, only {str(in_force)!r}; "
        "'copy' needs a multicast address, or a link route to a broker"
    )
    return AmqpError(Condition.NOT_IMPLEMENTED, text, Scope.LINK)


def _check_filters(filters: AnyMap | None) -> None:
    if filters is None:
        return
    # a null value means no filter (section 3.5.8)
    if isinstance(filters, EncodedMap):
        asked, more = filters.outline(MOST_NAMED)
    else:
        asked = [
            (key, value.descriptor if isinstance(value, Described) else None)
            for key, value in filters.items()
            if value is not None
        ]
        more = 0
    if not asked:
        return
    names = listed([_name(*item) for item in asked], more)
    raise AmqpError(Condition.NOT_IMPLEMENTED, f"unsupported source filter: {names}", Scope.LINK)


def listed(names: Sequence[str], others: int = 0) -> str:
    """Join names that a peer has sent, the first of them if there are many, for an error.

    `others` is how many there are besides.
    """
    named = ", ".join(names[:MOST_NAMED])
    more = len(names) + others - min(len(names), MOST_NAMED)
    return named if more <= 0 else f"{named} and {more} more"


def _name(key: object, code: object) -> str:
    """Name a filter by its key and, if that differs, its value's descriptor."""
    name = short(key)
    if code is None:
        return name
    descriptor = short(_REGISTERED.get(code, hex(code)) if isinstance(code, int) else code)
    return name if name == descriptor else f"{name} ({descriptor})"


def short(text: object) -> str:
    """Shorten a peer's text to the length that an error's description has room for."""
    text = str(text)
    return text if len(text) <= _MOST_OF_A_NAME else f"{text[:_MOST_OF_A_NAME]}..."
