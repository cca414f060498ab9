"""Seeds for fuzzing: meaningful frames, made by the table-driven codec."""

from __future__ import annotations

from collections.abc import Callable

from router.amqp.constants import TerminusExpiryPolicy
from router.amqp.encode import encode_value
from router.amqp.framing import AMQP_HEADER, SASL_HEADER, encode_frame
from router.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Modified,
    Open,
    Received,
    Rejected,
    SaslInit,
    Source,
    Target,
    Transfer,
)
from router.amqp.types import Array, Described, Map, Symbol, UInt, ULong
from router.control.network.codec import encode_control
from router.control.network.digests import BUCKETS
from router.control.network.messages import (
    Aged,
    Hello,
    LinkState,
    LinkStateRequest,
    LinkStateUpdate,
    Message,
    MobileRequest,
    MobileTable,
    MobileUpdate,
    Row,
    Rows,
    Summary,
    TableRequest,
    Withdrawal,
)

from fuzz import claims, logins, policies, streams
from support.transcripts import wire

_ERROR = Error(condition=Symbol("amqp:internal-error"), description="so it goes", info={"a": 1})
_MESSAGE = bytes.fromhex("005370c0050340405264 005375a003616263")

_OPEN = Open("peer", max_frame_size=512, idle_time_out=1000, properties={Symbol("a"): "b"})
_BEGIN = Begin(next_outgoing_id=0, incoming_window=100, outgoing_window=100)
_SENDER = Attach(
    "s", 0, False, source=Source(), target=Target(address="balanced"), initial_delivery_count=0
)
_RECEIVER = Attach("r", 1, True, source=Source(address="balanced"), target=Target())
_RESUMED = Attach(
    "s", 0, False, source=Source(),
    target=Target(
        address="balanced", expiry_policy=TerminusExpiryPolicy.CONNECTION_CLOSE, timeout=60
    ),
    unsettled={b"0": None, b"1": Received(0, 3), b"2": Rejected(error=_ERROR)},
    incomplete_unsettled=True, initial_delivery_count=0,
)  # fmt: skip
_RELAY = Attach("a", 2, False, source=Source(), target=Target(), initial_delivery_count=0)
_CREDIT = Flow(
    next_incoming_id=0, incoming_window=100, next_outgoing_id=0, outgoing_window=100,
    handle=1, delivery_count=0, link_credit=10,
)  # fmt: skip
_TRANSFER = Transfer(0, delivery_id=0, delivery_tag=b"0", message_format=0, settled=False)
_MORE = Transfer(0, delivery_id=1, delivery_tag=b"1", message_format=0, more=True)

# Of Dispatch's, in both of its syntaxes.
FILES = [
    """\
# A router before a broker.
router {
    mode: standalone   # alone
    id: A
    workerThreads: 4
}
listener {
    host: 0.0.0.0
    port: amqp
    saslMechanisms: PLAIN ANONYMOUS
    authenticatePeer: no
    maxSessions: 0
    openProperties: {
        "site": "north",
        # whatever
        "deep": { "list": [1, null, true], },
    }
}
connector {
    addr: broker.example
    role: route-container
    saslUsername: me
    saslPassword: pass:open#sesame
}
address {
    pattern: a.*.#  # comment
    distribution: multicast
}
linkRoute {
    prefix: queue
    dir: in
    connection: broker
}
log {
    module: DEFAULT
    enable: debug, warning+
    outputFile: /var/log/router.log
}
""",
    """\
[
    ["router", {"mode": 1, "id": "A"}],
    # comment
    ["listener", {"port": 5672, "requireSsl": true, "http": "no", "cost": "1"}],
    ["router.config.address", {"prefix": "a", "distribution": "closest", "waypoint": "yes"}],
    ["policy", {"enableVhostPolicy": true}],
    ["vhost", {"id": "$default", "groups": {"$default": {"users": "*"}}}],
    ["fixedAddress", {"prefix": "/b", "fanout": "single", "bias": "spread"}]
]
""",
    """\
policy {
    enableVhostPolicy: true
    defaultVhost: $default
    maxConnections: 0
}
vhost {
    hostname: *.example
    aliases: a.example, b.example
    allowUnknownUser: true
    maxConnections: 5
    groups: {
        $default: {
            users: *
            remoteHosts: 10.0.0.0/8, ::1
            sources: a, ${user}/*
            targetPattern: b.#
            maxFrameSize: 0
        }
        "staff": {"users": ["ada", 5], "targets": "", "odd": null}
    }
}
""",
    """\
[["policy", {"enableVhostPolicy": "yes", "enableVhostNamePatterns": true}],
 ["vhost", {"id": "x", "groups": {"g": {"users": "ada, bob", "remoteHosts": "*",
   "allowDynamicSource": true, "sources": "a, b*", "targets": ["c"], "maxSenders": 0}}}]]
""",
]

_STATE = LinkState("a", 5, 3, {"b": 1, "c": 2}, 7, 2**64 - 1, {"features": ["x"]})
CONTROL: list[Message] = [
    Hello("a", 5, 6),
    Summary(tuple(range(BUCKETS))),
    Rows(False, (Row("a", 5, 3, 7, 1), Row("b", 6, 1, 0, 0))),
    LinkStateUpdate((Aged(_STATE, 1000),)),
    LinkStateRequest(("a", "b")),
    Withdrawal("a", 6, 5),
    MobileUpdate("a", 5, 6, 7, 1, ("M0one", "Cqueues"), bytes((0x11, 0xFF))),
    MobileTable("a", 5, 7, 1, 0, 1, ("M0one",), b"\x01"),
    MobileRequest((TableRequest("a", 5, 7),)),
]

VALUES = [
    None,
    True,
    UInt(0),
    ULong(2**40),
    1.5,
    "text",
    b"octets",
    Symbol("symbol"),
    [1, [2, []], None],
    {Symbol("a"): [1], "b": None},
    Map((([1], 2),)),
    Array([UInt(1), UInt(2)], UInt),
    Described(Symbol("x:y"), ["z"]),
    Described(ULong(0x24), []),
]

BODIES = [
    _OPEN,
    _BEGIN,
    _SENDER,
    _RECEIVER,
    _CREDIT,
    _TRANSFER,
    Disposition(True, 0, 3, settled=True, state=Accepted()),
    Disposition(True, 0, state=Rejected(error=_ERROR)),
    Disposition(False, 0, settled=True, state=Modified(delivery_failed=True)),
    Detach(0, closed=True, error=_ERROR),
    End(error=_ERROR),
    Close(),
    _RESUMED,
]

_OPENED = AMQP_HEADER + wire(_OPEN) + wire(_BEGIN)
_LINKED = _OPENED + wire(_SENDER) + wire(_RECEIVER) + wire(_CREDIT)
_SENT = _LINKED + encode_frame(0, _TRANSFER, _MESSAGE)

CONVERSATIONS = [
    AMQP_HEADER + wire(_OPEN) + wire(Close(error=_ERROR)),
    SASL_HEADER + wire(SaslInit(Symbol("ANONYMOUS"))) + _OPENED,
    _SENT + wire(BODIES[6]) + wire(Detach(0, closed=True)) + wire(End()) + wire(Close()),
    _LINKED + encode_frame(0, _MORE, _MESSAGE) + encode_frame(0, Transfer(0, aborted=True)),
    _OPENED + wire(_RELAY) + encode_frame(0, _TRANSFER, bytes.fromhex("005373c00a034040a10571")),
    _SENT + wire(Disposition(True, 0, state=Rejected(error=_ERROR))) + encode_frame(0),
]


_OTHERS: dict[str, Callable[[], list[bytes]]] = {
    "login": logins.login_seeds,
    "credentials": logins.credentials_seeds,
    "tls": streams.tls_seeds,
    "first": streams.first_seeds,
    "websocket": streams.websocket_seeds,
    "proxy": streams.proxy_seeds,
    "policy": policies.policy_seeds,
    "vhosts": policies.vhosts_seeds,
    "sas": claims.sas_seeds,
    "jwt": claims.jwt_seeds,
    "cbs": claims.cbs_seeds,
}


def seeds(target: str) -> list[bytes]:
    """Return the seeds of a target of `targets`."""
    if target == "value":
        return [encode_value(value) for value in VALUES]
    if target == "body":
        return [wire(body)[8:] for body in BODIES] + [encode_frame(0, _TRANSFER, _MESSAGE)[8:]]
    if target == "server":
        said = [bytes((0, 255)) + each for each in CONVERSATIONS]
        return said + [bytes((4, 255)) + wire(body) for body in BODIES]
    if target == "trace":
        return [bytes((200,)) + each for each in CONVERSATIONS]
    if target == "conf":
        return [text.encode() for text in FILES]
    if target == "control":
        return [encode_control(message) for message in CONTROL]
    if target in _OTHERS:
        return _OTHERS[target]()
    return [bytes(range(2, 250)) * 4]
