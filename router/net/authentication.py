"""Who a peer is: SASL ANONYMOUS, and PLAIN against a users file (RFC 4505, RFC 4616)."""

from __future__ import annotations

import math
import os
import threading

import attrs
import trio

from router.config.users import ANONYMOUS, Users, verify
from router.net.turns import Turns

# Password hashes are slow on purpose; more than a few at once would only queue on the processors.
# Hosts take turns, so that one that tries password after password keeps no other out.
_HASHING = Turns(2)
# Whoever has no turn within this has to come again. A login that began later would hardly be done
# before the handshake's time is up.
LONGEST_WAIT_S = 8.0
# How far threads that hash stand back behind the loop where processors are short: each gets a third
# of what the loop gets.
NICENESS = 5
LEAST_PRIORITY = 19


@attrs.frozen
class Authenticator:
    """What one listener knows about its users."""

    users: Users | None = attrs.field(repr=False)

    async def authenticate(self, mechanism: str, response: bytes, host: str) -> str | None:
        """The user's name, or None where the peer, on that host, failed to prove it.

        ANONYMOUS takes anything, whatever trace information clients put there. Raises
        `trio.TooSlowError` where too many others are before it.
        """
        if mechanism == "ANONYMOUS":
            return ANONYMOUS
        if mechanism != "PLAIN" or self.users is None:
            return None
        parts = response.split(b"\0")
        if len(parts) != 3:
            return None
        identity, name, password = parts
        if identity and identity != name:
            # speaking for somebody else is nothing that this router grants
            return None
        try:
            user, secret = name.decode(), password.decode()
        except UnicodeDecodeError:
            return None
        with trio.fail_after(LONGEST_WAIT_S) as waiting:
            async with _HASHING.turn(host):
                waiting.deadline = math.inf
                is_right = await trio.to_thread.run_sync(_verify, self.users, user, secret)
        return user if is_right else None


def _verify(users: Users, user: str, secret: str) -> bool:
    """Check a password, in a thread that lets others go first; on Linux each has its niceness."""
    nice = os.getpriority(os.PRIO_PROCESS, os.getpid()) + NICENESS
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(nice, LEAST_PRIORITY))
    return verify(users, user, secret)
