"""Check what a receiver asks for in its source, and refuse what the router cannot do.

The router could omit a filter or mode from its answer to the attach (section 2.6.3), but few
clients check the answer: they would continue and get messages that they did not ask for. So a
request that the router cannot serve is refused with an error that names it, unless the
configuration says to ignore it. None of this runs per message.
(docs/decisions/0085-what-a-source-is-granted.md)
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
# Names of the filters whose descriptors clients send as numbers, from the registry of filters.
_REGISTERED: Final = {
    0x468C00000000: "apache.org:legacy-amqp-direct-binding:string",
    0x468C00000001: "apache.org:legacy-amqp-topic-binding:string",
    0x468C00000002: "apache.org:legacy-amqp-headers-binding:map",
    0x468C00000003: "apache.org:no-local-filter:list",
    0x468C00000004: "apache.org:selector-filter:string",
}
_NO_DURABLE: Final = (
    "durable subscriptions are not available here: the router keeps no messages for a receiver "
    "that is not attached; use a broker's queue or subscription through a link route or an "
    "auto-link"
)
# How much of a peer's text is quoted: an error's description has to fit into the smallest frame.
MOST_NAMED: Final = 4
MOST_TEXT: Final = 450
_MOST_OF_A_NAME: Final = 45


class SourceRules:
    """Settings that say which requests in a receiver's source are refused, and which are ignored.

    `refuses_filters` applies to filters and distribution modes, and `refuses_durable` to durable
    sources that never expire. `rejects_unconfirmed` says whether durable messages for receivers
    with snd-settle-mode settled are rejected (`unconfirmed_durable`).
    """

    def __init__(self) -> None:
        self.refuses_filters = True
        self.refuses_durable = True
        self.rejects_unconfirmed = False

    def configure(
        self, *, refuses_filters: bool, refuses_durable: bool, rejects_unconfirmed: bool = False
    ) -> None:
        """Set which requests are refused from now on; attached links are not affected."""
        self.refuses_filters = refuses_filters
        self.refuses_durable = refuses_durable
        self.rejects_unconfirmed = rejects_unconfirmed

    def check(self, source: Source) -> None:
        """Raise `AmqpError` if a source asks for something that no address of the router offers.

        The error is amqp:not-implemented at link scope.
        """
        if self.refuses_filters:
            _check_filters(source.filter)
        # durability or a lifetime alone does not ask for messages to be kept for an absent receiver
        never_expires = source.expiry_policy is TerminusExpiryPolicy.NEVER
        if self.refuses_durable and never_expires and source.durable:
            raise AmqpError(Condition.NOT_IMPLEMENTED, _NO_DURABLE, Scope.LINK)

    def mode(self, source: Source, address: Address) -> Symbol:
        """Return an address's distribution mode, for the answering attach (section 3.5.2).

        Raises amqp:not-implemented at link scope if the source asks for another mode and such
        requests are refused. The mode `move` is always accepted, but on a multicast address the
        receiver gets copies.
        """
        in_force = COPY if address.treatment == MULTICAST else MOVE
        asked = source.distribution_mode
        if not self.refuses_filters or asked in (None, MOVE, in_force):
            return in_force
        raise mode_unavailable(asked, in_force)


def mode_unavailable(asked: str, in_force: str) -> AmqpError:
    """Return the error for a receiver that asks for a distribution mode other than `in_force`."""
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
    """Join names from a peer for an error's description, shortening a long list.

    `others` is how many further names the peer sent that are not in `names`.
    """
    named = ", ".join(names[:MOST_NAMED])
    more = len(names) + others - min(len(names), MOST_NAMED)
    return named if more <= 0 else f"{named} and {more} more"


def _name(key: object, code: object) -> str:
    """Return the text that names a filter: its key, and its descriptor if that differs."""
    name = short(key)
    if code is None:
        return name
    descriptor = short(_REGISTERED.get(code, hex(code)) if isinstance(code, int) else code)
    return name if name == descriptor else f"{name} ({descriptor})"


def short(text: object) -> str:
    """Shorten a text from a peer so that it fits into an error's description."""
    text = str(text)
    return text if len(text) <= _MOST_OF_A_NAME else f"{text[:_MOST_OF_A_NAME]}..."
