"""Answers that their receivers have not settled, and the limits on how many there may be.

Programs written for Dispatch often forget to settle answers, because Dispatch settles them itself.
To keep such programs working, the limit is higher for small answers, and an answer older than its
TTL no longer counts: by then it has been sent to its receiver or has expired.
"""

from __future__ import annotations

from typing import Final

import attrs

from router.client import SentMessage

# For one reply-to: this many answers of any size, and more while their total size is small.
MAX_ANSWERS: Final = 20
MAX_SMALL_ANSWERS: Final = 250
MAX_SMALL_BYTES: Final = 256 * 1024


@attrs.frozen(eq=False)
class _Answer:
    reply_to: str
    size: int
    at: float


class UnsettledAnswers:
    """Record of an agent's unsettled answers. Each reply-to has its own limits."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        # both are in the order of sending
        self._answers: dict[SentMessage, _Answer] = {}
        self._at: dict[str, dict[SentMessage, _Answer]] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def may_send(self, reply_to: str, now: float) -> bool:
        """Return whether another answer may be sent to `reply_to`; `now` is in seconds."""
        waiting = self._at.get(reply_to)
        if waiting is None or len(waiting) < MAX_ANSWERS:
            return True
        for sending, answer in list(waiting.items()):
            if now - answer.at <= self._longest_s:
                break
            self.forget(sending)
        if len(waiting) < MAX_ANSWERS:
            return True
        return len(waiting) < MAX_SMALL_ANSWERS and sum(each.size for each in waiting.values()) <= (
            MAX_SMALL_BYTES
        )

    def add(self, sending: SentMessage, reply_to: str, size: int, now: float) -> None:
        """Record that an answer of `size` bytes was sent."""
        answer = self._answers[sending] = _Answer(reply_to, size, now)
        self._at.setdefault(reply_to, {})[sending] = answer

    def forget(self, sending: SentMessage) -> None:
        """Forget an answer because it has an outcome of any kind, or no longer counts."""
        answer = self._answers.pop(sending, None)
        if answer is None:
            return
        waiting = self._at[answer.reply_to]
        del waiting[sending]
        if not waiting:
            del self._at[answer.reply_to]

    def clear(self) -> None:
        """Forget all answers, because their link was lost."""
        self._answers.clear()
        self._at.clear()
