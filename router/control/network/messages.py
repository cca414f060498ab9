"""Messages of the routing protocol, from neighbour to neighbour, on the control links.

None of them is routed through the network: messages for all routers are flooded from neighbour to
neighbour. The page docs/reference/inter-router-protocol.md describes the purpose and the encoding
of each message; `codec` implements the encoding.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

Options = dict[str, object]
"""Options of link state: AMQP values of any type, by name."""
VERSION = 1
"""Version of the protocol of this router."""

# Terms of an address, in one octet: its treatment, and whether a receiver gets the routers'
# annotations. In updates, `REMOVED` means that there is no receiver any more.
TREATMENT_BITS = 0x0F
ANNOTATIONS_BIT = 0x10
REMOVED = 0xFF
TERMS = frozenset(t | s for t in range(5) for s in (0, ANNOTATIONS_BIT))


@attrs.frozen
class Hello:
    """Greeting; `heard` is the peer's instance as seen by the sender on this connection, or 0.

    `cost` is the connection's cost according to the sender; 0 means unchanged since its open. From
    the `stamp`, `echo` and `held` of both ends, each end measures the round trip (`round_trips`).
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
    """Digests of the sender's view of all routers, one for each of `digests.BUCKETS`."""

    opcode: ClassVar[str] = "RA"
    digests: tuple[int, ...]


@attrs.frozen
class Row:
    """Summary of one router: versions of its link state and addresses, digest of the addresses."""

    router: str
    instance: int
    seq: int
    mobile_seq: int
    digest: int


@attrs.frozen
class Rows:
    """Rows of the routers in buckets whose digests differ, or of some routers that have changed.

    `more` is False only in the last message of an answer to a `Summary`.
    """

    opcode: ClassVar[str] = "RAR"
    more: bool
    rows: tuple[Row, ...]


@attrs.frozen
class LinkState:
    """Link state of a router: the cost of each of its links, by the neighbour's id.

    `seq` counts its link states since it started; `mobile_seq` and `digest` are those of its
    addresses at that time. `options` is for additions of later versions; it is passed on unchanged.
    `octets` is its encoding by `codec`, if that is known already. The object must not be modified:
    equal states share it.
    """

    router: str
    instance: int
    seq: int
    links: dict[str, int]
    mobile_seq: int = 0
    digest: int = 0
    options: Options = attrs.field(factory=dict)
    octets: bytes = attrs.field(default=b"", eq=False, repr=False, kw_only=True)


@attrs.frozen
class Aged:
    """Link state, and its age in milliseconds."""

    state: LinkState
    age_ms: int


@attrs.frozen
class LinkStateUpdate:
    """Link state of routers."""

    opcode: ClassVar[str] = "LSU"
    states: tuple[Aged, ...]


@attrs.frozen
class LinkStateRequest:
    """Request for the link state of these routers."""

    opcode: ClassVar[str] = "LSR"
    routers: tuple[str, ...]


@attrs.frozen
class Withdrawal:
    """Request to forget this instance of a router; an older one, `winner`, keeps the id."""

    opcode: ClassVar[str] = "LSW"
    router: str
    instance: int
    winner: int


@attrs.frozen
class MobileUpdate:
    """Changes to the addresses of one router, from `base` to `seq`.

    `terms` has an octet for each key: its treatment, or `REMOVED`. `digest` is that of the whole
    table afterwards.
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
    """Part of the addresses of one router as of `seq`: number `part` (from 0) of `parts`."""

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
class TableRequest:
    """Request for a router's address table: the changes since `seq`, or if 0 the whole table."""

    router: str
    instance: int
    seq: int


@attrs.frozen
class MobileRequest:
    """Request for the addresses of these routers."""

    opcode: ClassVar[str] = "MAR"
    wishes: tuple[TableRequest, ...]


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
