"""Logins that are left to a plugin: it decides by the peer's first response.

If a token is refused, a second response follows, to the challenge that says so.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import attrs

from router.amqp.constants import SaslCode
from router.net.authentication import Step
from router.net.callouts import Attempt, CalloutFailed, Callouts

if TYPE_CHECKING:
    from collections.abc import Callable

# A refusal of a token is sent as JSON in a challenge, and the outcome only after the peer's answer
# to that (RFC 7628, section 3.2.2; XOAUTH2 has an older form).
REFUSALS: Final = {
    "OAUTHBEARER": json.dumps({"status": "invalid_token"}).encode(),
    "XOAUTH2": json.dumps({"status": "401", "schemes": "bearer"}).encode(),
}


@attrs.define
class PluginLogin:
    """Login of one peer by a mechanism that a plugin handles.

    `attempt` is what the plugin gets, still without the response. `time_left_s` returns the time
    that is left for the plugin's answer.
    """

    plugin: str
    callouts: Callouts | None = attrs.field(repr=False)
    host: str
    attempt: Attempt
    time_left_s: Callable[[], float] = attrs.field(repr=False)
    # whether an empty challenge has asked for the first response; whether the peer was refused
    is_asked: bool = False
    is_refused: bool = False

    async def step(self, response: bytes) -> Step:
        """Return the answer to the peer's next message; raises CalloutFailed."""
        mechanism = self.attempt.mechanism
        if self.is_refused:
            # whatever the response is: it should be a single ^A, and changes nothing
            return Step()
        if not response and not self.is_asked and mechanism in ("PLAIN", *REFUSALS):
            self.is_asked = True
            return Step(challenge=b"")
        if self.callouts is None:
            raise CalloutFailed(SaslCode.SYS_PERM, self.plugin, "this router runs no plugins")
        user = self.attempt.external_user
        if mechanism == "EXTERNAL" and (user is None or response not in (b"", user.encode())):
            # as without a plugin: only the user's own identity is granted
            return Step()
        attempt = attrs.evolve(self.attempt, response=response)
        known = await self.callouts.authenticate(
            self.plugin, self.host, attempt, self.time_left_s()
        )
        if known is not None:
            return Step(user=known.user, groups=known.groups)
        self.is_refused = True
        return Step(challenge=REFUSALS.get(mechanism), is_refusal=True)
