"""Connectors and real brokers: why one has no connection, and where it goes then."""

from __future__ import annotations

from typing import Any

import pytest
from proton import Message

from support.brokers import Broker
from support.management_tool import Tool
from support.ports import free_port
from support.proton_peers import ProtonPeers
from support.routers import RouterProcess, StartRouter

LISTENER = "[[listener]]\nport = 0\n\n"


def state(router: RouterProcess) -> dict[str, Any]:
    """Return the router's connector as management reports it."""
    tool = Tool(router)
    (connector,) = tool.query("connector")
    tool.close()
    return connector


@pytest.mark.parametrize("durable_broker", ["rabbitmq", "artemis"], indirect=True)
def test_a_wrong_password_is_told_in_words(
    durable_broker: Broker, routers: StartRouter, proton: ProtonPeers
) -> None:
    wrong = durable_broker.connector().replace(
        f'saslPassword = "{durable_broker.password}"', 'saslPassword = "wrong"'
    )
    assert "wrong" in wrong
    router = routers(LISTENER + wrong)
    proton.until(lambda: state(router)["failedAttempts"] > 1, "it was tried more than once")
    told = state(router)
    assert (told["connectionStatus"], told["lastErrorKind"]) == ("FAILED", "unauthorized")
    user = durable_broker.user
    assert told["lastError"] == f"the server refuses user {user} (SASL outcome 1)"


def test_the_standby_is_gone_to_while_the_broker_is_away(
    artemis: Broker, routers: StartRouter, proton: ProtonPeers, address: str
) -> None:
    nobody = free_port()
    there = artemis.connector()
    port = artemis.port
    away = there.replace(f"port = {port}\n", f'port = {nobody}\nbackupUrls = "127.0.0.1:{port}"\n')
    assert away != there
    router = routers(LISTENER + away)
    proton.until(lambda: state(router)["connectionStatus"] == "SUCCESS", "the standby is there")
    told = state(router)
    assert told["failoverUrls"] == f"amqp://127.0.0.1:{port}, amqp://127.0.0.1:{nobody}"
    assert told["lastError"] == "Connection refused"
    artemis.kill()
    proton.until(lambda: state(router)["failedAttempts"] > 2, "both are away")
    assert state(router)["connectionStatus"] == "CONNECTING"
    artemis.start()
    proton.until(lambda: state(router)["connectionStatus"] == "SUCCESS", "it is there again")
    # and the router is none the worse for it
    client = proton.connect(router.url())
    receiver = client.receiver(address, 1)
    assert client.sender(address).outcome(Message("x")).outcome is not None
    assert receiver.get()[0].body == "x"
