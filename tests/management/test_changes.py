"""CREATE, UPDATE and DELETE of a router that runs: done as a whole, or refused and nothing done."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
import trio
from hypothesis import given, strategies as st

from router.client import ConnectionLost, LinkLost, connect
from router.config.connectors import ConnectorSettings
from router.config.incremental_checks import IncrementalChecks
from router.config.listeners import ListenerSettings
from router.config.mistakes import Finding
from router.config.model import AddressSettings, Configuration
from router.config.router_settings import RouterSettings
from router.management.changes import CHANGE_HANDLERS
from router.management.entities.router import ROUTER
from router.management.entities.unsupported_types import UNSUPPORTED_TYPES
from router.management.entity_types import ENTITY_TYPES
from router.management.operations import answer
from router.management.requests import Answer, Request

from support.examples import examples
from support.loopback import Running, running_node

P = "org.apache.qpid.dispatch."
CONFIGURATION = Configuration(
    router=RouterSettings(id="solo"),
    listeners=(ListenerSettings(port=0, name="first"),),
    addresses=(
        AddressSettings(prefix="closest", distribution="closest"),
        AddressSettings(prefix="multicast", distribution="multicast", name="many"),
    ),
)


async def ask(running: Running, operation: str, body: Any = None, **properties: Any) -> Answer:
    """Send a request to a running router and return its answer."""
    assert running.node.view is not None
    return await answer(running.node.view, Request({"operation": operation, **properties}, body))


def url(running: Running, port: int | None = None) -> str:
    """Where the router is."""
    return f"amqp://127.0.0.1:{port or running.address[1]}"


@pytest.mark.parametrize(
    ("operation", "body"),
    [("CREATE", {"prefix": "new"}), ("UPDATE", {"distribution": "closest"}), ("DELETE", None)],
)
async def test_the_collector_does_not_look_at_each_of_very_many_for_each_change(
    monkeypatch: pytest.MonkeyPatch, operation: str, body: Any
) -> None:
    monkeypatch.setattr("router.management.changes.MANY_ENTITIES", 1)
    name = "new" if operation == "CREATE" else "many"
    async with running_node(CONFIGURATION) as running:
        gc.disable()
        try:
            done = await ask(running, operation, body, type="router.config.address", name=name)
            young = [*gc.get_objects(generation=0), *gc.get_objects(generation=1)]
        finally:
            gc.enable()
        assert done.status < 300
        addresses = running.node.configuration.addresses
        assert addresses != CONFIGURATION.addresses
        assert not any(each is addresses for each in young)


@pytest.mark.spec("M2-1", "M2-2", "M2-7")
async def test_a_listener_comes_and_goes() -> None:
    async with running_node(CONFIGURATION) as running:
        made = await ask(
            running, "CREATE", {"host": "127.0.0.1", "port": "0"}, type="listener", name="second"
        )
        assert made.status == 201
        assert made.description.startswith("Created; the change is not saved")
        assert (made.body["name"], made.body["type"]) == ("second", f"{P}listener")
        assert made.body["identity"] == "listener/127.0.0.1:0:second"
        assert made.body["idleTimeoutSeconds"] == 16
        read = await ask(running, "READ", type="listener", name="second")
        assert read.body == made.body
        assert running.node.configuration.listeners[1] == ListenerSettings(port=0, name="second")
        cause = running.node.history.current.cause
        assert cause == "CREATE listener second, by a peer that has disconnected"
        (bound,) = running.node.endpoints.listeners["second"].listening.addresses
        async with connect(url(running, bound[1])) as connection:
            gone = await ask(running, "DELETE", type="listener", name="second")
            assert (gone.status, gone.body, gone.description) == (204, {}, "No Content")
            # who is connected stays so
            sender = await connection.open_sender("q")
            await sender.aclose()
        assert running.node.configuration == CONFIGURATION
        again = await ask(running, "DELETE", type="listener", name="second")
        assert (again.status, again.description) == (404, "No entity with name=second")


async def test_an_address_is_treated_as_it_was_asked_for() -> None:
    async with running_node(CONFIGURATION) as running, connect(url(running)) as connection:
        made = await ask(
            running, "CREATE", {"prefix": "q", "distribution": "unavailable"}, type="address"
        )
        assert made.status == 400
        kind = f"{P}router.config.address"
        body = {"type": kind, "prefix": "q", "distribution": "unavailable", "pattern": None}
        made = await ask(running, "CREATE", body, type="router.config.address", name="shut")
        assert made.status == 201
        with pytest.raises(LinkLost, match="not-found"):
            await connection.open_sender("q")
        changed = await ask(running, "UPDATE", {"distribution": "multicast"}, name="shut")
        assert changed.status == 200
        assert changed.body["distribution"] == "multicast"
        receiver = await connection.open_receiver("q")
        (address,) = (each for each in running.node.table.addresses() if each.name == "q")
        assert running.node.table.treatment("q") == address.treatment == 2
        await receiver.aclose()
        assert (await ask(running, "DELETE", identity="shut")).status == 204
        assert running.node.configuration == CONFIGURATION


async def test_many_are_created_at_once_or_none() -> None:
    async with running_node(CONFIGURATION) as running:
        many: list[dict[str, Any]] = [
            {"type": "router.config.address", "prefix": f"a{number}"} for number in range(100)
        ]
        bad = [*many[:50], {**many[50], "distribution": "nosuch"}, *many[51:]]
        refused = await ask(running, "CREATE", bad)
        assert refused.status == 400
        assert refused.description.startswith('in entity 51 of 100: distribution: "nosuch" is not')
        doubled = await ask(running, "CREATE", [*many, many[7]])
        assert doubled.status == 400
        assert "covers the same addresses as address" in doubled.description
        assert running.node.configuration == CONFIGURATION
        assert (await ask(running, "CREATE", [])).status == 400
        connector = {"type": "connector", "port": 1, "name": "c"}
        made = await ask(running, "CREATE", [connector, *many])
        assert made.status == 201
        bodies = list(made.body.items)
        assert [each["name"] for each in bodies[:2]] == ["c", "router.config.address/a0"]
        assert len(running.node.configuration.addresses) == 102
        assert [each.name for each in running.node.configuration.connectors] == ["c"]
        assert (await ask(running, "CREATE", many[:1])).status == 400


@pytest.mark.spec("M2-3", "M2-5", "M2-6")
async def test_the_router_changes_what_it_can() -> None:
    async with running_node(CONFIGURATION) as running:
        changed = await ask(
            running,
            "UPDATE",
            {"defaultDistribution": "closest", "id": "solo"},
            type="router",
            name="router/solo",
        )
        assert changed.status == 200
        assert changed.body["defaultDistribution"] == "closest"
        assert running.node.configuration.router.default_distribution == "closest"
        assert running.node.table.treatment("anything") == 0
        for body, told in (
            ({"id": "other"}, "id cannot be changed: "),
            ({"uptimeSeconds": 10**6}, "uptimeSeconds cannot be changed: it is read-only"),
            ({"memoryLimitBytes": "few"}, "memoryLimitBytes: "),
        ):
            refused = await ask(running, "UPDATE", body, name="router/solo")
            assert refused.status == 400
            assert refused.description.startswith(told)
        # all of an UPDATE is refused for one mistake in it
        body = {"defaultDistribution": "balanced", "id": "other"}
        assert (await ask(running, "UPDATE", body, name="router/solo")).status == 400
        assert running.node.configuration.router.default_distribution == "closest"
        for operation in ("CREATE", "DELETE"):
            refused = await ask(running, operation, {}, type="router", name="router/solo")
            assert refused.status == 501


async def test_a_connection_is_closed_by_its_admin_status() -> None:
    async with running_node(CONFIGURATION) as running:
        async with connect(url(running)) as staying, connect(url(running)) as going:
            first, second = running.pumps
            number = str(second.number)
            same = {"adminStatus": "enabled", "identity": number, "protocol": "amqp"}
            assert (await ask(running, "UPDATE", same, identity=number)).status == 200
            deleted = await ask(running, "DELETE", type="connection", identity=number)
            assert deleted.status == 403
            for body in ({"adminStatus": "closed"}, {"container": "x"}, {"tenant": "x"}):
                refused = await ask(running, "UPDATE", body, identity=number)
                assert refused.status == 400
            sender = await going.open_sender("q")
            closed = await ask(
                running, "UPDATE", {"adminStatus": "deleted"}, type="connection", identity=number
            )
            assert closed.status == 200
            assert (closed.body["identity"], closed.body["adminStatus"]) == (number, "deleted")
            with pytest.raises(ConnectionLost, match="forced-closed by management"):
                await sender.send(b"")
            await running.until(lambda: running.pumps == [first])
            sender = await staying.open_sender("q")
            await sender.aclose()
        gone = await ask(running, "UPDATE", {"adminStatus": "deleted"}, identity=number)
        assert gone.status == 404


async def test_what_collides_is_refused() -> None:
    configuration = attrs.evolve(
        CONFIGURATION, connectors=(ConnectorSettings(port=1, name="c", role="route-container"),)
    )
    async with running_node(configuration) as running:
        port = running.address[1]
        for kind, body, told in (
            ("listener", {"name": "first", "port": 0, "host": "::1"}, "name of listener[0]"),
            ("listener", {"name": "other", "port": port}, f"127.0.0.1:{port} (other)"),
            ("connector", {"name": "c", "port": 2}, "is also the name of connector[0]"),
            ("connector", {"name": "c", "port": 3}, "Name conflicts with an existing entity: "),
            ("router.config.address", {"prefix": "closest"}, "covers the same addresses as"),
            ("router.config.address", {"prefix": "x", "name": "many"}, "also the name of address"),
            ("router.config.address", {}, "give a prefix or a pattern"),
            (
                "router.config.address",
                {"prefix": "a", "pattern": "b"},
                "cannot be combined with a prefix",
            ),
            ("router.config.redirect", {"prefix": "x"}, "toNetworkHost"),
            ("listener", {"authenticatePeer": "yes", "port": 0}, "lets no peer in"),
        ):
            refused = await ask(running, "CREATE", body, type=kind)
            assert refused.status == 400, body
            assert told in refused.description
        assert running.node.configuration == configuration


@pytest.mark.parametrize(
    ("operation", "body", "properties", "status"),
    [
        ("CREATE", {}, {}, 400),
        ("CREATE", None, {"type": "listener"}, 400),
        ("CREATE", "text", {"type": "listener"}, 400),
        ("CREATE", {1: 2}, {"type": "listener"}, 400),
        ("CREATE", [[]], {"type": "listener"}, 400),
        ("CREATE", {}, {"type": "nosuch"}, 400),
        ("CREATE", {"type": 5}, {}, 400),
        ("CREATE", {"type": "connector"}, {"type": "listener"}, 400),
        ("CREATE", {"name": "a"}, {"type": "listener", "name": "b"}, 400),
        ("CREATE", {}, {"type": "configurationEntity"}, 400),
        ("CREATE", {}, {"type": "router.link"}, 501),
        ("CREATE", {}, {"type": "connection"}, 501),
        ("CREATE", {}, {"type": "management"}, 501),
        ("UPDATE", {}, {"name": "nosuch"}, 404),
        ("UPDATE", {}, {"type": "listener"}, 400),
        ("UPDATE", [], {"name": "first"}, 400),
        ("UPDATE", {5: 5}, {"name": "first"}, 400),
        ("UPDATE", {"nosuch": 5}, {"name": "first"}, 400),
        ("UPDATE", {"name": "second"}, {"name": "first"}, 400),
        ("UPDATE", {"type": "connector"}, {"name": "first"}, 400),
        ("UPDATE", {"prefix": None}, {"name": "many"}, 400),
        ("UPDATE", {}, {"name": "self"}, 501),
        ("DELETE", None, {}, 501),
        ("DELETE", None, {"type": "listener"}, 400),
        ("DELETE", None, {"type": "connector", "name": "first"}, 400),
        ("DELETE", None, {"name": "self"}, 501),
        ("NOSUCH", None, {"name": "first", "type": "listener"}, 501),
    ],
)
async def test_bad_requests_change_nothing(
    operation: str, body: Any, properties: dict[str, Any], status: int
) -> None:
    async with running_node(CONFIGURATION) as running:
        answered = await ask(running, operation, body, **properties)
        assert answered.status == status
        assert answered.description
        assert running.node.configuration is CONFIGURATION


@pytest.mark.parametrize("entity_type", UNSUPPORTED_TYPES, ids=lambda each: str(each.name))
async def test_what_this_router_has_no_part_for_is_said_so(entity_type: Any) -> None:
    async with running_node(CONFIGURATION) as running:
        answered = await ask(running, "CREATE", {"name": "x"}, type=entity_type.name)
        assert answered.status == 501
        assert "this router does not support it yet" in answered.description


COUNTED = {each.name for each in ROUTER.attributes if each.kind == "integer" and not each.setting}


async def test_saying_what_is_there_already_changes_nothing() -> None:
    async with running_node(CONFIGURATION) as running:
        for kind, name in (("listener", "first"), ("router", "router/solo"), (None, "many")):
            properties = {"name": name} | ({} if kind is None else {"type": kind})
            read = (await ask(running, "READ", **properties)).body
            # what the router counts is another by the time it is said again
            body = {each: value for each, value in read.items() if each not in COUNTED}
            same = await ask(running, "UPDATE", body, **properties)
            assert (same.status, same.description) == (200, "OK")
            assert {each: same.body[each] for each in body} == body
        assert running.node.configuration == CONFIGURATION


NAMES = sorted(
    {each.name for of, _ in ENTITY_TYPES.values() for each in of.attributes} | {"nosuch", ""}
)
TYPES = sorted({of.name for of, _ in ENTITY_TYPES.values()} | {"nosuch", "", "entity"})
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary(max_size=5) | st.text()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SCALARS, inner, max_size=3),
    max_leaves=6,
)
BODIES = VALUES | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), VALUES, max_size=4)
REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(TYPES) | SCALARS,
        "name": st.sampled_from(["first", "many", "self", "router/solo", "nosuch"]) | SCALARS,
        "identity": st.sampled_from(["many", "listener/127.0.0.1:0:first"]) | SCALARS,
    },
)


@given(st.lists(st.tuples(st.sampled_from(sorted(CHANGE_HANDLERS)), REQUESTS, BODIES), max_size=20))
@examples(100)
def test_whatever_is_asked_is_answered_and_a_refusal_changes_nothing(asked: list[Any]) -> None:
    async def main() -> None:
        async with running_node(CONFIGURATION) as running:
            for operation, properties, body in asked:
                before = running.node.configuration
                answered = await ask(running, operation, body, **properties)
                assert answered.status in (200, 201, 204, 400, 403, 404, 501)
                if answered.status >= 400:
                    assert running.node.configuration is before
                assert len(answered.description) < 2000
            assert (await ask(running, "READ", name="self")).status == 200

    trio.run(main)


async def test_levels_of_the_log_change_while_it_runs() -> None:
    async with running_node(CONFIGURATION) as running:
        name = "log/AGENT"

        async def enabled(value: Any) -> Any:
            changed = await ask(running, "UPDATE", {"enable": value}, identity=name)
            assert changed.status == 200
            return changed.body.get("enable")

        for value, told in (
            ("debug+", "debug+"),
            ("TRACE , Error info", "trace , error info"),
            ("", "none"),
            ("default", None),
            ("warning+", "warning+"),
            (None, None),
        ):
            assert await enabled(value) == told
            levels = running.node.configuration.log.levels
            assert levels == ({} if told is None else {"AGENT": told})
        for body in (
            {"enable": "foo"},
            {"enable": 7},
            {"module": "ROUTER"},
            {"includeTimestamp": "blahblah"},
            {"outputFile": "elsewhere.log"},
        ):
            assert (await ask(running, "UPDATE", body, identity=name)).status == 400
        for operation in ("CREATE", "DELETE"):
            answered = await ask(running, operation, {}, type="log", name=name)
            assert answered.status == 501
        same = {"includeTimestamp": True, "outputFile": "stderr"}
        assert (await ask(running, "UPDATE", same, name="log/DEFAULT")).status == 200


async def test_the_frames_of_one_connection_are_logged() -> None:
    async with running_node(CONFIGURATION) as running, connect(url(running)):
        (pump,) = running.pumps
        number = str(pump.number)
        for value, told in (("yes", True), ("off", False), (1, True), (False, False)):
            body = {"enableProtocolTrace": value}
            changed = await ask(running, "UPDATE", body, type="connection", identity=number)
            assert changed.body["enableProtocolTrace"] is told
            assert (pump.tap is not None) is told
        body = {"enableProtocolTrace": "maybe"}
        assert (await ask(running, "UPDATE", body, identity=number)).status == 400
        # as in Dispatch, where any other entity is not found
        gone = await ask(running, "UPDATE", {}, type="connection", identity="G10000")
        assert gone.status == 400


async def test_single_changes_are_checked_alone_and_what_is_created_together_is_let_go() -> None:
    kind = "router.config.address"
    seen: list[int] = []

    def look(configuration: Configuration, _: Any) -> Iterator[Finding]:
        seen.append(len(configuration.addresses))
        yield from ()

    async with running_node(Configuration(listeners=(ListenerSettings(port=0),))) as running:
        running.node.rechecks = IncrementalChecks([look])
        bodies = [{"prefix": f"a{number}"} for number in range(100)]
        assert (await ask(running, "CREATE", bodies, type=kind)).status == 201
        assert bodies == []
        assert (await ask(running, "CREATE", {"prefix": "b"}, type=kind)).status == 201
        told = {"type": kind, "name": f"{kind}/a7"}
        assert (await ask(running, "UPDATE", {"distribution": "closest"}, **told)).status == 200
        index = running.node.view and running.node.view.indexes["address"]
        assert (await ask(running, "DELETE", **told)).status == 204
        assert (await ask(running, "CREATE", {"prefix": "a7"}, type=kind)).status == 201
        assert running.node.view is not None
        assert running.node.view.indexes["address"] is index
    # what goes has nothing to do with what stays
    assert seen == [100, 1, 1, 0, 1]
