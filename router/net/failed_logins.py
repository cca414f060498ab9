"""Delay the outcome of failed logins, so that nobody can try passwords quickly.

Only failures are delayed: a client that has the right password does not notice that another one on
its host has not. A host may have only some failed logins waiting at a time, so more connections do
not help it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import attrs
import trio

# Failed logins of a host that are not delayed: people mistype, and programs are misconfigured.
FREE: Final = 5
# Delay of the next failed login, which doubles with each further one, up to the longest. The
# outcome must come before the handshake time-out.
FIRST_DELAY_S: Final = 0.1
LONGEST_DELAY_S: Final = 5.0
# After this long without a failed login, a host's failures are forgotten.
FORGOTTEN_AFTER_S: Final = 60.0
# Failed logins of one host that wait at a time, and hosts that are remembered.
MOST_WAITING: Final = 64
MOST_HOSTS: Final = 10_000


@attrs.define
class _Host:
    failures: int = 0
    waiting: int = 0
    last_s: float = 0.0


@attrs.define(eq=False)
class FailedLogins:
    """Failed logins at one listener, by the peers' hosts; the host that failed last is the last."""

    _hosts: OrderedDict[str, _Host] = attrs.field(factory=OrderedDict, init=False)

    def check(self, host: str) -> None:
        """Raise `trio.TooSlowError` if so many failed logins of the host wait that no more may."""
        found = self._hosts.get(host)
        if found is not None and found.waiting >= MOST_WAITING:
            raise trio.TooSlowError

    async def delay(self, host: str) -> None:
        """Wait as long as a failed login of the host has to."""
        found = self._hosts.pop(host, None) or _Host()
        self._hosts[host] = found
        if len(self._hosts) > MOST_HOSTS:
            self._hosts.popitem(last=False)
        now = trio.current_time()
        if now - found.last_s > FORGOTTEN_AFTER_S:
            found.failures = 0
        found.failures += 1
        found.last_s = now
        if found.failures <= FREE:
            return
        doublings = min(found.failures - FREE - 1, 16)
        found.waiting += 1
        try:
            await trio.sleep(min(FIRST_DELAY_S * 2**doublings, LONGEST_DELAY_S))
        finally:
            found.waiting -= 1
