"""Senders and receivers of simulated containers: those of the client, woken by calls.

Their plans outlive them: whenever a connection is made anew, so is a link for each plan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from router.amqp.types import Symbol
from router.client.receiver import Received, Receiver
from router.client.sender import Sender, Sending


class SimulatedSender(Sender):
    """A sender that calls `on_change` where another would wake who waits."""

    def __init__(self, container: Any, plan: SenderPlan) -> None:
        super().__init__(
            container, container.session, presettled=plan.presettled, window=plan.window
        )
        self.plan = plan
        self.outcome_told = plan.on_outcome

    def changed(self) -> None:
        """There may be room."""
        if self.link is not None:
            self.plan.on_change()

    def attached(self) -> None:
        """The router has answered."""
        super().attached()
        self.changed()

    def resolve(self) -> None:
        """Nothing more will be heard of what is unsettled."""
        lost = [each.address for each in self.session.outgoing.of_link(self.link)]
        super().resolve()
        for sending in lost:
            self.plan.on_outcome(sending)


class SimulatedReceiver(Receiver):
    """A receiver that gives each message to `on_message` as it comes."""

    def __init__(self, container: Any, plan: ReceiverPlan) -> None:
        super().__init__(container, container.session, credit=plan.credit, count=None, drain=False)
        self.plan = plan

    def changed(self) -> None:
        """Hand out what has come."""
        while self.link is not None and self.waiting:
            self.plan.on_message(self.receive_nowait())


@attrs.define(eq=False)
class SenderPlan:
    """A sender that a container always has, as long as it has a connection.

    `on_change` hears that there may be room, `on_outcome` of each outcome, also of those that will
    not come (`Sending.is_lost`).
    """

    address: str | None
    on_change: Callable[[], None]
    on_outcome: Callable[[Sending], None]
    presettled: bool = False
    window: int = 1000
    live: SimulatedSender | None = None

    def sender(self) -> SimulatedSender | None:
        """The sender, if it is attached."""
        live = self.live
        return None if live is None or live.is_over else live


@attrs.define(eq=False)
class ReceiverPlan:
    """A receiver that a container always has, as long as it has a connection."""

    address: str
    on_message: Callable[[Received], None]
    credit: int = 100
    capabilities: tuple[Symbol, ...] = ()
    live: SimulatedReceiver | None = None
