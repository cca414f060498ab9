"""Model of topology files, which describe a simulation: routers, links, traffic and events.

Attributes are declared like those of a router's configuration; they are read, checked and
documented by the same code.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

import attrs

from router.config import kinds
from router.config.model import AddressSettings, Entity
from router.config.router_settings import DISTRIBUTION, Distribution
from router.config.setting import checked, setting

Mode = Literal["interior", "edge"]
Layout = Literal["line", "ring", "star", "tree", "mesh", "random"]
Outcome = Literal["accept", "release", "reject", "modify"]
Action = Literal[
    "kill",
    "stop",
    "start",
    "restart",
    "pause",
    "resume",
    "cut",
    "heal",
    "reset",
    "partition",
    "cost",
]

MOST_ROUTERS: Final = 5000
LONGEST_S: Final = 86400
_ROUTER: Final = kinds.text(100, spaces=False)
_ROUTERS: Final = kinds.names(100)
_DELAY: Final = kinds.number(0, 60_000, "milliseconds")
_BANDWIDTH: Final = kinds.number(0.001, 1_000_000, "megabits a second")
_COST: Final = kinds.whole_number(1, 1_000_000, "units")
_SECONDS: Final = kinds.number(0, LONGEST_S, "seconds")
_PERIOD: Final = kinds.number(0.05, 3600, "seconds")

# Fields that links and shapes share: attrs makes an attribute of each class from them.
_DELAY_MILLISECONDS: Final[float] = attrs.field(
    default=1.0, metadata=setting(_DELAY, "Delay in each direction.")
)
_JITTER_MILLISECONDS: Final[float] = attrs.field(
    default=0.0, metadata=setting(_DELAY, "Maximum random additional delay.")
)
_BANDWIDTH_MEGABITS: Final[float | None] = attrs.field(
    default=None,
    metadata=setting(
        _BANDWIDTH,
        "Bandwidth in each direction; excess octets queue.",
        default="unlimited",
    ),
)


@attrs.frozen(kw_only=True, field_transformer=checked)
class SimulationSettings:
    """Settings of the simulation as a whole."""

    seed: int = attrs.field(
        default=1,
        metadata=setting(
            kinds.whole_number(0, 2**63 - 1, "units"),
            "Seed of random choices. The same file and seed give the same result, to the octet.",
        ),
    )
    seconds: float = attrs.field(
        default=10.0,
        metadata=setting(
            _SECONDS,
            "How long traffic flows, once the network has converged. The time of events is "
            "counted from the same moment.",
        ),
    )
    settle_seconds: float = attrs.field(
        default=60.0,
        metadata=setting(
            _SECONDS,
            "How long to wait for the network to converge before traffic begins anyway, and how "
            "long to wait for missing outcomes at the end.",
        ),
    )
    default_distribution: Distribution = attrs.field(
        default="balanced",
        metadata=setting(
            DISTRIBUTION, "Distribution of addresses without an address entity, as in a router."
        ),
    )
    hello_interval_seconds: float = attrs.field(
        default=1.0,
        metadata=setting(_PERIOD, "As in a router: interval of HELLO messages to neighbours."),
    )
    hello_max_age_seconds: float = attrs.field(
        default=3.0,
        metadata=setting(_PERIOD, "As in a router: how long a neighbour may be silent."),
    )
    ra_interval_seconds: float = attrs.field(
        default=30.0,
        metadata=setting(
            _PERIOD,
            "As in a router: the longest interval at which neighbours compare their routing state.",
        ),
    )


@attrs.frozen(kw_only=True, field_transformer=checked)
class RouterEntry:
    """Router of the simulated network."""

    name: str | None = attrs.field(
        default=None,
        metadata=setting(_ROUTER, "Id of the router.", default="none; needed", required=True),
    )
    mode: Mode = attrs.field(
        default="interior",
        metadata=setting(kinds.choice(get_args(Mode)), "Interior or edge router."),
    )


@attrs.frozen(kw_only=True, field_transformer=checked)
class ShapeEntry:
    """Group of linked routers, which are named after the shape and numbered from 1."""

    name: str = attrs.field(
        default="r", metadata=setting(_ROUTER, "Name of the routers, before the number.")
    )
    layout: Layout = attrs.field(
        default="line",
        metadata=setting(
            kinds.choice(get_args(Layout)),
            "How the routers are linked: one after another (line), in a circle (ring), all to the "
            "first (star), each to two more (tree), each to every other (mesh), or randomly, but "
            "so that all are connected (random).",
        ),
    )
    routers: int = attrs.field(
        default=3,
        metadata=setting(kinds.whole_number(1, MOST_ROUTERS, "routers"), "Number of routers."),
    )
    degree: float = attrs.field(
        default=3.0,
        metadata=setting(
            kinds.number(2, 50, "links"),
            "With random: average number of links of a router.",
        ),
    )
    cost: int = attrs.field(default=1, metadata=setting(_COST, "Cost of each link."))
    most_cost: int = attrs.field(
        default=attrs.Factory(lambda self: self.cost, takes_self=True),
        metadata=setting(
            _COST,
            "If greater than cost, links have random costs between the two.",
            default="the same as cost",
        ),
    )
    delay_milliseconds: float = _DELAY_MILLISECONDS
    jitter_milliseconds: float = _JITTER_MILLISECONDS
    bandwidth_megabits: float | None = _BANDWIDTH_MEGABITS


@attrs.frozen(kw_only=True, field_transformer=checked)
class LinkEntry:
    """Connection between two routers, which one of them opens and keeps open."""

    between: tuple[str, ...] | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.names(100, 2, 2),
            "The two routers. The first one connects to the second one, but an edge router always "
            "connects to an interior one.",
            default="none; needed",
            required=True,
        ),
    )
    cost: int = attrs.field(default=1, metadata=setting(_COST, "Cost of the link."))
    delay_milliseconds: float = _DELAY_MILLISECONDS
    jitter_milliseconds: float = _JITTER_MILLISECONDS
    bandwidth_megabits: float | None = _BANDWIDTH_MEGABITS


@attrs.frozen(kw_only=True, field_transformer=checked)
class ReceiverEntry:
    """Group of receivers at one or several routers, each in a container of its own."""

    at: tuple[str, ...] = attrs.field(
        default=(),
        metadata=setting(
            _ROUTERS,
            "The routers that receivers are attached to.",
            default="`count` randomly chosen routers",
        ),
    )
    count: int = attrs.field(
        default=1,
        metadata=setting(
            kinds.whole_number(1, 100_000, "receivers"),
            "Without at: the number of receivers, at randomly chosen routers.",
        ),
    )
    address: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.address(),
            "The address that messages are received from; {n} is replaced by the number of each "
            "receiver, from 0.",
            default="none; needed",
            required=True,
        ),
    )
    credit: int = attrs.field(
        default=100,
        metadata=setting(
            kinds.whole_number(1, 100_000, "messages"), "The credit of each receiver."
        ),
    )
    milliseconds: float = attrs.field(
        default=0.0,
        metadata=setting(_DELAY, "How long a receiver holds a message before settling it."),
    )
    outcome: Outcome = attrs.field(
        default="accept",
        metadata=setting(
            kinds.choice(get_args(Outcome)), "The outcome with which receivers settle messages."
        ),
    )


@attrs.frozen(kw_only=True, field_transformer=checked)
class SenderEntry:
    """Group of senders at one or several routers, each in a container of its own."""

    at: tuple[str, ...] = attrs.field(
        default=(),
        metadata=setting(
            _ROUTERS,
            "The routers that senders are attached to.",
            default="`count` randomly chosen routers",
        ),
    )
    count: int = attrs.field(
        default=1,
        metadata=setting(
            kinds.whole_number(1, 100_000, "senders"),
            "Without at: the number of senders, at randomly chosen routers.",
        ),
    )
    address: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.address(),
            "The address that messages are sent to; {n} is replaced by the number of each sender, "
            "from 0.",
            default="none; needed",
            required=True,
        ),
    )
    anonymous: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "Whether to send over the anonymous relay, with the address in each message (to).",
        ),
    )
    rate: float = attrs.field(
        default=10.0,
        metadata=setting(
            kinds.number(0.001, 100_000, "messages a second"),
            "Rate at which each sender sends messages.",
        ),
    )
    bytes: int = attrs.field(
        default=100,
        metadata=setting(
            kinds.whole_number(8, 64 * 1024 * 1024, "bytes"), "Size of each message's body."
        ),
    )
    presettled: bool = attrs.field(
        default=False,
        metadata=setting(kinds.flag(), "Whether messages are sent settled, without an outcome."),
    )


@attrs.frozen(kw_only=True, field_transformer=checked)
class EventEntry:
    """Event in the network, such as the loss of a router or a link."""

    at: float = attrs.field(
        default=0.0,
        metadata=setting(_SECONDS, "Time of the event, in seconds after traffic begins."),
    )
    action: Action = attrs.field(
        default="kill",
        metadata=setting(
            kinds.choice(get_args(Action)),
            "Routers: kill them without a close, stop them in order, start them again, restart "
            "them (kill and start immediately), pause them as a stopped process is paused, or "
            "resume them. Links: cut them so that nothing gets through and no end is notified, "
            "heal them, or reset their connections, which are lost immediately. A partition cuts "
            "all links between these routers and the others. cost changes the cost of a link, "
            "whose connection stays.",
        ),
    )
    routers: tuple[str, ...] = attrs.field(
        default=(),
        metadata=setting(
            _ROUTERS,
            "The routers that are affected; with partition, all of one side.",
            default="a randomly chosen one",
        ),
    )
    link: tuple[str, ...] | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.names(100, 2, 2),
            "The link that is affected, by its two routers.",
            default="a randomly chosen one",
        ),
    )
    cost: int = attrs.field(
        default=1, metadata=setting(_COST, "With cost: the new cost of the link.")
    )
    one_way: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(), "With cut: whether octets from the second to the first still get through."
        ),
    )
    seconds: float | None = attrs.field(
        default=None,
        metadata=setting(
            _SECONDS,
            "How long until the event is undone: killed or stopped routers are started, paused "
            "routers are resumed, and cut links are healed.",
            default="never",
        ),
    )
    times: int = attrs.field(
        default=1,
        metadata=setting(
            kinds.whole_number(1, 10_000, "times"),
            "How often the event happens. If routers or links are chosen randomly, they are chosen "
            "again each time. A link that flaps is cut and healed again and again.",
        ),
    )
    every: float = attrs.field(
        default=5.0,
        metadata=setting(_PERIOD, "With times: the interval between two occurrences."),
    )


@attrs.frozen(kw_only=True)
class Topology:
    """Content of a topology file."""

    simulation: SimulationSettings = attrs.field(factory=SimulationSettings)
    routers: tuple[RouterEntry, ...] = ()
    shapes: tuple[ShapeEntry, ...] = ()
    links: tuple[LinkEntry, ...] = ()
    addresses: tuple[AddressSettings, ...] = ()
    receivers: tuple[ReceiverEntry, ...] = ()
    senders: tuple[SenderEntry, ...] = ()
    events: tuple[EventEntry, ...] = ()


ENTITIES: Final = (
    Entity("simulation", "simulation", SimulationSettings, repeated=False),
    Entity("router", "routers", RouterEntry, repeated=True),
    Entity("shape", "shapes", ShapeEntry, repeated=True),
    Entity("link", "links", LinkEntry, repeated=True),
    Entity("address", "addresses", AddressSettings, repeated=True),
    Entity("receiver", "receivers", ReceiverEntry, repeated=True),
    Entity("sender", "senders", SenderEntry, repeated=True),
    Entity("event", "events", EventEntry, repeated=True),
)
