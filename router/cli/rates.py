"""Rates of counters per second, computed from two snapshots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

Entity = Mapping[str, Any]

# Attributes of links, whose deliveries are summed up for each connection.
LINK_ATTRIBUTES: Final = ("identity", "connectionId", "linkDir", "deliveryCount")
DELIVERIES_IN: Final = "deliveriesIn"
DELIVERIES_OUT: Final = "deliveriesOut"


@attrs.frozen
class Snapshot:
    """Entities as they were at the time `at_s`, which is from a monotonic clock."""

    at_s: float
    entities: Sequence[Entity]
    links: Sequence[Entity] = ()


def rates_between(
    before: Snapshot, now: Snapshot, counters: Iterable[str]
) -> dict[str, dict[str, float]]:
    """Return how much each entity's counters grew per second, by identity and counter.

    A new entity has no rates, because its earlier values are unknown. A counter that decreased has
    no rate, because it started again from 0.
    """
    seconds = now.at_s - before.at_s
    earlier = {entity["identity"]: entity for entity in before.entities if "identity" in entity}
    rates: dict[str, dict[str, float]] = {}
    for entity in now.entities:
        was = earlier.get(entity.get("identity"))
        if was is None or seconds <= 0:
            continue
        grown = ((name, _growth(was.get(name), entity.get(name))) for name in counters)
        rates[entity["identity"]] = {
            name: growth / seconds for name, growth in grown if growth is not None
        }
    return rates


def rates_of_connections(before: Snapshot, now: Snapshot) -> dict[str, dict[str, float]]:
    """Return each connection's deliveries per second, in and out, as the sum over its links.

    A link that is not in `before` is new, so all its deliveries count.
    """
    seconds = now.at_s - before.at_s
    if seconds <= 0:
        return {}
    earlier = {link["identity"]: link.get("deliveryCount") for link in before.links}
    rates: dict[str, dict[str, float]] = defaultdict(
        lambda: {DELIVERIES_IN: 0.0, DELIVERIES_OUT: 0.0}
    )
    for link in now.links:
        count = link.get("deliveryCount")
        growth = _growth(earlier.get(link["identity"], 0), count)
        if growth is not None:
            name = DELIVERIES_IN if link.get("linkDir") == "in" else DELIVERIES_OUT
            rates[str(link.get("connectionId"))][name] += growth / seconds
    return dict(rates)


def _growth(was: object, count: object) -> int | None:
    if not isinstance(was, int) or not isinstance(count, int) or count < was:
        return None
    return count - was
