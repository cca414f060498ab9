"""`trioute manage`: each operation against a router, as it is asked for and as it is answered."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from router.cli.main import main
from router.cli.manage import ManageRequest
from router.management.names import PREFIX

from support.commands import Ended, invoke
from support.routers import PLAIN, RouterProcess, StartRouter

NAMED = '[router]\nid = "solo"\n\n' + PLAIN


def asked(router: RouterProcess, *arguments: str, stdin: str | None = None) -> Ended:
    """Run `trioute manage` and return how it ended."""
    given = None if stdin is None else stdin.encode()
    return invoke("manage", "-b", router.url(), *arguments, stdin=given)


def told(router: RouterProcess, *arguments: str) -> Any:
    """Run `trioute manage`, which must print JSON, and return the data."""
    ended = asked(router, *arguments)
    assert (ended.code, ended.errors) == (0, "")
    return json.loads(ended.output)


def test_entities_are_queried(start_router: StartRouter) -> None:
    router = start_router(NAMED)
    (every,) = told(router, "query", "--type", "router")
    assert every["type"] == f"{PREFIX}router"
    assert told(router, "QUERY", "--type=router", "id", "mode") == [
        {"id": "solo", "mode": "standalone"}
    ]
    kinds = {entity["type"] for entity in told(router, "query", "type")}
    assert {f"{PREFIX}router", f"{PREFIX}listener"} <= kinds
    # what there is none of is told in no line
    assert told(router, "query", "--type", "node") == []


def test_short_names_of_types_are_those_of_qdmanage(router_process: RouterProcess) -> None:
    prefixes = {entity["prefix"] for entity in told(router_process, "query", "--type", "address")}
    assert prefixes == {"closest", "multicast", "unavailable"}
    assert told(router_process, "get-types", "link").keys() == {f"{PREFIX}router.link"}
    assert told(router_process, "get-types", f"{PREFIX}router.link").keys() == {
        f"{PREFIX}router.link"
    }


def test_one_entity_is_read(start_router: StartRouter) -> None:
    router = start_router(NAMED)
    assert told(router, "read", "--name", "router/solo")["id"] == "solo"
    assert told(router, "read", "--type", "router", "--identity", "router/solo")["id"] == "solo"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["read", "--name", "nosuch"], "404"),
        (["query", "nosuch"], "404"),
        (["query", "--type", "nosuch"], "400"),
        (["read", "--type", "listener"], "400"),
        (["fly"], "501"),
        (["delete", "--type", "listener", "--name", "nosuch"], "404"),
    ],
)
def test_the_router_says_no(router_process: RouterProcess, arguments: list[str], code: str) -> None:
    ended = asked(router_process, *arguments)
    assert ended.code == 1
    assert ended.output == ""
    assert ended.errors.startswith(f"trioute: {code}")
    assert ended.errors.count("\n") == 1


@pytest.mark.parametrize("operation", ["get-attributes", "get-operations"])
def test_what_a_type_has(router_process: RouterProcess, operation: str) -> None:
    as_option = told(router_process, operation, "--type", "router")
    assert as_option == told(router_process, operation, "router")
    assert as_option.keys() == {f"{PREFIX}router"}
    assert len(told(router_process, operation)) > 5


def test_no_type_has_annotations(router_process: RouterProcess) -> None:
    assert told(router_process, "get-annotations", "router") == {}


def test_the_schema_as_it_is_and_as_text(router_process: RouterProcess) -> None:
    schema = told(router_process, "get-schema")
    assert schema["prefix"] == "org.apache.qpid.dispatch"
    assert told(router_process, "get-json-schema") == schema
    # a property of the request decides how the router writes it
    assert "\n    " in asked(router_process, "get-json-schema", "indent=4").output


def test_the_indent(router_process: RouterProcess) -> None:
    one_line = asked(router_process, "get-types", "link", "--indent=-1").output
    assert one_line.count("\n") == 1
    assert '\n   "' in asked(router_process, "get-types", "link", "--indent", "3").output


def test_many_are_created_at_once_or_none(start_router: StartRouter) -> None:
    router = start_router(NAMED)
    query = ("query", "--type", "address", "prefix")
    before = told(router, *query)
    many = [{"type": "address", "prefix": f"tenant/{number}"} for number in range(300)]
    bad = [*many, {"type": "address", "prefix": "a b"}]
    refused = asked(router, "create", "--stdin", stdin=json.dumps(bad))
    assert refused.code == 1
    assert refused.errors.startswith("trioute: 400 in entity 301 of 301: prefix: ")
    assert told(router, *query) == before
    made = asked(router, "create", "--stdin", "--type", "address", stdin=json.dumps(many))
    assert made.code == 0
    assert [each["prefix"] for each in json.loads(made.output)] == [each["prefix"] for each in many]
    assert told(router, *query) == before + [{"prefix": each["prefix"]} for each in many]


def test_any_operation_with_properties_and_a_body(router_process: RouterProcess) -> None:
    ended = asked(
        router_process, "get-json-schema", "--properties", '{"indent": 2}', "--body", "word"
    )
    assert ended.code == 0
    assert ended.output.startswith('{\n  "')


@pytest.mark.parametrize(
    ("arguments", "stdin", "told"),
    [
        (["create", "--stdin"], "{", "standard input is not JSON"),
        (["create", "--stdin"], "5", "standard input is neither a JSON map nor a list"),
        (["create", "--stdin", "a=1"], "{}", "not both"),
        (["create", "=5"], "", "'=5' is not of the form attribute=value"),
        (["fly", "--properties", "[1]"], "", "--properties must be a JSON map"),
        (["fly", "--body", "{"], "", "'{' is not JSON"),
        (["create", "--type", "listener", "openProperties={"], "", "'{' is not JSON"),
    ],
)
def test_what_cannot_be_read_is_not_asked(arguments: list[str], stdin: str, told: str) -> None:
    # nobody listens on port 1: it would say so
    result = CliRunner().invoke(main, ["manage", "-b", "127.0.0.1:1", *arguments], input=stdin)
    assert result.exit_code == 2
    assert told in result.output


def test_values_are_of_the_kind_that_the_schema_says() -> None:
    arguments = (
        "name=5", "maxSessions=5", "http=true", 'openProperties={"a": 1}', "host", "new=7", "x=a=b",
    )  # fmt: skip
    request = ManageRequest("CREATE", arguments, kind="listener")
    assert request.assignments() == {
        "name": "5", "maxSessions": 5, "http": True, "openProperties": {"a": 1},
        "host": None, "new": 7, "x": "a=b",
    }  # fmt: skip
