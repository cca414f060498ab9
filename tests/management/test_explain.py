"""EXPLAIN: each reason why nothing flows, brought about by clients and then asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from router.amqp.message import Data, Header, Message
from router.amqp.performatives import Flow
from router.client import (
    ClientConnection,
    ManagementClient,
    RequestRefused,
    connect,
    open_management,
)
from router.config.listeners import ListenerSettings
from router.config.model import AddressSettings, Configuration
from router.config.redirects import RedirectSettings
from router.config.router_settings import RouterSettings
from router.core.diagnosis.blocking import MEANINGS, Reason
from router.core.model.address import Address
from router.management.explain import MAX_LINKS

from support.loopback import Peer, Running, dialled, running_node

ELSEWHERE = RedirectSettings(prefix="moved", to_network_host="10.0.0.2", direction="in")
CONFIGURED = {
    "router": RouterSettings(id="solo", memory_limit_bytes=2**20),
    "listeners": (ListenerSettings(port=0),),
    "addresses": (
        AddressSettings(prefix="near", distribution="closest"),
        AddressSettings(prefix="all", distribution="multicast", dead_letter_address="dead"),
        AddressSettings(pattern="no/*", distribution="unavailable"),
    ),
    "redirects": (
        ELSEWHERE,
        RedirectSettings(hostname="old.example", to_network_host="10.0.0.3"),
    ),
}


class Asking:
    """A router, a client of it, and its management."""

    def __init__(
        self, running: Running, client: ClientConnection, management: ManagementClient
    ) -> None:
        self.running = running
        self.client = client
        self._management = management

    async def explain(self, address: str, direction: str = "send", **more: Any) -> dict[str, Any]:
        """Ask the router to explain an address, and check that `flows` agrees with the reasons."""
        asked = {"address": address, "direction": direction, **more}
        told = await self._management.request("EXPLAIN", asked)
        assert isinstance(told, dict)
        assert told["flows"] == (told["allowed"] and not told["reasons"])
        return told

    async def reasons(self, address: str, direction: str = "send", **more: Any) -> list[str]:
        """Why nothing flows, in the words for programs; those for people have to be theirs."""
        found = (await self.explain(address, direction, **more))["reasons"]
        for each in found:
            if each["reason"] in set(Reason):
                assert each["text"] == MEANINGS[Reason(each["reason"])]
        return [each["reason"] for each in found]


@asynccontextmanager
async def asking(**fields: Any) -> AsyncIterator[Asking]:
    """Run a router with an open management client."""
    async with (
        running_node(Configuration(**{**CONFIGURED, **fields})) as running,
        connect(f"127.0.0.1:{running.address[1]}") as client,
    ):
        yield Asking(running, client, await open_management(client))


@asynccontextmanager
async def receiving(
    asking: Asking, address: str = "q", *, receive_buffer_bytes: int = 0
) -> AsyncIterator[Peer]:
    """Attach a receiver that does only what the test tells it to do."""
    where = asking.running.address
    async with dialled(where, receive_buffer_bytes=receive_buffer_bytes) as peer:
        await peer.begin()
        await peer.attach_receiver(address)
        yield peer


def in_use(asking: Asking, name: str) -> Address:
    """Return an address that is in use."""
    address = asking.running.node.table.in_use(name)
    assert address is not None
    return address


async def test_nobody_receives() -> None:
    async with asking() as router:
        assert await router.reasons("q") == ["no_consumer"]
        sender = await router.client.open_sender("q")
        answer = await router.explain("q")
        assert [each["reason"] for each in answer["reasons"]] == ["no_consumer"]
        assert (answer["destinationCount"], answer["senderCount"]) == (0, 1)
        (told,) = answer["senders"]
        assert (told["reason"], told["credit"], told["linkName"]) == (
            "no_consumer", 0, sender.link.name,
        )  # fmt: skip


async def test_a_message_would_flow() -> None:
    async with asking() as router:
        receiver = await router.client.open_receiver("near/q", credit=7)
        answer = await router.explain("near/q")
        assert answer["flows"]
        assert answer["policy"] == {"allowed": True, "text": "no policy is configured: allowed"}
        assert answer["rule"]["pattern"] == "near"
        assert (answer["distribution"], answer["route"], answer["cost"]) == ("closest", ["solo"], 0)
        (to,) = answer["destinations"]
        assert (to["credit"], to["eligible"], to["chosen"]) == (7, True, True)
        assert (to["linkName"], to["container"]) == (
            receiver.link.name, router.client.container_id,
        )  # fmt: skip
        sender = await router.client.open_sender("near/q")
        assert answer["counters"]["ingress"] == 0
        sender.send_nowait(Message(body=(Data(b"x"),)))
        await receiver.wait_for_message()
        (to,) = (await router.explain("near/q"))["destinations"]
        assert (to["credit"], to["unsettled"]) == (6, 1)


async def test_no_receiver_has_given_credit() -> None:
    async with asking() as router, receiving(router):
        answer = await router.explain("q")
        assert [each["reason"] for each in answer["reasons"]] == ["no_credit"]
        (to,) = answer["destinations"]
        assert (to["eligible"], to["chosen"], to["reason"]) == (False, False, "no_credit")


async def test_the_receiver_has_drained() -> None:
    async with asking() as router, receiving(router) as peer:
        await peer.grant(3, handle=1, drain=True)
        await peer.hear_until(Flow)
        assert await router.reasons("q") == ["drained"]


async def test_the_receiver_s_window_is_closed() -> None:
    async with asking() as router, receiving(router) as peer:
        await peer.grant(3, handle=1)
        # the answer to an echo comes after all that was said before it was heard
        shut: dict[str, Any] = {"next_incoming_id": 0, "incoming_window": 0}
        await peer.say(Flow(**shut, next_outgoing_id=0, outgoing_window=1, echo=True))
        await peer.hear_until(Flow)
        assert await router.reasons("q") == ["window_closed"]
        (to,) = (await router.explain("q"))["destinations"]
        assert (to["credit"], to["window"]) == (3, 0)


async def test_another_message_is_under_way() -> None:
    async with asking() as router, dialled(router.running.address) as peer:
        await router.client.open_receiver("q", credit=5)
        await peer.begin()
        await peer.attach_sender("q")
        await peer.transfer(0, b"\x00\x53\x75\xa0\x01x", more=True)
        await router.running.until(lambda: in_use(router, "q").counters.egress)
        assert await router.reasons("q") == ["in_message"]


async def test_the_socket_and_then_the_memory_are_full() -> None:
    async with asking() as router, receiving(router, receive_buffer_bytes=4096) as peer:
        await peer.grant(1000, handle=1)
        sender = await router.client.open_sender("q")
        turn = router.running.node.hub.turn
        async with trio.open_nursery() as nursery:

            async def send() -> None:
                while True:
                    await sender.wait_for_room()
                    sender.send_nowait(Message(body=(Data(bytes(100_000)),)))

            nursery.start_soon(send)
            await router.running.until(lambda: turn.is_pressed)
            nursery.cancel_scope.cancel()
        async with connect(f"127.0.0.1:{router.running.address[1]}") as other:
            asked = Asking(router.running, other, await open_management(other))
            reasons = await asked.reasons("q")
        assert reasons[0] == "congested"
        assert "memory_full" in reasons


async def test_what_waits_is_too_large() -> None:
    async with asking() as router, receiving(router):
        await router.client.open_receiver("q", credit=5, max_message_size=50)
        sender = await router.client.open_sender("q")
        await sender.wait_for_room()
        sender.send_nowait(Message(body=(Data(bytes(100)),)))
        await router.running.until(lambda: in_use(router, "q").waiting)
        answer = await router.explain("q")
        assert answer["reasons"][0]["reason"] == "too_large"
        assert answer["waiting"] == 1
        assert not any(to["chosen"] for to in answer["destinations"])


async def test_a_message_that_expired_is_counted() -> None:
    async with asking() as router, receiving(router):
        await router.client.open_receiver("q", credit=5, max_message_size=50)
        sender = await router.client.open_sender("q")
        await sender.send(Message(header=Header(ttl=1), body=(Data(bytes(100)),)))
        assert (await router.explain("q"))["counters"]["expired"] == 1


@pytest.mark.parametrize(
    ("address", "direction", "reason", "text"),
    [
        ("no/way", "send", "unavailable", "its distribution is unavailable"),
        ("$cbs", "receive", "unavailable", "are reserved for services"),
        ("moved/x", "send", "link_redirected", "amqp://10.0.0.2:5672"),
    ],
)
async def test_links_that_are_refused(address: str, direction: str, reason: str, text: str) -> None:
    async with asking() as router:
        answer = await router.explain(address, direction)
        assert not answer["allowed"]
        (why,) = answer["reasons"]
        assert why["reason"] == reason
        assert text in why["text"]


async def test_connections_to_a_host_that_is_elsewhere() -> None:
    async with asking() as router:
        answer = await router.explain("q", vhost="OLD.example")
        (why,) = answer["reasons"]
        assert why["reason"] == "connection_redirected"
        assert "10.0.0.3" in why["text"]


async def test_nobody_sends() -> None:
    async with asking() as router:
        assert await router.reasons("moved/x", "receive") == ["no_sender"]
        await router.client.open_receiver("q")
        assert await router.reasons("q", "receive") == ["no_sender"]
        await router.client.open_sender("q")
        answer = await router.explain("q", "receive")
        assert answer["flows"]
        assert [each["reason"] for each in answer["senders"]] == [None]
        await router.client.open_sender("dry")
        assert await router.reasons("dry", "receive") == ["no_consumer"]


async def test_all_receivers_of_a_multicast_are_chosen() -> None:
    async with asking() as router, receiving(router, "all/q"):
        await router.client.open_receiver("all/q")
        await router.client.open_receiver("all/q")
        answer = await router.explain("all/q")
        assert [each["reason"] for each in answer["reasons"]] == ["no_credit"]
        assert sorted(to["chosen"] for to in answer["destinations"]) == [False, True, True]
        assert answer["rule"]["deadLetterAddress"] == "dead"


async def test_asking_changes_nothing() -> None:
    async with asking() as router:
        table = router.running.node.table
        await router.client.open_receiver("near/q")
        await router.client.open_receiver("near/q")
        before = {address.name for address in table.addresses()}
        first = await router.explain("near/q")
        # whose turn it is does not go on
        again = await router.explain("near/q")
        for answer in (first, again):
            assert [to["chosen"] for to in answer["destinations"]] == [True, False]
        for address in ("nobody/here", "moved/x", "no/way", "$cbs"):
            for direction in ("send", "receive"):
                await router.explain(address, direction, vhost="old.example")
                await router.explain(address, direction)
        assert {address.name for address in table.addresses()} == before
        assert not any(table.redirects.issued.values())


async def test_whom_no_listener_lets_in() -> None:
    async with asking() as router:
        assert await router.reasons("q", user="ann") == ["not_admitted"]


async def test_ports_for_routers_let_no_client_in() -> None:
    interior = RouterSettings(id="solo", mode="interior")
    mesh = ListenerSettings(port=0, name="mesh", role="inter-router")
    edges = ListenerSettings(port=0, name="edges", role="edge")
    async with asking(router=interior, listeners=(ListenerSettings(port=0), mesh, edges)) as router:
        told = await router.explain("q")
        assert [each["admits"] for each in told["listeners"]] == [True, False, False]
        assert told["listeners"][1]["text"] == "it is for other routers only"


async def test_the_names_of_the_router_s_own_links_stay_secret() -> None:
    async with asking() as router:
        (own,) = (await router.explain("$management"))["destinations"]
        assert own["connection"] == "0"
        assert (own["container"], own["linkName"], own["host"]) == (None, None, None)


async def test_no_more_links_than_fit_an_answer() -> None:
    async with asking() as router:
        for _ in range(MAX_LINKS + 5):
            await router.client.open_receiver("q", credit=1)
        answer = await router.explain("q")
        assert len(answer["destinations"]) == MAX_LINKS
        assert answer["destinationCount"] == MAX_LINKS + 5


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"direction": "send"}, "address must be text of 1 to"),
        ({"direction": "send", "address": ""}, "address must be text of 1 to"),
        ({"direction": "send", "address": "/"}, "address must be text of 1 to"),
        ({"direction": "send", "address": "x" * 3000}, "address must be text of 1 to"),
        ({"direction": "fly", "address": "q"}, "direction must be send or receive"),
        ({"direction": "send", "address": 5}, "address must be a string"),
    ],
)
async def test_wrong_questions(properties: dict[str, Any], why: str) -> None:
    async with asking() as router:
        with pytest.raises(RequestRefused, match=why) as refused:
            await router._management.request("EXPLAIN", properties)
        assert refused.value.status == 400


@pytest.mark.parametrize(
    ("listener", "user", "admits", "text"),
    [
        ({}, None, True, "may stay anonymous"),
        ({}, "ann", False, "only ANONYMOUS is offered"),
        ({"sasl_mechanisms": ("PLAIN",)}, "ann", True, "must authenticate with PLAIN"),
        ({"sasl_mechanisms": ("SCRAM-SHA-256",)}, "ann", True, "authenticate with SCRAM-SHA-256"),
        (
            {"sasl_mechanisms": ("PLAIN",), "authenticate_peer": True},
            None,
            False,
            "peers must authenticate",
        ),
    ],
)
async def test_who_a_listener_lets_in(
    listener: dict[str, Any], user: str | None, admits: bool, text: str, tmp_path: Path
) -> None:
    users = tmp_path / "users"
    users.touch()
    if listener:
        listener = {**listener, "users_file": users}
    asked = ListenerSettings(port=0, name="asked", **listener)
    async with asking(listeners=(ListenerSettings(port=0), asked)) as router:
        answer = (await router.explain("q", user=user))["listeners"][1]
        assert answer["admits"] is admits
        assert text in answer["text"]
        assert answer["management"] == "trusted"
