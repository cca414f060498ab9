"""What a router has counted, all its addresses together, for who asks from outside."""

from __future__ import annotations

from typing import Any

from router.core.counters import Counters
from router.engine.link import IncomingLink


def counted_by(observed: Any) -> Counters:
    """What all addresses have counted, without what the router itself has sent and received.

    As in Dispatch, a request is a delivery that came in, and its answer one that went out.
    """
    total: Counters = observed.table.total()
    own = observed.own_pump
    if own is None:
        return total
    total.ingress -= own.connection.past_received
    total.egress -= own.connection.past_sent
    for session in own.connection.local_sessions.values():
        for link in session.local_links.values():
            if isinstance(link, IncomingLink):
                total.ingress -= link.deliveries
                for outcome in ("accepted", "rejected", "released", "modified"):
                    told = getattr(total, f"told_{outcome}") - getattr(link, outcome)
                    setattr(total, f"told_{outcome}", told)
            else:
                total.egress -= link.deliveries
    return total
