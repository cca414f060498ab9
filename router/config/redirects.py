"""Redirects in the configuration: those that the router issues, and those it follows."""

from __future__ import annotations

from typing import Final, Literal, get_args

import attrs

from router.config import kinds
from router.config.origins import web_socket_path
from router.config.setting import checked, setting

Direction = Literal["in", "out", "both"]
Scheme = Literal["amqp", "amqps", "ws", "wss"]

_HOSTNAME: Final = kinds.text(255, spaces=False)
_ONE_IS_NEEDED: Final = "none; prefix, pattern or hostname is required"


@attrs.frozen(kw_only=True, field_transformer=checked)
class RedirectSettings:
    """Addresses, or a host, whose clients are redirected to another container."""

    prefix: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.address_prefix(),
            "Redirects links to the address equal to this prefix, and to every address that "
            "continues it with another token, regardless of address entities.",
            default=_ONE_IS_NEEDED,
        ),
    )
    pattern: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.address_pattern(),
            "Redirects links to the addresses that match, by the same rules as the pattern of "
            "an address. If several redirects match, the most specific one counts.",
            default=_ONE_IS_NEEDED,
        ),
    )
    hostname: str | None = attrs.field(
        default=None,
        metadata=setting(
            _HOSTNAME,
            "Redirects the connections of peers that name this host in open, ignoring case.",
            default=_ONE_IS_NEEDED,
        ),
    )
    direction: Direction = attrs.field(
        default="both",
        metadata=setting(
            kinds.choice(get_args(Direction)),
            "With prefix or pattern: which links, as seen from the router: those that clients "
            "send on, and with them the messages of anonymous senders (in); those that clients "
            "receive on (out); or both.",
        ),
    )
    to_hostname: str | None = attrs.field(
        default=None,
        metadata=setting(
            _HOSTNAME,
            "The name of the container to connect to, which clients are asked to send in open "
            "as hostname, and during SASL and TLS.",
            default="the toNetworkHost",
        ),
    )
    to_network_host: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.host(),
            "The DNS name or IP address of the machine to connect to.",
            default="none; required",
            required=True,
        ),
    )
    to_port: int = attrs.field(
        default=kinds.AMQP_PORT,
        metadata=setting(kinds.port(1), "The TCP port on that machine to connect to."),
    )
    to_scheme: Scheme | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.choice(get_args(Scheme)),
            "How to connect to that machine. Clients of AMQP over WebSockets look at it.",
            default="none: clients connect as they have connected to this router",
        ),
    )
    to_path: str | None = attrs.field(
        default=None,
        metadata=setting(
            web_socket_path(),
            "The path of the WebSocket there, such as /$servicebus/websocket.",
            default="none",
        ),
    )
    to_address: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.text(kinds.LONGEST_ADDRESS),
            "With prefix or pattern: the address at that container, which is the same for all "
            "redirected links.",
            default="the address that the client requested",
        ),
    )


# Attributes of a connector.
ALLOW_REDIRECT: Final[bool] = attrs.field(
    default=False,
    metadata=setting(
        kinds.flag(),
        "Whether the connector follows redirects from the peer, which it gets with "
        "amqp:connection:redirect, or one of its auto-links with amqp:link:redirect. If not, it "
        "keeps its host and tries again there.",
    ),
)
REDIRECT_HOSTS: Final[tuple[str, ...]] = attrs.field(
    default=(),
    metadata=setting(
        kinds.hosts(),
        "With allowRedirect: the hosts, besides its own, to which the connector may be "
        "redirected, on any port. They are sent the same user and password as its own host. It "
        "does not connect to any other host.",
    ),
)
