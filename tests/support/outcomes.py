"""Examples of each outcome of a receiver, with fields where it has some (section 3.4)."""

from __future__ import annotations

from router.amqp.performatives import Accepted, Error, Modified, Rejected, Released
from router.amqp.types import Symbol

OUTCOMES = [
    Accepted(),
    Rejected(Error(Symbol("x:y"), description="why")),
    Released(),
    Modified(True, True, {Symbol("k"): "v"}),
]
