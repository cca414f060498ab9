"""Failover attributes: alternatives for the clients of a listener, and for a connector."""

from __future__ import annotations

from typing import Final

import attrs

from router.config import kinds
from router.config.setting import setting
from router.config.urls import DEFAULT_PORTS, urls

# Attribute of a listener.
FAILOVER_URLS: Final[tuple[str, ...]] = attrs.field(
    default=(),
    metadata=setting(
        urls(*DEFAULT_PORTS),
        "Alternative places for clients, sent to them in open as failover-server-list; many "
        "clients connect there by themselves when their connection is lost.",
    ),
)

# Attributes of a connector.
BACKUP_URLS: Final[tuple[str, ...]] = attrs.field(
    default=(),
    metadata=setting(
        urls("amqp"),
        "Further places to connect to, which are tried in turn after host and port while there is "
        "no connection. They get its user and password.",
    ),
)
FAILOVER_HOSTS: Final[tuple[str, ...]] = attrs.field(
    default=(),
    metadata=setting(
        kinds.hosts(any_host=True),
        "The hosts that the peer may add to those places with the failover-server-list of its "
        "open, beside the host and those of backupUrls, on any port. They get the user and "
        'password; without a saslUsername, "*" stands for any host.',
    ),
)
