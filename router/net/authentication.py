"""Authenticate peers by SASL: ANONYMOUS, EXTERNAL, and PLAIN with a users file.

RFC 4505, RFC 4422 (appendix A) and RFC 4616.
"""

from __future__ import annotations

import math
import os
import threading

import attrs
import trio

from router.config.users import ANONYMOUS, Users, verify
from router.net.fair_limiter import FairLimiter

# Password hashes are slow on purpose; more than a few at once would only queue on the processors.
# Hosts take turns, so one that tries password after password cannot keep others out.
_HASHING = FairLimiter(2)
# A login that gets no turn within this time fails. If it began later, it would hardly finish before
# the handshake time-out.
LONGEST_WAIT_S = 8.0
# Niceness of hashing threads relative to the loop. If processors are short, each thread gets a
# third of the loop's time.
NICENESS = 5
LEAST_PRIORITY = 19


@attrs.frozen
class Authenticator:
    """Authenticator of one listener's peers; `users` are the users that the listener admits."""

    users: Users | None = attrs.field(repr=False)

    async def authenticate(
        self, mechanism: str, response: bytes, host: str, external_user: str | None = None
    ) -> str | None:
        """Return the user's name, or None if the peer fails to authenticate.

        ANONYMOUS accepts any response, since clients put arbitrary trace information there. Few
        passwords are checked at a time, and the peers' hosts take turns; `host` is the host of this
        peer, and `external_user` the user that its certificate stands for. Raises
        `trio.TooSlowError` if the check cannot begin in time because too many logins wait.
        """
        if mechanism == "ANONYMOUS":
            return ANONYMOUS
        if mechanism == "EXTERNAL":
            # only the user's own identity is granted as authorization identity
            is_own = external_user is not None and response in (b"", external_user.encode())
            return external_user if is_own else None
        if mechanism != "PLAIN" or self.users is None:
            return None
        parts = response.split(b"\0")
        if len(parts) != 3:
            return None
        identity, name, password = parts
        if identity and identity != name:
            # this router grants only the user's own identity as authorization identity
            return None
        try:
            user, secret = name.decode(), password.decode()
        except UnicodeDecodeError:
            return None
        with trio.fail_after(LONGEST_WAIT_S) as waiting:
            async with _HASHING.slot(host):
                waiting.deadline = math.inf
                is_right = await trio.to_thread.run_sync(_verify, self.users, user, secret)
        return user if is_right else None


def _verify(users: Users, user: str, secret: str) -> bool:
    """Return whether a password is right, after lowering the priority of this thread."""
    # on Linux, niceness is per thread
    nice = os.getpriority(os.PRIO_PROCESS, os.getpid()) + NICENESS
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(nice, LEAST_PRIORITY))
    return verify(users, user, secret)
