"""Router without sockets whose peers are subject to a policy, and its clients.

router = Policed(vhost("a.com", default={"sources": ("q",)}))
receiver = router.peer("a.com", user="ada").receiver("q")
"""

from __future__ import annotations

from typing import Any

from router.amqp.framing import AMQP_HEADER
from router.amqp.performatives import Begin, Open
from router.config.vhosts import PolicySettings, VhostGroupSettings, VhostSettings
from router.control.policy.gate import Gate
from router.control.policy.policy import Policy
from router.engine.connection import Connection

from support.in_memory import Client, Router

LOOPBACK = "127.0.0.1"


def group(**settings: Any) -> VhostGroupSettings:
    """Return the settings of a group that is open to all hosts."""
    return VhostGroupSettings(**{"remote_hosts": ("*",), **settings})


def vhost(name: str, **settings: Any) -> VhostSettings:
    """Return a virtual host; `default` has the settings of the group for all users.

    Other groups are in `groups`, by name.
    """
    default = settings.pop("default", None)
    groups = dict(settings.pop("groups", {}))
    if default is not None:
        groups["$default"] = group(**default)
        settings.setdefault("allow_unknown_user", True)
    return VhostSettings(hostname=name, groups=groups, **settings)


def policy(*vhosts: VhostSettings, **settings: Any) -> Policy:
    """Return a policy that applies to all peers, unless the settings say otherwise."""
    return Policy(PolicySettings(**{"enable_vhost_policy": True, **settings}), vhosts)


class Policed(Router):
    """Router with a gate; `denials` has what was refused, and the reason, in order."""

    def __init__(self, *vhosts: VhostSettings, router: Any = None, **settings: Any) -> None:
        super().__init__(**(router or {}))
        self.denials: list[tuple[str, str]] = []
        self.gate = Gate(self.forwarder, policy(*vhosts, **settings), self._connections)
        self.gate.denied = self._denied

    def _connections(self) -> Any:
        return (client.connection for client in list(self.clients))

    def _denied(self, connection: Connection, what: str, reason: str) -> None:
        self.denials.append((what, reason))

    def event_received(self, connection: Connection, event: object) -> None:
        """Record an event, and pass it to the gate as the hub does."""
        super().event_received(connection, event)
        self.gate.event_received(connection, event)

    def apply(self, *vhosts: VhostSettings, **settings: Any) -> None:
        """Replace the policy, and take the turns that follow."""
        self.gate.replace(policy(*vhosts, **settings))
        self.finish_turn()
        for client in self.clients:
            client.carry()
        self.finish_turn()

    def peer(
        self, hostname: str | None = None, *, host: str = LOOPBACK, **settings: Any
    ) -> PolicedClient:
        """Add a client that opens its connection with a host name, and begins a session."""
        client = PolicedClient(self, hostname, host, **{"is_policed": True, **settings})
        self.clients.append(client)
        client.open()
        return client

    def tenant(self, hostname: str, **settings: Any) -> PolicedClient:
        """Add a client of a listener with an address space for each virtual host."""
        return self.peer(hostname, **{"multi_tenant": True, **settings})


class PolicedClient(Client):
    """Client with a host name in its open, on a connection from an IP address."""

    def __init__(self, router: Router, hostname: str | None, host: str, **settings: Any) -> None:
        super().__init__(router, **settings)
        self.hostname = hostname
        self.connection.name = f"[{host}]:4711" if ":" in host else f"{host}:4711"

    def open(self) -> None:
        """Open the connection and begin the session."""
        opened = Open(self.container, hostname=self.hostname, max_frame_size=self.max_frame_size)
        begun = Begin(
            next_outgoing_id=self.first,
            incoming_window=self.window,
            outgoing_window=2**31 - 1,
        )
        self.say(AMQP_HEADER, opened, begun)

    @property
    def is_open(self) -> bool:
        """Return whether the connection is open."""
        return not self.over

    def condition(self) -> str:
        """Return the condition with which the connection was closed; empty if it is open."""
        closes = [each for each in self.heard if type(each).__name__ == "Close"]
        if not closes:
            return ""
        return str(closes[0].error.condition) if closes[0].error is not None else "closed"


def refusal(link: Any) -> str:
    """Return the condition with which a link was refused or detached; empty if it is attached."""
    if link.detached is None:
        return ""
    return str(link.detached.error.condition) if link.detached.error is not None else "detached"
