"""Senders and receivers of simulated containers: those of `router.client`, with callbacks.

A plan describes a sender or a receiver. On each new connection, a new link is attached for each
plan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from router.amqp.types import Symbol
from router.client.receiver import ReceivedMessage, Receiver
from router.client.sender import Sender, SentMessage

if TYPE_CHECKING:
    from router.simulation.containers import Container


class SimulatedSender(Sender):
    """Sender that calls its plan's `on_change` instead of waking tasks that wait for a change."""

    def __init__(self, container: Container, plan: SenderPlan) -> None:
        super().__init__(
            container, container.session, presettled=plan.presettled, window=plan.window
        )
        self.plan = plan
        self.on_settled = plan.on_outcome

    def notify_change(self) -> None:
        """Call the plan's `on_change`, because there may be room to send."""
        self.plan.on_change()

    def attached(self) -> None:
        """Handle the router's attach."""
        super().attached()
        self.notify_change()

    def give_up_deliveries(self) -> None:
        """Drop unsettled deliveries, and report them as lost."""
        lost = [each.address for each in self.session.outgoing.of_link(self.link)]
        super().give_up_deliveries()
        for sending in lost:
            self.plan.on_outcome(sending)


class SimulatedReceiver(Receiver):
    """Receiver that calls its plan's `on_message` with each message as it arrives."""

    def __init__(self, container: Container, plan: ReceiverPlan) -> None:
        super().__init__(container, container.session, credit=plan.credit, count=None, drain=False)
        self.plan = plan

    def notify_change(self) -> None:
        """Call the plan's `on_message` with each message that has arrived."""
        while self.waiting:
            self.plan.on_message(self.receive_nowait())


@attrs.define(eq=False)
class SenderPlan:
    """Plan of a sender, which a container attaches on each new connection.

    `on_change` is called when there may be room to send. `on_outcome` is called with a message when
    its outcome has arrived, or can no longer arrive (`SentMessage.is_lost`).
    """

    address: str | None
    on_change: Callable[[], None]
    on_outcome: Callable[[SentMessage], None]
    presettled: bool = False
    window: int = 1000
    live: SimulatedSender | None = None

    def sender(self) -> SimulatedSender | None:
        """Return the sender if it is attached, or None."""
        live = self.live
        return None if live is None or live.is_over else live


@attrs.define(eq=False)
class ReceiverPlan:
    """Plan of a receiver, which a container attaches on each new connection."""

    address: str
    on_message: Callable[[ReceivedMessage], None]
    credit: int = 100
    capabilities: tuple[Symbol, ...] = ()
    live: SimulatedReceiver | None = None
