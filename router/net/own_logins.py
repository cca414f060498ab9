"""Authenticate at a server by SCRAM, for connectors and for the client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from router.amqp.constants import Condition
from router.engine import events, sasl
from router.errors import AmqpError

if TYPE_CHECKING:
    from router.net.pump import Pump
    from router.net.scram import ScramClientLogin

SERVER_NOT_PROVED = AmqpError(
    Condition.UNAUTHORIZED_ACCESS,
    "the server did not prove that it knows the user, or its messages are not those of SCRAM",
)


class OwnLogin:
    """Login at a server by SCRAM, with the user and password in the connection's settings."""

    def __init__(self, pump: Pump) -> None:
        self._pump = pump
        self._login: ScramClientLogin | None = None

    async def step(self, event: events.LoginEvent) -> None:
        """Answer one event of the login; hashes are computed in a thread."""
        from router.net.scram import LoginRefused, ScramClientLogin

        connection, hub = self._pump.connection, self._pump.hub
        settings = connection.settings
        try:
            if isinstance(event, events.SaslInitDue):
                user, password = settings.sasl_username or "", settings.sasl_password or ""
                self._login = ScramClientLogin(event.mechanism, user, password)
                response = self._login.first()
                hub.begin_turn()
                sasl.send_init(connection, response)
            elif isinstance(event, events.SaslChallengeReceived):
                assert self._login is not None
                response = await trio.to_thread.run_sync(self._login.answer, event.challenge)
                hub.begin_turn()
                sasl.respond(connection, response)
            else:
                assert self._login is not None
                self._login.check(event.proof)
                self._login = None
                hub.begin_turn()
                sasl.proceed(connection)
        except LoginRefused:
            hub.begin_turn()
            connection.close(SERVER_NOT_PROVED)
        hub.finish_turn()
        self._pump.read_again()
