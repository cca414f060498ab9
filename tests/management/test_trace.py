"""TRACE: what may be asked for, and who is traced."""

from __future__ import annotations

from typing import Any

import pytest

from router.client.management import RequestRefused
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.management.running_traces import MAX_TRACES

from support.loopback import dialled, running_node
from support.tracing import asking, lines


@pytest.mark.parametrize(
    ("asked", "status", "why"),
    [
        ([], 400, "must be a map"),
        ({"all": True}, 400, "to must be text"),
        ({"all": True, "to": "nowhere"}, 400, "the address in `to` has no receiver"),
        ({"to": "TO"}, 400, "needs exactly one of"),
        ({"to": "TO", "all": True, "user": "x"}, 400, "needs exactly one of"),
        ({"to": "TO", "all": False}, 400, "all must be true if it is given"),
        ({"to": "TO", "user": 3.5}, 400, "user must be text"),
        ({"to": "TO", "user": ""}, 400, "user must be text"),
        ({"to": "TO", "every": True}, 400, "has an unknown key: 'every'"),
        ({"to": "TO", "connection": 99}, 404, "no connection 99"),
        ({"to": "TO", "connection": 1}, 400, "carries a trace itself"),
    ],
)
async def test_what_is_asked_wrongly_is_refused(asked: Any, status: int, why: str) -> None:
    async with running_node() as running, asking(running) as (management, receiver):
        if isinstance(asked, dict) and asked.get("to") == "TO":
            asked = {**asked, "to": receiver.address}
        with pytest.raises(RequestRefused, match=why) as refused:
            await management.request("TRACE", None, asked)
        assert refused.value.status == status
        (pump,) = running.pumps
        assert pump.tap is None


async def test_those_that_fit_are_traced_and_the_asker_never_is() -> None:
    async with (
        running_node() as running,
        dialled(running.address) as ada,
        dialled(running.address) as bob,
        asking(running) as (management, receiver),
    ):
        await ada.begin(container_id="ada")
        await bob.begin(container_id="bob")
        begun = await management.request(
            "TRACE", None, {"to": receiver.address, "container": "ada"}
        )
        number = (await running.pump_of(ada)).number
        assert begun["connections"] == [str(number)]
        await bob.attach_receiver("q")
        await ada.attach_receiver("q")
        first, *others = await lines(receiver, 3)
        assert (first["kind"], first["container"]) == ("connection", "ada")
        assert [line["name"] for line in others] == ["attach", "attach"]
        assert {line["connection"] for line in others} == {str(number)}
        # who comes later is traced once it is known who that is
        async with dialled(running.address) as late:
            await late.begin(container_id="ada")
            await late.attach_receiver("q")
            number = (await running.pump_of(late)).number
            names: list[str] = []
            while "attach" not in names:
                told = await lines(receiver, 1)
                names += [
                    each.get("name", "") for each in told if each["connection"] == str(number)
                ]


async def test_by_peer_and_user() -> None:
    async with (
        running_node() as running,
        dialled(running.address) as peer,
        asking(running) as (management, receiver),
    ):
        await peer.begin()
        name = (await running.pump_of(peer)).connection.name
        for asked, count in (
            ({"peer": name}, 1),
            ({"peer": "127.0.0.1"}, 1),
            ({"peer": "10.0.0.1"}, 0),
            ({"user": "anonymous"}, 0),
        ):
            begun = await management.request("TRACE", None, {**asked, "to": receiver.address})
            assert len(begun["connections"]) == count


async def test_there_may_be_so_many_and_they_end_with_their_receiver() -> None:
    async with running_node() as running, asking(running) as (management, receiver):
        to = receiver.address
        for _ in range(MAX_TRACES):
            await management.request("TRACE", None, {"to": to, "all": True})
        with pytest.raises(RequestRefused, match="traces are running, which is the maximum"):
            await management.request("TRACE", None, {"to": to, "all": True})
        view = running.node.view
        assert view is not None
        await receiver.aclose()
        await running.until(lambda: not view.running_traces.by_number)
        assert running.node.hub.tracer.is_idle()
        again = await management.open_receiver(credit=1)
        await management.request("TRACE", None, {"to": again.address, "all": True})


async def test_who_may_only_read_may_not_trace() -> None:
    listener = ListenerSettings(port=0, management="read")
    async with (
        running_node(Configuration(listeners=(listener,))) as running,
        asking(running) as (management, receiver),
    ):
        with pytest.raises(RequestRefused, match="403"):
            await management.request("TRACE", None, {"to": receiver.address, "all": True})


async def test_a_connection_is_told_of_at_once_and_when_it_is_gone() -> None:
    async with running_node() as running, asking(running) as (management, receiver):
        async with dialled(running.address) as peer:
            await peer.begin(container_id="ada")
            number = (await running.pump_of(peer)).number
            asked = {"to": receiver.address, "connection": number}
            await management.request("TRACE", None, asked)
            (first,) = await lines(receiver, 1)
        assert (first["kind"], first["container"]) == ("connection", "ada")
        last: dict[str, Any] = {}
        while "gone" not in last:
            last = (await lines(receiver, 1))[-1]
        assert (last["connection"], last["gone"]) == (str(number), True)


async def test_the_router_itself_is_sent_no_trace() -> None:
    async with running_node() as running, asking(running) as (management, _):
        with pytest.raises(RequestRefused, match="the address in `to` has no receiver"):
            await management.request("TRACE", None, {"to": "$management", "all": True})
