"""Ledger of messages, which checks that each has one outcome and was delivered accordingly.

    sent = accepted + released + modified + rejected + without an outcome

A message has no outcome while it is under way. If the sender loses its connection before the
outcome arrives, the message never gets one.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

OUTCOMES = ("accepted", "released", "modified", "rejected")


@attrs.define(eq=False)
class Entry:
    """Message in the ledger; `flow` is the number of its sender, `sent_at` the time of sending."""

    flow: int
    sent_at: float
    presettled: bool = False
    # one of OUTCOMES, "lost" if none will ever arrive, or "" if none has arrived yet
    outcome: str = ""
    # the receivers that it was delivered to, in order, and the delivery-count of each delivery
    receivers: list[int] = attrs.Factory(list)
    tried: list[int] = attrs.Factory(list)


class Ledger:
    """Ledger of all messages of a simulation, by the messages' numbers."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        # senders whose messages go to all receivers
        self.multicast: set[int] = set()
        # receivers that release their messages
        self.releasing: set[int] = set()
        self._mistakes: list[str] = []

    def sent(self, flow: int, now: float, *, presettled: bool = False) -> int:
        """Record that a message is sent; return its number."""
        self.entries.append(Entry(flow, now, presettled))
        return len(self.entries) - 1

    def outcome_known(self, number: int, outcome: str) -> Entry:
        """Record the outcome that the sender has received, or "lost" if it never will."""
        entry = self.entries[number]
        if entry.outcome:
            self._mistakes.append(f"message {number}: {entry.outcome}, and then {outcome}")
        entry.outcome = outcome
        return entry

    def delivered(self, number: int, receiver: int, tried: int = 0) -> Entry | None:
        """Record a delivery with the delivery-count `tried`; return None for an unknown message."""
        if number >= len(self.entries):
            self._mistakes.append(f"receiver {receiver}: message {number}, which was never sent")
            return None
        entry = self.entries[number]
        entry.receivers.append(receiver)
        entry.tried.append(tried)
        return entry

    def unsettled(self) -> int:
        """Return how many messages are still to get an outcome."""
        return sum(not each.outcome and not each.presettled for each in self.entries)

    def mistakes(self, *, is_whole: bool) -> list[str]:
        """Return a text for each violation of the rules, message by message.

        `is_whole` is whether all routers are reachable, so that each message must have an outcome.
        """
        return [*self._mistakes, *self._broken(is_whole)]

    def _broken(self, is_whole: bool) -> Iterator[str]:
        for number, entry in enumerate(self.entries):
            outcome, got = entry.outcome, len(entry.receivers)
            words = f"message {number} of sender {entry.flow}"
            is_multicast = entry.flow in self.multicast
            if outcome == "accepted" and not got:
                yield f"{words}: accepted, but not delivered"
            elif outcome == "released" and not is_multicast:
                for receiver in set(entry.receivers) - self.releasing:
                    yield f"{words}: released, but delivered to receiver {receiver}"
            if is_multicast:
                # if a connection between routers is lost, a receiver may get a copy again, but then
                # the outcome must say so: modified, rejected or lost
                if len(set(entry.receivers)) != got and outcome in ("accepted", "released", ""):
                    yield f"{words}: delivered twice to a receiver of a multicast"
            elif outcome in ("accepted", "") or entry.presettled:
                # a second delivery must be marked as one
                unsaid = sum(tried == 0 for tried in entry.tried)
                if unsaid > 1:
                    yield f"{words}: {outcome or 'no outcome'}, and delivered {unsaid} times"
            if is_whole and not outcome and not entry.presettled:
                yield f"{words}: no outcome, although all routers are reachable"
