"""Authenticate peers by SASL: ANONYMOUS, EXTERNAL, PLAIN or SCRAM with a users file, or a plugin.

RFC 4505, RFC 4422 (appendix A), RFC 4616 and RFC 5802. `plugin_logins` handles the logins that are
left to a plugin.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

import attrs
import trio

from router.config.scram import MECHANISMS as SCRAM
from router.config.users import ANONYMOUS, Users, verify
from router.engine.sasl import ALIASES
from router.net.callouts import Callouts
from router.net.failed_logins import FailedLogins
from router.net.fair_limiter import FairLimiter
from router.net.threads import processors, stand_back

if TYPE_CHECKING:
    from router.core.addresses.claims import VerifiedToken
    from router.net.claims.verifier import LiveClaims
    from router.net.scram import ScramLogin

# Password hashes are slow on purpose, and take much memory. They get half of the processors, so
# that the event loop need not wait for one, and at most two, since more would wait for memory.
# Hosts take turns, so one that tries password after password cannot keep others out.
MOST_HASHES: Final = 2


def hashes_at_once(count: int) -> int:
    """Return how many passwords are hashed at the same time, with `count` processors."""
    return max(1, min(MOST_HASHES, count // 2))


_HASHING = FairLimiter(hashes_at_once(processors()))
# Failing hosts get one of these after the other, and for each wrong password they rest for so many
# times as long as its hash took. A thread keeps the event loop waiting when it begins and ends.
_SLOW_HASHING = FairLimiter(1)
RESTS: Final = 4
# Logins of one host that wait for a hash. More would hardly get a turn in time.
MOST_WAITING: Final = 128
# Mechanisms that the router itself handles.
OWN: Final = frozenset({"ANONYMOUS", "EXTERNAL", "PLAIN", *SCRAM})
# A login that gets no turn within this time fails. If it began later, it would hardly finish before
# the handshake time-out.
LONGEST_WAIT_S = 8.0


@attrs.frozen
class Step:
    """Answer to one SASL message of a peer: a challenge, or the user that has authenticated.

    With neither of them, the peer has failed to authenticate. With `is_refusal` it has failed as
    well, but it gets a challenge that says so before the outcome. `proof` is the additional data of
    a successful outcome: it proves to the peer that the server knows the user, too.
    """

    challenge: bytes | None = attrs.field(default=None, repr=False)
    user: str | None = None
    proof: bytes | None = attrs.field(default=None, repr=False)
    groups: frozenset[str] = frozenset()
    is_refusal: bool = False
    # the rights of the shared access key that the peer has logged in with, if it has
    token: VerifiedToken | None = None

    @property
    def fails(self) -> bool:
        """Return whether the peer has failed to authenticate."""
        return self.is_refusal or (self.challenge is None and self.user is None)


_FAILED: Final = Step()


class Login(Protocol):
    """Authentication of one peer by one mechanism."""

    async def step(self, response: bytes) -> Step:
        """Return the answer to the peer's next message.

        Raises `trio.TooSlowError` if too many logins wait, and `CalloutFailed` if a plugin fails.
        """


@attrs.frozen
class Authenticator:
    """Authenticator of one listener's peers.

    `users` are the users that the listener admits. `plugin` is the name of the plugin that
    authenticates by the mechanisms that it handles; the router handles the others. `claims` returns
    the verifier of the peers' tokens, or None: its shared access keys are valid for PLAIN as well.
    `is_slowed` returns whether the logins of a host are handled slowly.
    """

    users: Users | None = attrs.field(repr=False)
    plugin: str | None = None
    callouts: Callouts | None = attrs.field(default=None, repr=False)
    claims: Callable[[], LiveClaims | None] = attrs.field(default=lambda: None, repr=False)
    is_slowed: Callable[[str], bool] = attrs.field(default=lambda _: False, repr=False)
    failed: FailedLogins = attrs.field(factory=FailedLogins, init=False, eq=False, repr=False)

    def offered(self, mechanisms: tuple[str, ...]) -> tuple[str, ...]:
        """Return those of a listener's mechanisms that the router or the plugin handles."""
        own = {"ANONYMOUS", "EXTERNAL"} if self.users is None else {*OWN}
        if self.claims() is not None:
            own.add("PLAIN")
        return tuple(
            each
            for each in mechanisms
            if (name := ALIASES.get(each, each)) in own or self.is_left_to_plugin(name)
        )

    def is_left_to_plugin(self, mechanism: str) -> bool:
        """Return whether the plugin decides about logins by a mechanism.

        Until the plugin's mechanisms are known, all are left to it except for SCRAM, which no
        plugin handles: it takes several steps.
        """
        if self.plugin is None or mechanism in SCRAM:
            return False
        handled = None if self.callouts is None else self.callouts.mechanisms(self.plugin)
        return handled is None or mechanism in handled

    def begin(
        self,
        mechanism: str,
        host: str,
        external_user: str | None = None,
        hostname: str | None = None,
    ) -> Login:
        """Begin the authentication of a peer by a mechanism that is not left to the plugin.

        `host` is the host of this peer, `external_user` the user that its certificate stands for,
        and `hostname` the one in its sasl-init or, without one, in TLS or HTTP.
        """
        if mechanism == "ANONYMOUS":
            return _Anonymous()
        if mechanism == "EXTERNAL":
            return _External(external_user)
        plain = None if self.users is None else _Plain(self.users, host, hostname, self.is_slowed)
        claims = self.claims() if mechanism == "PLAIN" else None
        if claims is not None:
            return _PlainByKey(claims, plain)
        if self.users is None or plain is None:
            return _Refused()
        if mechanism == "PLAIN":
            return plain
        if mechanism not in SCRAM:
            return _Refused()
        # only here: a router without such a listener does not need the library
        from router.net.scram import ScramLogin

        return _Scram(ScramLogin(self.users, mechanism, hostname))


class _Anonymous:
    """Login that accepts any response: clients put arbitrary trace information there."""

    async def step(self, response: bytes) -> Step:
        return Step(user=ANONYMOUS)


class _Refused:
    """Login by a mechanism for which the listener has no users."""

    async def step(self, response: bytes) -> Step:
        return _FAILED


@attrs.frozen
class _External:
    """Login by a certificate."""

    user: str | None

    async def step(self, response: bytes) -> Step:
        # only the user's own identity is granted as authorization identity
        if self.user is None or response not in (b"", self.user.encode()):
            return _FAILED
        return Step(user=self.user)


@attrs.frozen
class _Plain:
    """Login by PLAIN; few passwords are checked at a time, and the peers' hosts take turns."""

    users: Users = attrs.field(repr=False)
    host: str
    hostname: str | None
    is_slowed: Callable[[str], bool] = attrs.field(repr=False)

    async def step(self, response: bytes) -> Step:
        given = _user_and_password(response)
        if given is None:
            return _FAILED
        user, secret = self.users.name_of(given[0], self.hostname), given[1]
        host = self.host
        if _HASHING.waiting_of(host) + _SLOW_HASHING.waiting_of(host) >= MOST_WAITING:
            raise trio.TooSlowError
        with trio.fail_after(LONGEST_WAIT_S) as waiting:
            if not self.is_slowed(host):
                is_right, _ = await self._check(user, secret, waiting)
            else:
                async with _SLOW_HASHING.slot(host):
                    is_right, took_s = await self._check(user, secret, waiting)
                    if not is_right:
                        await trio.sleep(RESTS * took_s)
        return Step(user=user) if is_right else _FAILED

    async def _check(self, user: str, secret: str, waiting: trio.CancelScope) -> tuple[bool, float]:
        """Return whether a password is right, and how many seconds that took to find out.

        `waiting` limits the time until this begins.
        """
        async with _HASHING.slot(self.host):
            waiting.deadline = math.inf
            began = trio.current_time()
            is_right = await trio.to_thread.run_sync(_verify, self.users, user, secret)
            return is_right, trio.current_time() - began


def _user_and_password(response: bytes) -> tuple[str, str] | None:
    """Return the user and the password in a response of PLAIN; None if it is invalid."""
    parts = response.split(b"\0")
    if len(parts) != 3:
        return None
    identity, name, password = parts
    if identity and identity != name:
        # this router grants only the user's own identity as authorization identity
        return None
    try:
        return name.decode(), password.decode()
    except UnicodeDecodeError:
        return None


@attrs.frozen
class _PlainByKey:
    """Login by PLAIN with the name and value of a shared access key, or else as a user."""

    claims: LiveClaims = attrs.field(repr=False)
    users: _Plain | None

    async def step(self, response: bytes) -> Step:
        given = _user_and_password(response)
        token = None if given is None else self.claims.log_in(*given)
        if given is not None and token is not None:
            return Step(user=given[0], token=token)
        return _FAILED if self.users is None else await self.users.step(response)


@attrs.define
class _Scram:
    """Login by SCRAM; its steps cost the router little."""

    login: ScramLogin = attrs.field(repr=False)
    is_begun: bool = False

    async def step(self, response: bytes) -> Step:
        from router.net.scram import LoginRefused

        try:
            if not self.is_begun and not response:
                # the client expects to be asked for its first message
                return Step(challenge=b"")
            if not self.is_begun:
                self.is_begun = True
                return Step(challenge=self.login.first(response))
            user, proof = self.login.last(response)
        except LoginRefused:
            return _FAILED
        return Step(user=user, proof=proof)


def _verify(users: Users, user: str, secret: str) -> bool:
    """Return whether a password is right; called in a thread."""
    stand_back()
    return verify(users, user, secret)
