"""Urgent messages of other implementations go first where they have to wait."""

from __future__ import annotations

import pytest
from proton import Message

from support.proton_peers import ProtonConnection, ProtonPeers
from support.routers import RouterProcess


def round_trip(connection: ProtonConnection) -> None:
    """Whatever the router had to say to a connection so far has arrived when this returns."""
    connection.receiver("round-trip").detach()


@pytest.mark.spec("3.2.1-4", "B2.2.3-1")
def test_what_waits_for_credit_comes_by_priority(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    receiver = proton.connect(router.url()).receiver(address, 0)
    sending = proton.connect(router.url())
    # an anonymous sender's messages may wait, however little credit their receivers have given
    sender = sending.sender(None)
    priorities = [4, 0, 9, 4, 1, 9, 5, 4]
    for n, priority in enumerate(priorities):
        sender.send(Message(n, address=address, priority=priority), wait=False)
    # without a header it is as good as 4
    sender.send(Message(8, address=address), wait=False)
    proton.until(lambda: sender.link.queued == 0, "everything is sent")
    round_trip(sending)
    assert receiver.received == []
    receiver.link.flow(1)
    receiver.get(1)
    receiver.link.flow(100)
    receiver.get(9)
    assert receiver.bodies() == [2, 5, 6, 0, 3, 7, 8, 4, 1]
    proton.until(sender.all_settled, "everything is settled")
    assert sender.outcomes == ["accepted"] * 9
