"""EXPLAIN for multicast addresses: which receivers are stuck, and which was dropped last."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Final

from router.core.diagnosis.stuck_receivers import container_of, stuck_since, text_of
from router.core.model.address import MULTICAST, Address, Consumer
from router.engine.naming import link_identity
from router.management.requests import AnswerMap

# Maximum number of receivers that are listed.
MOST_STUCK: Final = 20
# A receiver that has been stuck for a shorter time may just be busy.
SHORTEST_S: Final = 2.0


def explain_stuck(places: Iterable[Address], now: float) -> AnswerMap | None:
    """Describe the stuck receivers of multicast addresses; None if no address is multicast.

    `droppedInSeconds` is None for a receiver that is never dropped. If it is 0, the receiver is
    dropped as soon as it delays another receiver. Times are in seconds.
    """
    multicasts = [each for each in places if each.treatment == MULTICAST]
    if not multicasts:
        return None
    stuck = itertools.chain.from_iterable(_stuck(each, now) for each in multicasts)
    last = max(
        (each.last_dropped for each in multicasts if each.last_dropped is not None),
        key=lambda each: each.at,
        default=None,
    )
    return {
        "stuck": list(itertools.islice(stuck, MOST_STUCK)),
        "dropped": sum(each.counters.receivers_dropped for each in multicasts),
        "lastDropped": None
        if last is None
        else {
            "connection": str(last.connection),
            "container": last.container,
            "linkName": last.link_name,
            "secondsAgo": now - last.at,
            "stuckSeconds": last.stuck_s,
            "text": last.text,
        },
    }


def _stuck(address: Address, now: float) -> Iterator[AnswerMap]:
    for consumer in address.consumers:
        since = stuck_since(consumer)
        if since is not None and now - since[0] >= SHORTEST_S:
            yield _told(address, consumer, now - since[0], text_of(consumer, since[1]))


def _told(address: Address, consumer: Consumer, stuck_s: float, text: str) -> AnswerMap:
    link = consumer.link
    limit_s = address.drop_after_s
    return {
        "connection": str(link.session.connection.number),
        "link": link_identity(link),
        "linkName": link.name,
        "container": container_of(link),
        "stuckSeconds": stuck_s,
        "droppedInSeconds": max(0.0, limit_s - stuck_s) if limit_s else None,
        "text": text,
    }
