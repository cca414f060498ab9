"""Link routes that a connection asks for over $management: its own, and gone with it."""

from __future__ import annotations

from typing import Any

import pytest

from router.client import ClientConnection, connect
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.vhosts import PolicySettings, VhostGroupSettings, VhostSettings
from router.management import connection_link_routes

from support.loopback import Running, running_node
from support.management import ANSWERS, NODE, asked, request, status

KIND = "org.apache.qpid.dispatch.router.connection.linkRoute"
CONFIGURATION = Configuration(
    listeners=(
        ListenerSettings(port=0, name="change", management="change"),
        ListenerSettings(port=0, name="read", management="read"),
    )
)


def url(running: Running, listener: int = 0) -> str:
    """Where one of its listeners can be reached."""
    return f"amqp://127.0.0.1:{running.addresses[listener][1]}"


async def ask(
    connection: ClientConnection, operation: str, body: Any = None, **properties: Any
) -> tuple[int, Any]:
    """Send a request and return the status and the body of the answer."""
    sender = await connection.open_sender(NODE)
    message = request(body, operation=operation, **properties)
    answer = await asked(connection, sender, message)
    await sender.aclose()
    return status(answer), answer.body[0].value  # type: ignore[union-attr]


async def create(connection: ClientConnection, name: str, **body: Any) -> tuple[int, Any]:
    """Ask for one."""
    return await ask(connection, "CREATE", body, type=KIND, name=name)


async def names(connection: ClientConnection) -> list[str]:
    """Return the names of the link routes that a connection sees."""
    found, body = await ask(connection, "QUERY", {"attributeNames": ["name"]}, entityType=KIND)
    assert found == 200
    return [name for (name,) in body["results"]]


async def test_a_connection_has_link_routes_of_its_own() -> None:
    async with running_node(CONFIGURATION) as running, connect(url(running)) as connection:
        routes = running.node.hub.forwarder.link_routes
        for number in range(3):
            code, body = await create(
                connection, f"lr-{number}", pattern=f"*/hi/{number}", direction="in"
            )
            assert code == 201
            assert body["containerId"] == running.pumps[0].connection.remote_open.container_id
        assert await names(connection) == ["lr-0", "lr-1", "lr-2"]
        code, body = await ask(connection, "READ", type=KIND, name="lr-1")
        assert (code, body["pattern"], body["direction"]) == (200, "*/hi/1", "in")
        assert await ask(connection, "READ", type=KIND, identity=body["identity"]) == (200, body)
        route = routes.find("x/hi/1", is_sender=True)
        assert route is not None
        assert route.containers == 1
        async with connect(url(running)) as other:
            assert await names(other) == []
            assert (await ask(other, "DELETE", type=KIND, name="lr-1"))[0] == 404
            assert (await create(other, "lr-1", pattern="*/hi/1", direction="in"))[0] == 201
            assert len(routes) == 4
        await running.until(lambda: len(routes) == 3)
        assert (await ask(connection, "DELETE", type=KIND, name="lr-1"))[0] == 204
        assert (await ask(connection, "DELETE", type=KIND, name="lr-1"))[0] == 404
        assert await names(connection) == ["lr-0", "lr-2"]
        assert routes.find("x/hi/1", is_sender=True) is None
        connection_over = running.pumps[0]
    await running.until(lambda: connection_over not in running.pumps)
    assert len(routes) == 0


@pytest.mark.parametrize(
    "body",
    [
        {"pattern": "bad", "direction": "bad"},
        {"direction": "in"},
        {},
        {"pattern": "", "direction": "in"},
        {"pattern": "///", "direction": "in"},
        {"pattern": "a"},
        {"pattern": "a", "direction": "in", "containerId": "somebody"},
        {"pattern": "a", "direction": "in", "prefix": "a"},
    ],
)
async def test_what_is_none_is_refused(body: dict[str, Any]) -> None:
    async with running_node(CONFIGURATION) as running, connect(url(running)) as connection:
        assert (await create(connection, "none", **body))[0] == 400
        assert len(running.node.hub.forwarder.link_routes) == 0


async def test_a_name_is_had_once() -> None:
    async with running_node(CONFIGURATION) as running, connect(url(running)) as connection:
        body = {"pattern": "a", "direction": "in", "type": KIND}
        assert (await ask(connection, "CREATE", body))[0] == 201
        assert (await ask(connection, "CREATE", body))[0] == 400
        assert await names(connection) == ["in/a"]
        assert (await ask(connection, "CREATE", {**body, "name": 5}))[0] == 400
        assert (await ask(connection, "CREATE", [body]))[0] == 501
        assert (await ask(connection, "UPDATE", {"pattern": "b"}, type=KIND, name="in/a"))[0] != 200


async def test_there_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_link_routes, "MAX_LINK_ROUTES", 2)
    async with running_node(CONFIGURATION) as running, connect(url(running)) as connection:
        codes = [(await create(connection, n, pattern=n, direction="in"))[0] for n in "abc"]
        assert codes == [201, 201, 400]


async def test_who_may_only_read_has_none() -> None:
    async with running_node(CONFIGURATION) as running, connect(url(running, 1)) as connection:
        assert (await create(connection, "a", pattern="a", direction="in"))[0] == 403
        assert await names(connection) == []


@pytest.mark.parametrize("allowed", [True, False], ids=["allowed", "refused"])
async def test_a_policy_allows_and_refuses_them(allowed: bool) -> None:
    group = VhostGroupSettings(
        remote_hosts=("*",),
        targets=(NODE,),
        sources=(ANSWERS,),
        allow_dynamic_link_routes=allowed,
    )
    vhost = VhostSettings(hostname="$default", allow_unknown_user=True, groups={"$default": group})
    configuration = Configuration(
        listeners=(ListenerSettings(port=0, management="change"),),
        policy=PolicySettings(enable_vhost_policy=True),
        vhosts=(vhost,),
    )
    async with running_node(configuration) as running, connect(url(running)) as connection:
        code, _ = await create(connection, "mine", pattern="a", direction="in")
        routes = running.node.hub.forwarder.link_routes
        assert (code, len(routes)) == ((201, 1) if allowed else (403, 0))
        assert await names(connection) == (["mine"] if allowed else [])
