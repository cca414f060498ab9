"""A receiver that sends heartbeats and never reads, beside Proton's receivers of a multicast."""

from __future__ import annotations

import json
from typing import Any

import pytest
from proton import Message

from router.amqp.constants import Condition
from router.amqp.performatives import Detach

from support.commands import invoke
from support.configuring import entity
from support.proton_peers import ProtonPeers
from support.raw_peers import RawPeer
from support.routers import RouterProcess, StartRouter

LISTENER = entity("listener", port=0)
WAIT = entity("address", prefix="news", distribution="multicast")
DROP = entity(
    "address",
    prefix="news",
    distribution="multicast",
    stuckReceiver="drop",
    stuckReceiverTimeoutSeconds=1,
)
# a frame without a body (section 2.4.5)
HEARTBEAT = bytes((0, 0, 0, 8, 2, 0, 0, 0))
BODY = bytes(50_000)
# more than the sockets and buffers between a router and a receiver take
COUNT = 400


def explained(router: RouterProcess) -> dict[str, Any]:
    """Return the router's explanation of the multicast."""
    ended = invoke("explain", "-b", router.url(), "anonymous", "send", "news", "--json")
    told = json.loads("\n".join(ended.lines))
    assert isinstance(told, dict)
    return told


def silent(router: RouterProcess) -> RawPeer:
    """Attach a receiver with ample credit that reads nothing any more."""
    peer = RawPeer(router.port, receive_buffer_bytes=4096)
    peer.open(container_id="silent", idle_time_out=60_000)
    peer.attach_receiver("news", 100_000)
    return peer


def test_the_others_get_everything_once_it_is_dropped(
    routers: StartRouter, proton: ProtonPeers
) -> None:
    router = routers(LISTENER + DROP)
    with silent(router) as stuck:
        receivers = [proton.connect(router.url()).receiver("news", 2 * COUNT) for _ in range(3)]
        sender = proton.connect(router.url()).sender("news")
        sent = [sender.send(Message(body=BODY), wait=False) for _ in range(COUNT)]
        stuck.send(HEARTBEAT)
        proton.until(lambda: all(len(each.received) == COUNT for each in receivers), "all is there")
        proton.until(sender.all_settled, "all is settled")
        assert {each.outcome for each in sent} == {"accepted"}
        told = explained(router)["stuckReceivers"]
        assert (told["stuck"], told["dropped"]) == ([], 1)
        assert told["lastDropped"]["container"] == "silent"
        lines = [line for line in router.log_text().splitlines() if "resource-limit" in line]
        (line,) = lines
        assert "link detached" in line
        assert "it accepts no transfers: the output buffer is full" in line
        # the connection is there, and the peer is told when it reads
        stuck.send(HEARTBEAT)
        detach = stuck.hear_until(Detach)
        assert detach.error.condition == Condition.RESOURCE_LIMIT_EXCEEDED


def test_by_default_they_wait_and_explain_says_for_whom(
    routers: StartRouter, proton: ProtonPeers
) -> None:
    router = routers(LISTENER + WAIT)
    with silent(router):
        receiver = proton.connect(router.url()).receiver("news", 2 * COUNT)
        sender = proton.connect(router.url()).sender("news")
        sent = [sender.send(Message(body=BODY), wait=False) for _ in range(COUNT)]
        told: dict[str, Any] = {}

        def is_told() -> bool:
            told.update(explained(router)["stuckReceivers"])
            return any("socket" in each["text"] for each in told["stuck"])

        proton.until(is_told, "the router says who is stuck")
        (stuck,) = [each for each in told["stuck"] if each["container"] == "silent"]
        assert stuck["droppedInSeconds"] is None
        assert len(receiver.received) < COUNT
    # its connection is gone with it
    proton.until(sender.all_settled, "all is settled")
    assert len(receiver.received) == COUNT
    assert "accepted" in {each.outcome for each in sent}


@pytest.mark.parametrize("distribution", ["closest", "balanced"])
def test_elsewhere_the_others_go_on(
    routers: StartRouter, proton: ProtonPeers, distribution: str
) -> None:
    router = routers(LISTENER + entity("address", prefix="news", distribution=distribution))
    with silent(router):
        receiver = proton.connect(router.url()).receiver("news", 2 * COUNT)
        sender = proton.connect(router.url()).sender("news")
        for _ in range(COUNT):
            sender.send(Message(body=BODY), wait=False)
        # what the stuck one has is its own; a socket and the buffers before it take no more
        proton.until(lambda: len(receiver.received) > COUNT // 2, "most go to the other one")
        before = len(receiver.received)
        sender.send(Message(body=BODY), wait=False)
        proton.until(lambda: len(receiver.received) > before, "and what comes later")
    proton.until(sender.all_settled, "all is settled")
