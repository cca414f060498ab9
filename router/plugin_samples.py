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
    """Finished deliveries in columns, each of `count` unsigned 64-bit numbers.

    The columns are:

    - `trace_high`, `trace_low`: the trace-id, the same at all routers that the message passes;
    - `hop`: 1 where the message entered the network;
    - `threshold`: the share of deliveries that is sampled where it entered, times 2**64;
    - `arrived_ns`: time at which the delivery arrived, on the router's monotonic clock; the sum of
      it and `wall_offset_ns` is in nanoseconds since 1970, on the wall clock as it was when the
      batch was taken;
    - `forward_ns`: time from its arrival until it was written to the next connection, or `ABSENT`;
    - `settle_ns`: time from its arrival until its outcome was known, or `ABSENT`;
    - `in_link`, `out_link`: numbers of links, which `links` describes; 0 for none;
    - `size`: octets of the message's first frame;
    - `outcome`: the code of its descriptor (0x24 to 0x27), 1 for aborted, 2 for sent settled, and
      any other value for an outcome that AMQP does not define;
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
    """Sampled deliveries of a router, for one plugin."""

    @property
    def lost(self) -> int:
        """Return the number of samples lost because the plugin did not take them in time."""

    def take(self) -> SampleBatch:
        """Remove and return the samples of finished deliveries."""
