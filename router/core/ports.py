"""Interfaces that the parts of core have for each other and for the layers above.

Most functions of core get the router's forwarder, but are imported by it: they name what they
use of it by `Core`. Import this module under `TYPE_CHECKING` only; nothing of it is used when a
router runs, so it may name classes of all packages of core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from router.core.addresses.exchanges import Exchanges
    from router.core.addresses.link_names import LinkNames
    from router.core.addresses.sources import SourceRules
    from router.core.addresses.table import AddressTable
    from router.core.deliveries.outcomes import OutcomeCounter
    from router.core.deliveries.redelivery import Redelivery
    from router.core.forwarding.intake import Intake
    from router.core.link_routes.link_routes import LinkRoutes
    from router.core.link_routes.routed_links import RoutedLinks
    from router.core.links.suspended import SuspendedTermini
    from router.core.model.address import Address, Consumer, Producer
    from router.core.model.backlog import Backlog
    from router.core.model.split_table import SplitTable
    from router.core.network.network import Network
    from router.core.routers.routing_state import RoutingState
    from router.engine.account import Account
    from router.engine.connection import Connection
    from router.engine.delivery import Delivery
    from router.engine.link import IncomingLink, Link
    from router.engine.outbox import Turn
    from router.engine.session import Session


class Observer(Protocol):
    """Receiver of rare events (logs, metrics, plugins); it never hears of deliveries."""

    def event_received(self, connection: Connection, event: object) -> None:
        """Take in an event of a connection."""


class Edges(Protocol):
    """Edge routers, as far as this router knows them; `control.edge` implements it."""

    def lacks(self, name: str) -> bool:
        """Return whether the node or edge router of an address is known not to be there."""


class Whereabouts(Protocol):
    """Routers and edge routers, and where they are; `Network` implements it."""

    reach: RoutingState

    @property
    def is_on(self) -> bool:
        """Return whether this is an interior router."""

    @property
    def edges(self) -> Edges | None:
        """Return the edge routers that are known, if this router has any or is one."""


class Settlement(Protocol):
    """Settlement of deliveries towards their senders; `Settler` implements it."""

    outcomes: OutcomeCounter

    def settle(self, delivery: Delivery, code: int, state: bytes) -> None:
        """Settle a delivery towards its sender, with an outcome."""

    def settle_lost(self, delivery: Delivery) -> int:
        """Settle a delivery whose receiver was lost."""

    def sender_lost(self, delivery: Delivery) -> None:
        """Settle a delivery whose sender was lost towards its receiver."""

    def merge(self, copy: Delivery, code: int, state: bytes) -> None:
        """Merge the outcome of a copy into that of its message."""

    def note_sender(self, link: IncomingLink) -> None:
        """Have the credit of a link's sender checked at the end of the turn."""


class CreditNotes(Protocol):
    """Senders whose credit is checked at the end of the turn; `CreditSharing` implements it."""

    def note(self, address: Address | None, producer: Producer | None) -> None:
        """Have the credit of an address's senders, or of an anonymous one, checked."""


class Queues(Protocol):
    """Deliveries that wait; `QueueService` implements it."""

    drains: dict[Consumer, float]
    floor: int
    is_cut_short: bool

    def serve(self, consumer: Consumer) -> None:
        """Send a consumer what waits for it, as far as there is room."""

    def wait(self, address: Address, delivery: Delivery) -> None:
        """Queue a delivery at its address, for the first consumer that has room."""

    def note_dequeued(self, delivery: Delivery) -> None:
        """Account for a delivery that leaves its queue."""

    def annotated(self, consumer: Consumer, delivery: Delivery, octets: bytes) -> bytes:
        """Return a message as it leaves now, with the router's own annotations."""


class Distribution(Protocol):
    """Choice of the consumers that deliveries go to; `Distributor` implements it."""

    copies_at_once: int

    @property
    def pending_copies(self) -> Copies:
        """Return the messages of which not all copies are made."""

    def choose(self, address: Address, size: int) -> Consumer | None:
        """Return the consumer that the next delivery goes to; None if none has room."""

    def choose_across(self, address: Address, size: int, side: int, lane: int) -> Consumer | None:
        """Return the consumer for a delivery that comes from a side; None if none has room."""

    def no_destination(self, address: Address, delivery: Delivery) -> None:
        """Release a message, because nobody receives from its address."""


class Copies(Protocol):
    """Messages of which not all copies are made yet; `PendingCopies` implements it."""

    def is_at(self, address: Address) -> bool:
        """Return whether copies for an address are still to be made."""

    def stop(self, delivery: Delivery) -> bool:
        """Make no more copies of a delivery; return whether any were still to be made."""

    def give_up(self, delivery: Delivery) -> None:
        """Give up the copies of a delivery that are still to be made."""

    def give_up_all(self) -> None:
        """Give up all copies that are still to be made."""


class Core(Protocol):
    """Core of one router, shared by all its connections; `Forwarder` implements it."""

    turn: Turn
    table: AddressTable
    redelivery: Redelivery
    backlog: Backlog
    outcomes: OutcomeCounter
    link_names: LinkNames
    suspended: SuspendedTermini
    sources: SourceRules
    link_routes: LinkRoutes
    routed: RoutedLinks
    reach: RoutingState
    network: Network
    network_due: list[Network]
    exchanges: Exchanges
    sizes_due: dict[Address, None]
    dying_nodes: dict[Address, Consumer | None]
    node_accounts: SplitTable[str, Account]
    idle_sessions: list[Session]
    on_control: Callable[[Link], None]
    observer: Observer
    intake: Intake

    @property
    def credit(self) -> CreditNotes:
        """Return the senders whose credit is checked."""

    @property
    def settlement(self) -> Settlement:
        """Return what settles deliveries."""

    @property
    def queues(self) -> Queues:
        """Return the deliveries that wait."""

    @property
    def distribution(self) -> Distribution:
        """Return what chooses consumers."""

    def transfer_aborted(self, delivery: Delivery) -> None:
        """Abort a delivery towards each receiver that got a part of it."""
