"""Sampled deliveries for plugins; part of the plugin contract (`router.plugin`)."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import attrs

from router.plugin_events import LinkInfo

ABSENT: Final = 2**64 - 1
"""Value of a duration that does not apply."""


@attrs.frozen
class SampleBatch:
    """Batch of finished deliveries, in columns of `count` unsigned 64-bit numbers each.

    The columns are:

    - `trace_high`, `trace_low`: the trace-id, the same at all routers that the message passes;
    - `hop`: 1 where the message entered the network;
    - `threshold`: the share of deliveries that is sampled where the message entered, times 2**64;
    - `arrived_ns`: time at which the delivery arrived, on the router's monotonic clock; add
      `wall_offset_ns` for nanoseconds since 1970, on the wall clock at the time of the batch;
    - `forward_ns`: time from the arrival until the delivery was written to the next connection, or
      `ABSENT`;
    - `settle_ns`: time from the arrival until the outcome was known, or `ABSENT`;
    - `in_link`, `out_link`: numbers of links, which `links` describes; 0 for none;
    - `size`: octets of the message's first frame;
    - `outcome`: the descriptor code of the outcome (0x24 to 0x27), 1 for aborted, 2 for sent
      settled, and any other value for an outcome that AMQP does not define;
    - `decided_by`: 1 for the receiver, 2 for the router, 0 if there is no outcome;
    - `reason`, `address`, `ingress`, `origin`: indices into `texts`, whose first text is empty.
      `ingress` and `origin` are empty at the router where the message entered the network.
    """

    count: int
    wall_offset_ns: int
    columns: Mapping[str, array[int]] = attrs.field(repr=False)
    texts: Sequence[str] = attrs.field(repr=False)
    links: Mapping[int, LinkInfo] = attrs.field(repr=False)


class DeliverySamples(Protocol):
    """Source of sampled deliveries for one plugin."""

    @property
    def lost(self) -> int:
        """Return how many samples were lost because the plugin did not take them in time."""

    def take(self) -> SampleBatch:
        """Remove and return the samples of finished deliveries."""
