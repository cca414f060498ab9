"""What routers say to each other, neighbour to neighbour, on the control links.

Nothing of it is routed through the network: what is meant for all goes from each router to its
neighbours. The page docs/reference/inter-router-protocol.md says what each message is for and how
it is written; `codec` does that.
"""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

VERSION = 1
"""The version of the protocol that is spoken here."""

# How an address is received from, in one octet: the treatment, and whether messages are shown
# where they have been. In what is told of changes, one more: nobody receives any more.
TREATMENT_BITS = 0x0F
SHOWS_BIT = 0x10
GONE = 0xFF
TERMS = frozenset(t | s for t in range(5) for s in (0, SHOWS_BIT))


@attrs.frozen
class Hello:
    """I am here; `heard` is the instance of the one I have heard on this connection, or 0.

    `cost` is what its sender says the connection costs, or 0 if that is what its open said. With
    the `stamp`, `echo` and `held` of both ends each measures the round trip (`round_trips`).
    """

    opcode: ClassVar[str] = "HELLO"
    router: str
    instance: int
    heard: int
    cost: int = 0
    stamp: int = 0
    echo: int = 0
    held: int = 0


@attrs.frozen
class Summary:
    """What I know of all routers, as one digest for each of the `digests.BUCKETS` parts of them."""

    opcode: ClassVar[str] = "RA"
    digests: tuple[int, ...]


@attrs.frozen
class Row:
    """What I know of one router: how new, and what digest the table of its addresses has."""

    router: str
    instance: int
    seq: int
    mobile_seq: int
    digest: int


@attrs.frozen
class Rows:
    """What I know of the routers of those parts in which our digests differ, unless `more` follows;
    or of some of which there is news.
    """

    opcode: ClassVar[str] = "RAR"
    more: bool
    rows: tuple[Row, ...]


@attrs.frozen
class LinkState:
    """What a router says of its own links: the cost of each, by the neighbour's id.

    `seq` counts what it has said since it started, `mobile_seq` and `digest` are those of its
    addresses at that time. `options` is for what later versions add; it is passed on as it is.
    `octets` is how `codec` writes it, where that is known already. Nobody changes what it holds:
    whoever hears the same has the same object.
    """

    router: str
    instance: int
    seq: int
    links: dict[str, int]
    mobile_seq: int = 0
    digest: int = 0
    options: dict[str, Any] = attrs.field(factory=dict)
    octets: bytes = attrs.field(default=b"", eq=False, repr=False, kw_only=True)


@attrs.frozen
class Aged:
    """A router's links, and how long ago it said so, in milliseconds."""

    state: LinkState
    age_ms: int


@attrs.frozen
class LinkStateUpdate:
    """The links of routers."""

    opcode: ClassVar[str] = "LSU"
    states: tuple[Aged, ...]


@attrs.frozen
class LinkStateRequest:
    """Tell me the links of these routers."""

    opcode: ClassVar[str] = "LSR"
    routers: tuple[str, ...]


@attrs.frozen
class Withdrawal:
    """Forget what was said in the name of a router by this instance; an older one, `winner`, keeps
    the id.
    """

    opcode: ClassVar[str] = "LSW"
    router: str
    instance: int
    winner: int


@attrs.frozen
class MobileUpdate:
    """What has changed in the addresses of one router: from `base` to `seq`.

    `terms` has an octet for each of `keys`; `digest` is that of the whole table afterwards.
    """

    opcode: ClassVar[str] = "MAU"
    router: str
    instance: int
    base: int
    seq: int
    digest: int
    keys: tuple[str, ...]
    terms: bytes


@attrs.frozen
class MobileTable:
    """All addresses of one router as of `seq`, in `parts`, of which this is one (from 0)."""

    opcode: ClassVar[str] = "MAT"
    router: str
    instance: int
    seq: int
    digest: int
    part: int
    parts: int
    keys: tuple[str, ...]
    terms: bytes


@attrs.frozen
class Wish:
    """The table of whose addresses is asked for, and from where on; from 0 for all of it."""

    router: str
    instance: int
    seq: int


@attrs.frozen
class MobileRequest:
    """Tell me of the addresses of these routers."""

    opcode: ClassVar[str] = "MAR"
    wishes: tuple[Wish, ...]


Message = (
    Hello
    | Summary
    | Rows
    | LinkStateUpdate
    | LinkStateRequest
    | Withdrawal
    | MobileUpdate
    | MobileTable
    | MobileRequest
)
