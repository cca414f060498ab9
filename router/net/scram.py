"""SCRAM at both ends (RFC 5802, RFC 7677): the messages of one login, by the library scramp."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from scramp import ScramClient, ScramException, ScramMechanism

from router.config.scram import MOST_ITERATIONS, ScramKeys
from router.config.users import Users

T = TypeVar("T")


class LoginRefused(Exception):
    """Refusal of a login: a wrong password, an unknown user, or a message that is no SCRAM."""


class ScramLogin:
    """Login of one peer; `first`, then `last`, each with the peer's message.

    `hostname` is the host that the peer names. The password of an unknown user is checked as that
    of a known one. The peer never learns which of the two was wrong.
    """

    def __init__(self, users: Users, mechanism: str, hostname: str | None = None) -> None:
        self._users = users
        self._hostname = hostname
        self._mechanism = mechanism
        self._user = ""
        self._server = ScramMechanism(mechanism).make_server(self._keys)

    def first(self, message: bytes) -> bytes:
        """Return the challenge for a peer's first message; raises `LoginRefused`."""

        def answer() -> str:
            self._server.set_client_first(message.decode())
            first: str = self._server.get_server_first()
            return first

        return _refused_on_failure(answer).encode()

    def last(self, message: bytes) -> tuple[str, bytes]:
        """Return the user, and what proves to the peer that the server knows the password's hash.

        Raises `LoginRefused`.
        """

        def answer() -> str:
            self._server.set_client_final(message.decode())
            final: str = self._server.get_server_final()
            return final

        proof = _refused_on_failure(answer).encode()
        if self._user not in self._users.by_name:
            raise LoginRefused
        return self._user, proof

    def _keys(self, user: str) -> tuple[bytes, bytes, bytes, int]:
        self._user = self._users.name_of(user, self._hostname)
        keys: ScramKeys = self._users.scram_of(self._user, self._mechanism)
        return keys.salt, keys.stored_key, keys.server_key, keys.iterations


class ScramClientLogin:
    """Login of this side at a server; `first`, then `answer` for each challenge, then `check`."""

    def __init__(self, mechanism: str, user: str, password: str) -> None:
        self._client = _refused_on_failure(lambda: ScramClient([mechanism], user, password))
        self._has_answered = False
        # whether the server has proved that it knows the password's hash
        self._is_proved = False

    def first(self) -> bytes:
        """Return the first message."""
        first: str = self._client.get_client_first()
        return first.encode()

    def answer(self, challenge: bytes) -> bytes:
        """Return the answer to a challenge.

        This computes many hashes, so call it in a thread. Raises `LoginRefused`, also if the server
        asks for an excessive number of hashes.
        """
        if self._has_answered:
            self._check(challenge)
            return b""
        self._has_answered = True

        def final() -> str:
            self._client.set_server_first(challenge.decode())
            if int(self._client.iterations) > MOST_ITERATIONS:
                raise LoginRefused
            answer: str = self._client.get_client_final()
            return answer

        return _refused_on_failure(final).encode()

    def check(self, proof: bytes) -> None:
        """Raise `LoginRefused` unless the server knows the password's hash.

        Its proof comes with the success, or has come as the last challenge before it.
        """
        if not self._is_proved:
            self._check(proof)

    def _check(self, proof: bytes) -> None:
        _refused_on_failure(lambda: self._client.set_server_final(proof.decode()))
        self._is_proved = True


def _refused_on_failure(act: Callable[[], T]) -> T:
    """Call a function of the library; raise `LoginRefused` if the peer's message is no SCRAM."""
    try:
        return act()
    except (ScramException, ValueError, LookupError, TypeError, AttributeError):
        raise LoginRefused from None
