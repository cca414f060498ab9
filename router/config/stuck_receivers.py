"""Settings for stuck receivers of multicast addresses."""

from __future__ import annotations

from typing import Final, Literal, get_args

import attrs

from router.config import kinds
from router.config.setting import setting

StuckReceiver = Literal["wait", "drop"]
SHORTEST_S: Final = 0.1
LONGEST_S: Final = 86400

STUCK_RECEIVER: Final[StuckReceiver] = attrs.field(
    default="wait",
    metadata=setting(
        kinds.choice(get_args(StuckReceiver)),
        "What to do with a receiver of a multicast that takes nothing, or settles nothing, and "
        "so holds up all others: wait for it, or drop it after stuckReceiverTimeoutSeconds. Its "
        "copies are then modified, and its link is closed with amqp:resource-limit-exceeded. "
        "Links to other routers, edges and brokers are never dropped. Only with multicast.",
    ),
)
STUCK_RECEIVER_TIMEOUT_SECONDS: Final[float] = attrs.field(
    default=30.0,
    metadata=setting(
        kinds.number(SHORTEST_S, LONGEST_S, "seconds"),
        "With stuckReceiver drop: how long a receiver may take nothing while senders wait, or "
        "settle none of its deliveries. Choose more time than a receiver needs for one message, "
        "and more than the pauses of a receiver that grants credit for single messages.",
    ),
)
