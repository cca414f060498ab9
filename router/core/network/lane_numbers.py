"""Lane numbers: which lane a message takes between routers, and how attaches declare lanes.

A lane has a number, which distinguishes it from other lanes of the same address and destination,
and the priority of its messages (section 3.2.1). Each priority has one lane for small messages,
several lanes (stripes) for messages of several frames, among which the senders are divided, and one
lane for links with rcv-settle-mode second, which has this mode on the whole path. Most messages are
small and have priority 4; they take lane 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from router.amqp.constants import Condition, ReceiverSettleMode
from router.amqp.types import UByte, UInt
from router.core.model.address import (
    LANES_PER_PRIORITY,
    ORDINARY_PRIORITY,
    PRIORITIES,
    SECOND_LANES,
)
from router.core.routers.link_properties import LANE, PRIORITY
from router.core.routers.membership import FEATURES, LANES
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.amqp.encoded import AnyMap
    from router.amqp.types import DecodedMap
    from router.engine.connection import Connection
    from router.engine.link import Link

# Higher numbers are refused; other routers may use more of them than this one does.
HIGHEST_LANE: Final = 255


@attrs.frozen
class Lane:
    """Description of a lane: its number, its priority, and the settle mode of its links."""

    number: int = 0
    priority: int = ORDINARY_PRIORITY
    # the rcv-settle-mode of its attaches
    mode: ReceiverSettleMode = ReceiverSettleMode.FIRST

    def properties(self) -> DecodedMap:
        """Return the properties by which an attach declares the lane, except for its mode."""
        told: DecodedMap = {}
        if self.number:
            told[LANE] = UInt(self.number)
        if self.priority != ORDINARY_PRIORITY:
            told[PRIORITY] = UByte(self.priority)
        return told


FIRST_LANE: Final = Lane()


def lane_of(priority: int, stripe: int, *, settles_second: bool = False) -> int:
    """Return the number of the lane for a priority and a stripe, as `Distributor.lane_for` does."""
    level = (priority + PRIORITIES - ORDINARY_PRIORITY) % PRIORITIES
    return SECOND_LANES + level if settles_second else level * LANES_PER_PRIORITY + stripe


def lane_numbered(number: int) -> Lane:
    """Return the lane that has this number at this router."""
    if number < SECOND_LANES:
        return Lane(number, (number // LANES_PER_PRIORITY + ORDINARY_PRIORITY) % PRIORITIES)
    priority = (number - SECOND_LANES + ORDINARY_PRIORITY) % PRIORITIES
    return Lane(number, priority, ReceiverSettleMode.SECOND)


def lane_in(properties: AnyMap, mode: ReceiverSettleMode = ReceiverSettleMode.FIRST) -> Lane:
    """Return the lane that an attach with these properties and this rcv-settle-mode declares.

    Raise `AmqpError` at link scope if the lane's number or priority is invalid.
    """
    return Lane(
        _number(properties.get(LANE, 0), HIGHEST_LANE, "qd.lane"),
        _number(properties.get(PRIORITY, ORDINARY_PRIORITY), PRIORITIES - 1, "qd.priority"),
        mode,
    )


def _number(value: object, most: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        problem = f"the link's property {what} must be an integer from 0 to {most}"
        raise AmqpError(Condition.INVALID_FIELD, problem, Scope.LINK)
    return int(value)


def knows_lanes(connection: Connection) -> bool:
    """Return whether the router that a connection leads to declares support for lanes."""
    remote = connection.remote_open
    features = (remote.properties or {}).get(FEATURES) if remote is not None else None
    return isinstance(features, list) and LANES in features


def priority_of(link: Link) -> int:
    """Return the priority that a link between routers declares in its attach; 4 for other links."""
    if link.session.connection.settings.role not in ("inter-router", "edge"):
        return ORDINARY_PRIORITY
    told: object = ORDINARY_PRIORITY
    for frame in (link.attach, link.remote_attach):
        # an attach that only echoes these properties declares nothing itself
        if frame is not None and frame.properties and PRIORITY in frame.properties:
            told = frame.properties[PRIORITY]
            break
    if isinstance(told, int) and not isinstance(told, bool) and 0 <= told < PRIORITIES:
        return int(told)
    return ORDINARY_PRIORITY
