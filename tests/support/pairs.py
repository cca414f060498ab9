"""Routers with a few clients attached, as most tests of the core need them."""

from __future__ import annotations

from typing import Any

from router.amqp.performatives import (
    Rejected,
)

from support.in_memory import ReceivingLink, Router, SendingLink


def pair(
    credit: int = 10, *, default: str = "balanced", **receiver: Any
) -> tuple[Router, SendingLink, ReceivingLink]:
    """Return a router, a sender and a receiver of one address, on separate connections."""
    router = Router(default=default)
    taking = router.client(**receiver).receiver("q", credit)
    return router, router.client().sender("q"), taking


def several(default: str, counts: list[int], **link: Any) -> tuple[Any, ...]:
    """Return a router, a sender and some receivers of one address."""
    router = Router(default=default)
    taking = [router.client().receiver("q", credit, **link) for credit in counts]
    return router, router.client().sender("q"), taking


def rejected(condition: str) -> Any:
    """Compare equal to a rejection with this condition."""

    class Condition:
        def __eq__(self, other: object) -> bool:
            return (
                isinstance(other, Rejected)
                and other.error is not None
                and str(other.error.condition) == condition
            )

        __hash__ = None  # type: ignore[assignment]

    return Condition()
