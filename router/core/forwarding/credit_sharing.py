"""Grant credit to senders at the end of a turn.

Any event that lets a sender send again (a settlement, a receiver's flow, a message that leaves a
queue) marks the sender's address. `Forwarder.finish_turn` then grants credit, once for each marked
address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.core.deliveries import across, related_credit
from router.core.deliveries.credit import replenish, replenish_anonymous
from router.core.model.address import Address, Producer

if TYPE_CHECKING:
    from router.core.ports import Core


class CreditSharing:
    """List of addresses and anonymous senders whose credit is checked at the end of the turn."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.due: list[Address | Producer] = []

    def note(self, address: Address | None, producer: Producer | None) -> None:
        """Mark an address, or an anonymous sender, for a credit check at the end of the turn."""
        if address is not None and not address.credit_due:
            address.credit_due = True
            self.due.append(address)
        if producer is not None and producer.address is None and producer not in self.due:
            self.due.append(producer)

    def share(self) -> None:
        """Check the marked addresses and anonymous senders, and grant credit."""
        due, self.due = self.due, []
        related_due: list[Address] = []
        for item in due:
            if isinstance(item, Address):
                item.credit_due = False
                if item.related_addresses is None and item.remote_ends == 0:
                    replenish(item)
                elif item.related_addresses is None:
                    across.finish(self.core, item)
                else:
                    related_due.append(item)
            else:
                replenish_anonymous(item)
        if related_due:
            related_credit.finish(self.core, related_due)
