"""Redirects in the configuration: those that the router issues, and those it follows."""

from __future__ import annotations

from typing import Final, Literal, get_args

import attrs

from router.config import kinds
from router.config.setting import checked, setting

Direction = Literal["in", "out", "both"]

_HOSTNAME: Final = kinds.text(255, spaces=False)
_ONE_IS_NEEDED: Final = "none; one of prefix, pattern and hostname is needed"


@attrs.frozen(kw_only=True, field_transformer=checked)
class RedirectSettings:
    """Addresses, or a host, whose clients are redirected to another container."""

    prefix: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.address_prefix(),
            "Redirects links to the address that is this prefix, and to every address that goes on "
            "after it with another token, whatever address entities say of them.",
            default=_ONE_IS_NEEDED,
        ),
    )
    pattern: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.address_pattern(),
            "Redirects links to the addresses that match, as the pattern of an address does; of "
            "several redirects the most specific one counts.",
            default=_ONE_IS_NEEDED,
        ),
    )
    hostname: str | None = attrs.field(
        default=None,
        metadata=setting(
            _HOSTNAME,
            "Redirects the connections of peers that name this host in open, in capitals or not.",
            default=_ONE_IS_NEEDED,
        ),
    )
    direction: Direction = attrs.field(
        default="both",
        metadata=setting(
            kinds.choice(get_args(Direction)),
            "With prefix or pattern: which links, as the router sees them. Those that clients send "
            "on (in), and with them the messages of anonymous senders; those that clients receive "
            "on (out); or both.",
        ),
    )
    to_hostname: str | None = attrs.field(
        default=None,
        metadata=setting(
            _HOSTNAME,
            "What the container to go to is called: what clients are to send in open as hostname, "
            "and during SASL and TLS.",
            default="the toNetworkHost",
        ),
    )
    to_network_host: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.host(),
            "The DNS name or IP address of the machine to connect to.",
            default="none; it is needed",
            required=True,
        ),
    )
    to_port: int = attrs.field(
        default=kinds.AMQP_PORT,
        metadata=setting(kinds.port(1), "The TCP port on that machine to connect to."),
    )
    to_address: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.text(kinds.LONGEST_ADDRESS),
            "With prefix or pattern: the address at that container, one for all.",
            default="the address that the client asked for",
        ),
    )


# Attributes of a connector.
ALLOW_REDIRECT: Final[bool] = attrs.field(
    default=False,
    metadata=setting(
        kinds.flag(),
        "Whether to go where the peer sends the connector with amqp:connection:redirect, or an "
        "auto-link of its with amqp:link:redirect. If not, it stays with its host, and tries there "
        "again.",
    ),
)
REDIRECT_HOSTS: Final[tuple[str, ...]] = attrs.field(
    default=(),
    metadata=setting(
        kinds.hosts(),
        "With allowRedirect: the hosts it may be sent to, beside its own, on any port. They get "
        "its user and password as its own host does; to any other it does not connect.",
    ),
)
