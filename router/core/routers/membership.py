"""Properties in the opens of routers: declare this router, and check the peer.

A router sends these properties only on connections whose listener or connector has the role
`inter-router` or `edge`. The keys are symbols; those that begin with `qd.` are Dispatch's.
"""

from __future__ import annotations

from typing import Final, Literal, TypeGuard
from zlib import crc32

import attrs

from router.amqp.performatives import Open
from router.amqp.types import DecodedMap, Int, Symbol, UInt, ULong
from router.engine.failures import NetworkCondition
from router.engine.settings import ConnectionSettings
from router.errors import AmqpError

Mode = Literal["interior", "edge"]

INTER_ROUTER: Final = "inter-router"
EDGE: Final = "edge"
ROLES: Final = frozenset({INTER_ROUTER, EDGE})

COST: Final = Symbol("qd.inter-router-cost")
VERSIONS: Final = Symbol("trioute.protocol")
FEATURES: Final = Symbol("trioute.features")
MODE: Final = Symbol("trioute.mode")
INSTANCE: Final = Symbol("trioute.instance")

# The lowest and the highest version of the inter-router protocol that this router supports.
LOWEST_VERSION: Final = 1
HIGHEST_VERSION: Final = 1

# Optional features of this router; other modules may add names.
# Several links for the same address and destination are kept apart.
LANES: Final = Symbol("lanes")
# Sampled deliveries are passed on with their trace context (`trace_context`).
TRACES: Final = Symbol("traces")
FEATURES_SPOKEN: Final[tuple[str, ...]] = ("edge-routes", LANES, TRACES)

HIGHEST_COST: Final = 1_000_000
LARGEST_INSTANCE: Final = 2**63 - 1
# How many low bits of an instance are random; the bits above them are the time.
RANDOM_BITS: Final = 20
# How many features a peer may declare.
MAX_FEATURES: Final = 64


@attrs.frozen
class Membership:
    """Identity of this router, as declared to other routers.

    `instance` distinguishes the router's runs; a later run has a larger instance (`instance_from`).
    """

    router: str
    mode: Mode
    instance: int
    features: tuple[str, ...] = ()

    def properties(self, role: str, cost: int = 1) -> DecodedMap:
        """Return the properties for the open of a connection with this role."""
        if role not in ROLES:
            return {}
        told: DecodedMap = {
            VERSIONS: [UInt(LOWEST_VERSION), UInt(HIGHEST_VERSION)],
            FEATURES: [Symbol(name) for name in self.features],
            MODE: Symbol(self.mode),
            INSTANCE: ULong(self.instance),
        }
        if cost > 1:
            told[COST] = Int(cost)
        return told


@attrs.frozen
class Peer:
    """Another router, as its open describes it; `cost` is the cost of the connection."""

    router: str
    mode: Mode
    instance: int
    version: int
    features: frozenset[str]
    cost: int


def check_peer(
    mine: Membership, settings: ConnectionSettings, is_client: bool, remote: Open
) -> Peer:
    """Return the peer that has sent this open on a connection with these settings.

    Raises `AmqpError` if the peer is not a router, does not belong to this network, or has this
    router's id. The error's description is for the operators at both ends.
    """
    properties = remote.properties or {}
    versions, mode = properties.get(VERSIONS), properties.get(MODE)
    if versions is None or mode is None:
        if is_client:
            advice = (
                f"router {mine.router} has connected to a port that is not a listener with the "
                f"role {settings.role}"
            )
        else:
            advice = (
                f"it has connected to a port of {mine.router} that accepts only routers, whose "
                f"connectors have the role {settings.role}; clients must connect to another port"
            )
        reason = f"{_named(remote)} does not declare itself a router in its open; {advice}"
        raise AmqpError(NetworkCondition.NOT_A_ROUTER, reason)
    version = _common_version(mine, remote, versions)
    _check_mode(mine, settings, is_client, remote, mode)
    instance = properties.get(INSTANCE)
    if not _is_number(instance, 0, LARGEST_INSTANCE):
        raise _malformed(remote, INSTANCE)
    cost = properties.get(COST, 1)
    if not _is_number(cost, 1, HIGHEST_COST):
        raise _malformed(remote, COST)
    if not _is_id(remote.container_id):
        raise _malformed(remote, "container-id")
    if remote.container_id == mine.router:
        what = (
            "is connected to itself"
            if instance == mine.instance
            else f"has the same id as another router, which was started {_when(mine, instance)}; "
            "every router needs a unique id"
        )
        raise AmqpError(NetworkCondition.DUPLICATE_ID, f"the router {mine.router} {what}")
    return Peer(
        str(remote.container_id),
        "edge" if mode == "edge" else "interior",
        int(instance),
        version,
        _features(remote, properties.get(FEATURES)),
        int(cost),
    )


def instance_from(now: float, token: str) -> int:
    """Return the instance of a router that starts at `now`, in seconds since 1970.

    `token` is random text. A later start has a larger instance; starts in the same millisecond
    almost certainly have different instances.
    """
    chance = crc32(token.encode()) & ((1 << RANDOM_BITS) - 1)
    return max(1, int(now * 1000) << RANDOM_BITS | chance)


def instance_of(remote: Open) -> int:
    """Return the instance of a peer that `check_peer` has accepted."""
    return int((remote.properties or {})[INSTANCE])


# The longest id that control messages may contain.
LONGEST_ID_BYTES: Final = 255


def _is_id(name: str) -> bool:
    """Return whether a router may have this id, which is used in addresses."""
    return 1 <= len(name.encode()) <= LONGEST_ID_BYTES and "/" not in name


def _common_version(mine: Membership, remote: Open, versions: object) -> int:
    """Return the highest version that both routers support; raise `AmqpError` if there is none."""
    if (
        not isinstance(versions, list)
        or len(versions) != 2
        or not all(_is_number(each, 0, 2**32 - 1) for each in versions)
    ):
        raise _malformed(remote, VERSIONS)
    lowest, highest = versions
    found = min(int(highest), HIGHEST_VERSION)
    if found < max(int(lowest), LOWEST_VERSION):
        raise AmqpError(
            NetworkCondition.OTHER_VERSION,
            f"{_named(remote)} supports versions {lowest} to {highest} of the inter-router "
            f"protocol, and {mine.router} supports {LOWEST_VERSION} to {HIGHEST_VERSION}: one of "
            "the two has to be upgraded",
        )
    return found


def _check_mode(
    mine: Membership, settings: ConnectionSettings, is_client: bool, remote: Open, mode: object
) -> None:
    """Raise `AmqpError` if the mode of the peer is wrong for this connection.

    On an inter-router connection both routers are interior. On an edge connection the client is the
    edge router.
    """
    role = settings.role
    wanted = "edge" if role == EDGE and not is_client else "interior"
    if mode == wanted:
        return
    if mode not in ("interior", "edge"):
        raise _malformed(remote, MODE)
    end = "connector" if is_client else "listener"
    words = (
        f"{_named(remote)} is an {mode} router, and the {end} {settings.endpoint} of {mine.router} "
        f"has the role {role}, which is for an {wanted} router; edge routers connect, with the "
        "role edge, to listeners with the role edge, and interior routers have the role "
        "inter-router at both ends"
    )
    raise AmqpError(NetworkCondition.WRONG_MODE, words)


def _features(remote: Open, features: object) -> frozenset[str]:
    if features is None:
        return frozenset()
    if not isinstance(features, list) or len(features) > MAX_FEATURES:
        raise _malformed(remote, FEATURES)
    return frozenset(str(name) for name in features if isinstance(name, Symbol))


def _is_number(value: object, least: int, most: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _when(mine: Membership, instance: int) -> str:
    return "later" if instance > mine.instance else "earlier"


def _malformed(remote: Open, key: str) -> AmqpError:
    return AmqpError(
        NetworkCondition.MALFORMED_OPEN,
        f"{_named(remote)} declares an invalid value for {key} in its open",
    )


def _named(remote: Open) -> str:
    """Describe the peer by its name, which is shortened because it may be as long as a frame."""
    name = remote.container_id or ""
    return f"the peer {name[:100]!r}"
