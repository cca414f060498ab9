"""Failover attributes: alternative servers for the clients of a listener, and for a connector."""

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
        "URLs of alternative servers for clients, sent to them in open as failover-server-list. "
        "Many clients connect to them on their own when their connection is lost.",
    ),
)

# Attributes of a connector.
BACKUP_URLS: Final[tuple[str, ...]] = attrs.field(
    default=(),
    metadata=setting(
        urls("amqp", "amqps"),
        "URLs of alternative servers, which are tried in turn after host and port while there "
        "is no connection. They are sent the same user and password. With an sslProfile, TLS is "
        "used for all of them.",
    ),
)
FAILOVER_HOSTS: Final[tuple[str, ...]] = attrs.field(
    default=(),
    metadata=setting(
        kinds.hosts(any_host=True),
        "The hosts that the peer may add to these servers with the failover-server-list in its "
        "open, besides host and those in backupUrls, on any port. They are sent the same user "
        'and password; without a saslUsername, "*" stands for any host.',
    ),
)
