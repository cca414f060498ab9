"""Messages that pass all the time while a test changes something."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

from proton import Message

from support.proton_peers import ProtonReceiver, ProtonSender

# Maximum number of unsettled messages of each sender.
MOST_UNSETTLED = 50


class Traffic:
    """Senders that always have something to send, and receivers that take it."""

    def __init__(self) -> None:
        self.senders: list[ProtonSender] = []
        self.receivers: list[ProtonReceiver] = []
        self._numbers = itertools.count()

    def go_on(self) -> None:
        """Send what can be sent."""
        for sender in self.senders:
            unsettled = sum(not sent.is_settled for sent in sender.sent[-MOST_UNSETTLED:])
            if not sender.is_over and sender.link.credit > 0 and unsettled < MOST_UNSETTLED:
                sender.send(Message(next(self._numbers)))

    def goes_on(self) -> bool:
        """Send what can be sent, in a condition that is waited for; return True."""
        self.go_on()
        return True

    def all_settled(self) -> bool:
        """Return whether each message has its outcome."""
        return all(sender.all_settled() for sender in self.senders)

    def another_of_each(self) -> Callable[[], bool]:
        """Return a function that goes on, and whether a new message of each sender is settled."""
        before = [len(sender.sent) for sender in self.senders]

        def has_come() -> bool:
            self.go_on()
            return all(
                len(sender.sent) > count and sender.sent[count].is_settled
                for sender, count in zip(self.senders, before, strict=True)
            )

        return has_come

    def outcomes(self) -> Counter[str]:
        """Count the outcomes of the messages."""
        return Counter(outcome for sender in self.senders for outcome in sender.outcomes)
