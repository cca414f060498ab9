"""Who a peer is: SASL ANONYMOUS, and PLAIN against a users file (RFC 4505, RFC 4616)."""

from __future__ import annotations

import attrs
import trio

from router.config.users import ANONYMOUS, Users, verify

# Password hashes are slow on purpose; more than a few at once would only queue on the processors.
_HASHING = trio.CapacityLimiter(2)


@attrs.frozen
class Authenticator:
    """What one listener knows about its users."""

    users: Users | None = attrs.field(repr=False)

    async def authenticate(self, mechanism: str, response: bytes) -> str | None:
        """The user's name, or None where the peer failed to prove it.

        ANONYMOUS takes anything, whatever trace information clients put there.
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
        is_right = await trio.to_thread.run_sync(verify, self.users, user, secret, limiter=_HASHING)
        return user if is_right else None
