"""Interfaces through which the parts of core use each other and the layers above core.

Many functions of core have the router's `Forwarder` as a parameter, but cannot import its module,
because that module imports theirs. `Core` declares what they use. Import this module under
`TYPE_CHECKING` only; it may therefore name classes of all packages of core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from router.amqp.reading import TransferFrame
    from router.core.addresses.exchanges import Exchanges
    from router.core.addresses.link_names import LinkNames
    from router.core.addresses.reply_nodes import ReplyNodes
    from router.core.addresses.sources import SourceRules
    from router.core.addresses.table import AddressTable
    from router.core.deliveries.outcomes import OutcomeCounter
    from router.core.deliveries.redelivery import Redelivery
    from router.core.diagnosis.stuck_receivers import Inactivity
    from router.core.forwarding.intake import Intake
    from router.core.link_routes.link_routes import LinkRoutes
    from router.core.link_routes.routed_links import RoutedLinks
    from router.core.links.suspended import SuspendedTermini
    from router.core.model.address import Address, Consumer, Producer
    from router.core.model.backlog import Backlog
    from router.core.model.split_table import SplitTable
    from router.core.network.lane_numbers import Lane
    from router.core.network.network import Network
    from router.core.routers.routing_state import RoutingState
    from router.engine.account import Account
    from router.engine.connection import Connection
    from router.engine.delivery import Delivery
    from router.engine.link import IncomingLink, Link, OutgoingLink
    from router.engine.outbox import Turn
    from router.engine.session import Session
    from router.errors import AmqpError


class Observer(Protocol):
    """Observer of rare events, for logs, metrics and plugins; it gets no deliveries."""

    def event_received(self, connection: Connection, event: object) -> None:
        """Process an event of a connection."""


class Settlement(Protocol):
    """Part of the core that settles deliveries; `Settler` implements it."""

    outcomes: OutcomeCounter

    def settle(self, delivery: Delivery, code: int, state: bytes) -> None:
        """Settle a delivery with its sender, with an outcome that the router decided on."""

    def settle_lost(self, delivery: Delivery) -> int:
        """Settle a delivery whose receiver was lost; return the code of the outcome."""

    def sender_lost(self, delivery: Delivery) -> None:
        """Settle a delivery with its receiver, because its sender was lost."""

    def merge(self, copy: Delivery, code: int, state: bytes) -> None:
        """Merge a copy's outcome into that of its message; the last copy settles the message."""

    def settle_merged(self, parent: Delivery) -> None:
        """Settle a message or batch with its sender, now that all its copies have an outcome."""

    def note_sender(self, link: IncomingLink) -> None:
        """Mark a sender for a credit check at the end of the turn."""


class BatchSplitting(Protocol):
    """Part of the core that takes batches apart; `Batches` implements it."""

    def settled(self, delivery: Delivery) -> None:
        """Release the charge for a delivery, if it is a batch: all its messages are settled."""

    def settled_by_sender(self, delivery: Delivery) -> None:
        """Release the charge for a delivery, if it is a batch, except for messages that wait."""

    def left_queue(self, message: Delivery) -> None:
        """Release the charge for a message that waited, and whose sender has settled its batch."""

    def give_up(self, delivery: Delivery) -> None:
        """Forward no more messages of a delivery, if it is a batch: its link is closing."""


class CreditNotes(Protocol):
    """List of the addresses and senders whose credit is checked at the end of the turn.

    `CreditSharing` of `forwarding` implements it.
    """

    def note(self, address: Address | None, producer: Producer | None) -> None:
        """Mark an address, or an anonymous sender, for a credit check at the end of the turn."""


class Queues(Protocol):
    """Part of the core that queues deliveries; `QueueService` implements it."""

    drains: dict[Consumer, float]
    floor: int
    is_cut_short: bool

    def serve(self, consumer: Consumer) -> None:
        """Send a consumer the messages that wait for it, as long as there is room."""

    def wait(self, address: Address, delivery: Delivery) -> None:
        """Queue a delivery at its address, for the first consumer that has room."""

    def note_dequeued(self, delivery: Delivery) -> None:
        """Note that a delivery left its queue, so that an anonymous sender may get new credit."""

    def annotated(self, consumer: Consumer, delivery: Delivery, octets: bytes) -> bytes:
        """Return a message with the annotations that the router adds for this consumer."""


class Distribution(Protocol):
    """Part of the core that chooses consumers for deliveries; `Distributor` implements it."""

    copies_at_once: int

    @property
    def pending_copies(self) -> Copies:
        """Return the task that copies messages to very many receivers."""

    def choose(self, address: Address, size: int) -> Consumer | None:
        """Return the consumer for a delivery of this many octets; None if no consumer has room."""

    def choose_across(self, address: Address, size: int, side: int, lane: int) -> Consumer | None:
        """Return the consumer for a delivery that comes from `side`; None if none has room."""

    def no_destination(self, address: Address, delivery: Delivery) -> None:
        """Release a message, because its address has no receiver."""


class Copies(Protocol):
    """Task that copies messages to very many receivers; `PendingCopies` implements it."""

    def is_at(self, address: Address) -> bool:
        """Return whether a message that was sent to an address is still being copied."""

    def stop(self, delivery: Delivery) -> bool:
        """Stop copying a delivery, without settling it; return whether it was being copied."""

    def give_up(self, delivery: Delivery) -> None:
        """Stop copying a delivery; the copies made so far decide its outcome."""

    def give_up_all(self) -> None:
        """Stop copying all deliveries; the copies made so far decide their outcomes."""


class RepeatedTask(Protocol):
    """Task that shares an address's credit in later turns (`Sharing` of `credit` and `across`)."""

    is_again_due: bool
    """True if something has changed since the task began, so that it has to begin again."""

    def step(self) -> bool:
        """Do one step; return whether anything is left to do."""


class RelatedSharing(Protocol):
    """Task that shares credit if an address has an exchange or a fallback (`related_credit`)."""

    is_outdated: bool
    """True if something has changed since the task began, so that it has to begin again."""


class Refusing(Protocol):
    """Task that rejects waiting messages that are too large (`max_message_size`)."""

    is_due_again: bool
    """True if another receiver has left since the task began."""

    def begin(self) -> None:
        """Start the check of the waiting messages."""


class FallbackMove(Protocol):
    """Task that moves messages between an address and its fallback (`fallbacks`)."""

    source: Address
    is_over: bool

    def wait_behind(self, delivery: Delivery, producer: Producer, frame: TransferFrame) -> None:
        """Queue a new delivery after the deliveries that are still to be moved."""


class TransitWay(Protocol):
    """Path of messages through this router towards another router; `Transit` implements it."""

    destination: str
    lane: Lane

    def add(self, producer: Producer, declared_cost: int, shows: bool) -> None:
        """Add a new incoming link.

        `declared_cost` is the cost that the link's attach declares. `shows` says whether the link's
        messages are sent on with the annotations of routers.
        """

    def remove(self, producer: Producer) -> None:
        """Remove an incoming link that has ended."""

    def update(self) -> None:
        """Update the link to the next router, and the credit of the incoming links."""


class Withholding(Protocol):
    """Task that withholds a sender's credit until the link that it stole is closed (`stealing`)."""

    def keep_waiting(self, successor: Producer) -> None:
        """Withhold the credit of `successor` until the stolen link is closed."""


class Resuming(Protocol):
    """Work that comes before new deliveries on a receiver's link, such as resuming deliveries."""

    def go_on(self, forwarder: Core, consumer: Consumer) -> bool:
        """Send as much as there is room for; return whether new deliveries may follow."""


class Moving(Protocol):
    """Task that moves the deliveries of a reattached link (`resuming`)."""

    steps: Iterator[None]
    """Iterator that moves one delivery at a time; exhausting it moves all of them now."""

    def go_on_to(self, link: Link) -> None:
        """Move all deliveries to `link`, the link on which the terminus is now attached."""


class MovedTerminus(Protocol):
    """Terminus whose deliveries may be moving from its old link to a new one (`suspended`)."""

    moving: Moving | None


class Progress(Protocol):
    """Progress of a multicast's receiver at the last check (`stuck_receivers`)."""

    deliveries: int
    settled: int
    sent_bytes: int
    takes_nothing_since: float | None
    settles_nothing_since: float | None

    def stuck_since(self) -> tuple[float, Inactivity] | None:
        """Return since when the receiver is stuck, and what it fails to do; None if not stuck."""


class DroppedReceiver(Protocol):
    """Record of a receiver that was dropped because it was stuck (`stuck_receivers`)."""

    @property
    def at(self) -> float:
        """Return the time at which the receiver was dropped, on the turn's clock."""

    @property
    def connection(self) -> int:
        """Return the number of the receiver's connection."""

    @property
    def container(self) -> str:
        """Return the container-id of the receiver's peer."""

    @property
    def link_name(self) -> str:
        """Return the name of the receiver's link."""

    @property
    def stuck_s(self) -> float:
        """Return how long the receiver had been stuck, in seconds."""

    @property
    def text(self) -> str:
        """Return a description of what the receiver failed to do."""


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
    detaches_unroutable: bool
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
    on_open: Callable[[Connection], AmqpError | None]
    may_redirect: Callable[[Connection], bool]
    reply_nodes: ReplyNodes
    observer: Observer
    intake: Intake

    @property
    def batches(self) -> BatchSplitting:
        """Return the part that takes batches apart."""

    @property
    def credit(self) -> CreditNotes:
        """Return the addresses and senders whose credit is checked at the end of the turn."""

    @property
    def settlement(self) -> Settlement:
        """Return the part that settles deliveries."""

    @property
    def queues(self) -> Queues:
        """Return the part that queues deliveries."""

    @property
    def distribution(self) -> Distribution:
        """Return the part that chooses consumers."""

    def credit_received(self, link: OutgoingLink) -> None:
        """Serve a receiver whose credit has changed."""

    def transfer_aborted(self, delivery: Delivery) -> None:
        """Abort a delivery towards each receiver that got a part of it."""
