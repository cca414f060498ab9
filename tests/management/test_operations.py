"""Management operations, from request to response, without a socket."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from router.amqp.encode import encode_value
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.router_settings import RouterSettings
from router.management.operations import answer
from router.management.requests import Answer, Request
from router.management.views import RouterView
from router.node import Node

P = "org.apache.qpid.dispatch."
LISTENERS = tuple(ListenerSettings(port=6000 + n, name=f"l{n}") for n in range(3))


def ask(body: Any = None, **properties: Any) -> Answer:
    """Return the answer of a router with three listeners and no connections."""
    node = Node(Configuration(router=RouterSettings(id="solo"), listeners=LISTENERS))
    router = RouterView("solo", "host", node.configuration, node.hub, 0.0)
    return trio.run(answer, router, Request(properties, body))


def query(names: list[str] | None = None, **properties: Any) -> Any:
    """Send a valid query and return the body of the answer."""
    body = {} if names is None else {"attributeNames": names}
    answered = ask(body, operation="QUERY", type="org.amqp.management", name="self", **properties)
    assert answered.status == 200
    rows = [row for row in answered.body.rows if row is not None]
    return {"attributeNames": answered.body.names, "results": rows}


def test_a_query_for_a_type_tells_all_of_it() -> None:
    body = query(entityType=f"{P}listener")
    assert {"name", "identity", "type", "host", "port"} <= set(body["attributeNames"])
    rows = [dict(zip(body["attributeNames"], row, strict=True)) for row in body["results"]]
    assert [row["name"] for row in rows] == ["l0", "l1", "l2"]
    assert [row["identity"] for row in rows] == [f"listener/127.0.0.1:600{n}:l{n}" for n in "012"]
    assert {row["type"] for row in rows} == {f"{P}listener"}


@pytest.mark.spec("M3-3")
def test_a_query_for_attributes_keeps_their_order() -> None:
    body = query(["port", "name"], entityType="listener")
    assert body == {
        "attributeNames": ["port", "name"],
        "results": [["6000", "l0"], ["6001", "l1"], ["6002", "l2"]],
    }


@pytest.mark.spec("M3-4")
@pytest.mark.parametrize(
    ("page", "found"),
    [
        ({}, [0, 1, 2]),
        ({"count": 2}, [0, 1]),
        ({"offset": 2, "count": 2}, [2]),
        ({"offset": "1", "count": "1"}, [1]),
        ({"offset": 3}, []),
        ({"offset": 1, "count": 0}, [1, 2]),
        ({"offset": 2**63 - 1, "count": 2**63 - 1}, []),
    ],
)
def test_results_come_in_pages(page: dict[str, int | str], found: list[int]) -> None:
    assert query(["name"], entityType="listener", **page)["results"] == [[f"l{n}"] for n in found]


def test_a_query_may_name_its_type_where_that_of_the_node_would_stand() -> None:
    answered = ask({}, operation="QUERY", type=f"{P}listener")
    rows = [row for row in answered.body.rows if row is not None]
    assert rows == query(entityType="listener")["results"]
    assert ask(operation="QUERY", type="nosuch").status == 400


def test_without_a_type_everything_is_told() -> None:
    results = query(["type", "identity", "port"])["results"]
    assert [f"{P}router", "router/solo", None] in results
    assert [f"{P}management", "self", None] in results
    assert [f"{P}listener", "listener/127.0.0.1:6001:l1", "6001"] in results


@pytest.mark.spec("M3-2")
def test_a_base_means_all_that_extend_it() -> None:
    kinds = {row[0] for row in query(["type"], entityType="configurationEntity")["results"]}
    assert kinds == {f"{P}router", f"{P}listener", f"{P}log", f"{P}policy"}


def test_what_dispatch_knows_and_this_router_does_not_is_left_out() -> None:
    body = query(["name", "saslPlugin", "port"], entityType="listener")
    assert body["attributeNames"] == ["name", "port"]


@pytest.mark.spec("M1-1", "M1-4", "M1-5", "M3-9")
@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({}, 400),
        ({"operation": ""}, 400),
        ({"operation": 7}, 400),
        ({"operation": "nosuch", "type": "org.amqp.management"}, 501),
        ({"operation": "GET-TYPES", "type": "listener", "name": "l0"}, 501),
        ({"operation": "REGISTER", "type": "org.amqp.management", "address": "a"}, 501),
        ({"operation": "DEREGISTER", "type": "org.amqp.management", "address": "a"}, 501),
        ({"operation": "QUERY", "entityType": "nosuch"}, 400),
        ({"operation": "QUERY", "entityType": 1}, 400),
        ({"operation": "QUERY", "offset": -1}, 400),
        ({"operation": "QUERY", "offset": "one"}, 400),
        ({"operation": "QUERY", "count": "-1"}, 400),
        ({"operation": "QUERY", "count": True}, 400),
        ({"operation": "QUERY", "count": 1.5}, 400),
        ({"operation": "GET-TYPES", "entityType": "nosuch"}, 400),
        ({"operation": "READ", "type": "listener"}, 400),
        ({"operation": "READ", "type": "nosuch", "name": "l0"}, 400),
        ({"operation": "READ", "type": "listener", "name": 5}, 400),
        ({"operation": "READ", "type": "listener", "name": "nosuch"}, 404),
        ({"operation": "READ", "type": "connector", "name": "l0"}, 400),
        ({"operation": "READ", "identity": "nosuch"}, 404),
        ({"operation": "CREATE", "type": "listener", "name": "new"}, 404),
        ({"operation": "update", "type": "listener", "name": "l0"}, 404),
        ({"operation": "DELETE", "type": "listener", "name": "l0"}, 404),
    ],
)
def test_bad_requests_are_told_why(asked: dict[str, Any], status: int) -> None:
    answered = ask({}, **asked)
    assert answered.status == status
    assert answered.description
    assert answered.body == {}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ([], 400),
        ("x", 400),
        ({"attributeNames": "name"}, 400),
        ({"attributeNames": [1]}, 400),
        ({"attributeNames": {"name": 1}}, 400),
        ({"attributeNames": ["nosuch"]}, 404),
        ({"attributeNames": ["nosuch" * 10_000]}, 404),
        ({"attributeNames": None}, 200),
        (None, 200),
        ({b"other": 1}, 200),
    ],
)
def test_the_body_of_a_query_names_attributes(body: Any, status: int) -> None:
    answered = ask(body, operation="QUERY", entityType="listener")
    assert answered.status == status
    assert len(answered.description) < 500


@pytest.mark.spec("M1-1", "M2-4")
def test_one_entity_is_read_by_name_or_identity() -> None:
    by_name = ask(operation="READ", type=f"{P}listener", name="l1")
    by_identity = ask(operation="read", type="listener", identity="listener/127.0.0.1:6001:l1")
    assert by_name == by_identity == ask(operation="READ", name="l1")
    assert by_name.status == 200
    assert by_name.body["port"] == "6001"
    # of both the identity counts, and what has no value is left out
    both = ask(operation="READ", identity="listener/127.0.0.1:6001:l1", name="l2")
    assert both == by_name
    assert "usersFile" not in by_name.body
    assert ask(operation="READ", type="entity", name="l1") == by_name


def test_tools_may_ask_for_what_there_is_none_of() -> None:
    body = query(["identity", "typeSize"], entityType="allocator")
    assert body == {"attributeNames": ["identity"], "results": []}


@pytest.mark.parametrize("kind", ["router.node", "router.config.autoLink", "vhost", "allocator"])
def test_there_may_be_none_of_a_type(kind: str) -> None:
    assert query(entityType=kind)["results"] == []


def test_the_node_can_be_read() -> None:
    assert ask(operation="READ", type="org.amqp.management", name="self").body == {
        "name": "self",
        "identity": "self",
        "type": f"{P}management",
    }


@pytest.mark.spec("M3-1", "M3-6", "M3-7", "M3-8")
def test_the_node_tells_what_there_is() -> None:
    types = ask(operation="GET-TYPES").body
    assert types[f"{P}router.link"] == [f"{P}operationalEntity", f"{P}entity"]
    assert list(ask(operation="GET-TYPES", entityType="listener").body) == [f"{P}listener"]
    attributes = ask(operation="GET-ATTRIBUTES", entityType="router.address").body
    # those of its bases, too
    assert {"subscriberCount", "name", "identity"} <= set(attributes[f"{P}router.address"])
    operations = ask(operation="GET-OPERATIONS").body
    assert operations[f"{P}listener"] == ["CREATE", "DELETE", "READ", "UPDATE"]
    assert "QUERY" in operations[f"{P}management"]
    assert ask(operation="GET-ANNOTATIONS", entityType="router").body == {}
    assert ask(operation="GET-MGMT-NODES").body == []


def test_the_schema_is_that_of_the_entity_types() -> None:
    schema = ask(operation="GET-SCHEMA").body
    assert schema["prefix"] == "org.apache.qpid.dispatch"
    port = schema["entityTypes"]["listener"]["attributes"]["port"]
    assert port["type"] == "string"
    assert port["description"]
    assert encode_value(schema)
    for indent in (None, 0, 4):
        told = ask(operation="GET-JSON-SCHEMA", indent=indent)
        assert json.loads(told.body) == schema
    assert ask(operation="GET-JSON-SCHEMA", indent=10**6).status == 400
