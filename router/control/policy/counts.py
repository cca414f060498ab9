"""Counts of what a policy allows and refuses, for one virtual host or for all of them."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs

from router.engine.shared_accounts import STATE, SharedAccount, SharedLimits

if TYPE_CHECKING:
    from router.config.vhosts import VhostSettings
    from router.control.policy.vhost_rule import Denial

# What was refused (`Denial.what`), and below the count to which it is added.
CONNECTION: Final = "connection"
SESSION: Final = "session"
SENDER: Final = "sender"
RECEIVER: Final = "receiver"
MESSAGE: Final = "message"
MESSAGE_SIZE: Final = "message size"
_COUNTS: Final = {
    CONNECTION: "denied",
    SESSION: "sessions_denied",
    STATE: "state_denied",
    SENDER: "senders_denied",
    RECEIVER: "receivers_denied",
    MESSAGE: "messages_denied",
    MESSAGE_SIZE: "large_messages_denied",
}
_LINKS: Final = {
    "allowDynamicSource": "dynamic_sources_denied",
    "allowAnonymousSender": "anonymous_senders_denied",
    "sources": "sources_denied",
    "targets": "targets_denied",
}

# The account of no connection, in which nothing is counted.
_NOBODY: Final = SharedAccount("", SharedLimits())


@attrs.define(eq=False)
class PolicyCounts:
    """Counts of connections, and of what was refused.

    `current` is the number of open connections. `sources_denied` and `targets_denied` are the links
    that were refused because of their addresses.
    """

    approved: int = 0
    denied: int = 0
    current: int = 0
    sessions_denied: int = 0
    state_denied: int = 0
    senders_denied: int = 0
    receivers_denied: int = 0
    messages_denied: int = 0
    large_messages_denied: int = 0
    dynamic_sources_denied: int = 0
    anonymous_senders_denied: int = 0
    sources_denied: int = 0
    targets_denied: int = 0

    @property
    def links_denied(self) -> int:
        """Return how many links were refused."""
        return self.senders_denied + self.receivers_denied

    @property
    def total_denied(self) -> int:
        """Return the number of refusals of all kinds."""
        return sum(getattr(self, name) for name in _COUNTS.values())

    def count(self, denial: Denial) -> None:
        """Count a refusal."""
        name = _COUNTS.get(denial.what, "messages_denied")
        setattr(self, name, getattr(self, name) + 1)
        detail = _LINKS.get(denial.attribute) if denial.what in (SENDER, RECEIVER) else None
        if detail is not None:
            setattr(self, detail, getattr(self, detail) + 1)


@attrs.define(eq=False)
class VhostCounts(PolicyCounts):
    """Counts of one virtual host, with the number of open connections of each user and host.

    `shared` has the accounts of the virtual host and of each user and host, by the name of the
    setting's end (such as `PerUser`) and by the user or host.
    """

    by_user: Counter[str] = attrs.Factory(Counter)
    by_host: Counter[str] = attrs.Factory(Counter)
    shared: dict[tuple[str, str], SharedAccount] = attrs.field(factory=dict, repr=False)

    @property
    def sessions_current(self) -> int:
        """Return how many sessions all connections have."""
        return self._of_all.sessions

    @property
    def links_current(self) -> int:
        """Return how many links all connections have."""
        return self._of_all.links

    @property
    def state_current(self) -> int:
        """Return how many octets of state all connections have."""
        return self._of_all.total

    @property
    def _of_all(self) -> SharedAccount:
        return self.shared.get(("", ""), _NOBODY)

    def enter(self, user: str, host: str) -> None:
        """Add a connection to which the policy applies from now on."""
        self.current += 1
        self.by_user[user] += 1
        self.by_host[host] += 1

    def leave(self, user: str, host: str) -> None:
        """Remove a connection that has ended, or that belongs to another virtual host now."""
        self.current -= 1
        for counter, key in ((self.by_user, user), (self.by_host, host)):
            counter[key] -= 1
            if not counter[key]:
                del counter[key]

    def accounts_of(
        self, settings: VhostSettings, user: str, host: str
    ) -> tuple[SharedAccount, ...]:
        """Return the shared accounts of a user's connection from a host, with their limits."""
        return (
            self._account("", "", "the vhost", _limits(settings)),
            self._account("PerUser", user, f"user {user!r}", _user_limits(settings)),
            self._account("PerHost", host, f"host {host}", _host_limits(settings)),
        )

    def full_account(self, user: str, host: str, octets: int) -> str:
        """Return which limit on state a connection of so many octets exceeds; empty if none."""
        for place in (("", ""), ("PerUser", user), ("PerHost", host)):
            account = self.shared.get(place)
            excess = None if account is None else account.state_excess(octets)
            if excess is not None:
                return excess.reason
        return ""

    def _account(self, suffix: str, key: str, whose: str, limits: SharedLimits) -> SharedAccount:
        place = (suffix, key)
        found = self.shared.get(place)
        if found is None:
            forget = partial(self.shared.pop, place, None)
            found = self.shared[place] = SharedAccount(whose, limits, forget)
        found.limits = limits
        return found


def _limits(settings: VhostSettings) -> SharedLimits:
    return SharedLimits(
        settings.max_sessions or 0, settings.max_links or 0, settings.max_state_bytes or 0
    )


def _user_limits(settings: VhostSettings) -> SharedLimits:
    return SharedLimits(
        settings.max_sessions_per_user or 0,
        settings.max_links_per_user or 0,
        settings.max_state_bytes_per_user or 0,
        "PerUser",
    )


def _host_limits(settings: VhostSettings) -> SharedLimits:
    return SharedLimits(
        settings.max_sessions_per_host or 0,
        settings.max_links_per_host or 0,
        settings.max_state_bytes_per_host or 0,
        "PerHost",
    )
