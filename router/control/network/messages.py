"""Messages of the routing protocol, from neighbour to neighbour, on the control links.

No message is routed through the network: messages for all routers are flooded from neighbour to
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
    """Greeting that routers send regularly on each connection.

    `heard` is the peer's instance if the sender has received a HELLO from it, otherwise 0. `cost`
    is the sender's cost of the connection; 0 means unchanged since the open. From `stamp`, `echo`
    and `held`, each end measures the round trip (`round_trips`).
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
    """Message with digests of the sender's view of the network, one for each bucket of routers."""

    opcode: ClassVar[str] = "RA"
    digests: tuple[int, ...]


@attrs.frozen
class Row:
    """Versions of a router's link state and address table, and the digest of the table."""

    router: str
    instance: int
    seq: int
    mobile_seq: int
    digest: int


@attrs.frozen
class Rows:
    """Message with a `Row` for each of some routers, as digests differ or routers have changed.

    `more` is False only in the last message of an answer to a `Summary`.
    """

    opcode: ClassVar[str] = "RAR"
    more: bool
    rows: tuple[Row, ...]


@attrs.frozen
class LinkState:
    """Link state of a router: the cost of each of its links, by the neighbour's id.

    `seq` counts the router's link states since its start. `mobile_seq` and `digest` are the version
    and the digest of its address table at that time. `options`, for additions of later versions, is
    passed on unchanged. `octets` is the encoding, if known. Do not modify the object, which is
    shared.
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
    """Message with the link state of routers."""

    opcode: ClassVar[str] = "LSU"
    states: tuple[Aged, ...]


@attrs.frozen
class LinkStateRequest:
    """Message that requests the link state of routers."""

    opcode: ClassVar[str] = "LSR"
    routers: tuple[str, ...]


@attrs.frozen
class Withdrawal:
    """Message that a router instance gives up its id, which the older instance `winner` keeps."""

    opcode: ClassVar[str] = "LSW"
    router: str
    instance: int
    winner: int


@attrs.frozen
class MobileUpdate:
    """Message with the changes to one router's addresses, from version `base` to version `seq`.

    `terms` has an octet for each key: the treatment of the address, or `REMOVED`. `digest` is the
    digest of the whole table afterwards.
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
    """Message with a part of one router's whole address table, at version `seq`.

    `part` is the number of this part, from 0, and `parts` is how many parts there are.
    """

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
    """Request for a router's address table: the changes since `seq`, or all if `seq` is 0."""

    router: str
    instance: int
    seq: int


@attrs.frozen
class MobileRequest:
    """Message that requests the address tables of routers."""

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
