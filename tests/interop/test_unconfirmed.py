"""Durable messages to clients that take everything settled."""

from __future__ import annotations

import pytest
from proton import Message
from proton.reactor import AtMostOnce

from support.proton_peers import ProtonPeers
from support.rhea_peers import RheaPeer
from support.routers import StartRouter

CONFIGURATION = """
    [router]
    rejectUnconfirmedDurable = {}
    [[listener]]
    port = 0
    """


@pytest.mark.parametrize("refuses", [True, False])
def test_proton_and_rhea_confirm_nothing_of_what_they_take_settled(
    routers: StartRouter, proton: ProtonPeers, rhea: RheaPeer, address: str, refuses: bool
) -> None:
    router = routers(CONFIGURATION.format(str(refuses).lower()))
    connection = proton.connect(router.url())
    receiver = connection.receiver(address, 10, options=[AtMostOnce()])
    rhea.connect(router.port)
    rhea.receiver(f"{address}/rhea", snd_settle_mode=1)
    for name in (address, f"{address}/rhea"):
        sender = connection.sender(name)
        sent = sender.outcome(Message("durable", durable=True))
        assert sent.outcome == ("rejected" if refuses else "accepted")
        if refuses:
            assert sent.condition is not None
            assert sent.condition.name == "amqp:precondition-failed"
        assert sender.outcome(Message("not")).outcome == "accepted"
    count = 1 if refuses else 2
    assert [each.body for each in receiver.get(count)][-1] == "not"
    assert len(rhea.messages(count)) == count
