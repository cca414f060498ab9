"""Deliveries of a terminus without a link, and their settlement."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.constants import ReceiverSettleMode, TerminusExpiryPolicy as Policy
from router.amqp.performatives import Accepted, Target

from support.in_memory import Client, Router, SendingLink

LASTS: dict[str, Any] = {"expiry_policy": Policy.LINK_DETACH, "timeout": 30}


def lasting_sender(client: Client, **fields: Any) -> SendingLink:
    return client.sender("q", target=Target(address="q", **LASTS), **fields)


@pytest.mark.parametrize("comes_back", [False, True])
def test_a_delivery_whose_tag_was_reused_is_settled_with_its_receiver(comes_back: bool) -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    client = router.client(container="c")
    sender = lasting_sender(client, name="link", rcv_settle_mode=ReceiverSettleMode.SECOND)
    for _ in range(2):
        sender.send(b"x", tag=b"tag")
        receiver.settle(Accepted(), settled=False)
    client.lose()
    assert len(receiver.unsettled) == 2
    if comes_back:
        lasting_sender(router.client(container="c"), name="link", unsettled={b"tag": None})
        assert len(receiver.unsettled) == 1
    router.wait(31)
    assert len(receiver.unsettled) == comes_back
