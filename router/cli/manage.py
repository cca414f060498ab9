"""`trioute manage OPERATION`: perform any management operation, with qdmanage's command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypedDict, Unpack

import attrs
import click

from router.cli.render import JsonMap, as_json
from router.cli.router_options import RouterTarget, run_with_management, target_options
from router.client import ManagementClient, RequestRefused
from router.management.names import PREFIX, long_name

# Types with short names, as in qdmanage.
_ROUTER_TYPES: Final = ("link", "node")
_CONFIGURED_TYPES: Final = ("linkRoute", "address", "autoLink")


# Maximum number of entities in one request, which the router limits to 2 MiB.
MOST_AT_ONCE: Final = 5000


class Given(TypedDict):
    """Arguments and options of the command that become fields of a `ManageRequest` unchanged."""

    arguments: tuple[str, ...]
    kind: str | None
    name: str | None
    identity: str | None
    stdin: bool
    body: str | None
    properties: str | None


@attrs.frozen
class ManageRequest:
    """Operation to request, the entity that it applies to, and how to print the response."""

    operation: str
    arguments: tuple[str, ...] = ()
    kind: str | None = None
    name: str | None = None
    identity: str | None = None
    stdin: bool = False
    body: str | None = None
    properties: str | None = None
    indent: int | None = 2

    def attributes(self) -> list[JsonMap]:
        """Return the attributes of the entities to create or update: a map for each entity.

        Raises click.UsageError if standard input or an argument is invalid.
        """
        if not self.stdin:
            return [self.assignments()]
        if self.arguments:
            raise click.UsageError("attributes come from standard input or as arguments, not both")
        try:
            given = json.load(sys.stdin)
        except ValueError as error:
            raise click.UsageError(f"standard input is not JSON: {error}") from None
        several = given if isinstance(given, list) else [given]
        if not all(isinstance(each, dict) for each in several):
            raise click.UsageError("standard input is neither a JSON map nor a list of maps")
        return several

    def assignments(self) -> JsonMap:
        """Return the arguments `attribute=value` as a map; a lone `attribute` gets None."""
        return dict(_assigned(argument, self.kind) for argument in self.arguments)


@click.command()
@click.argument("operation")
@click.argument("arguments", nargs=-1, metavar="[ATTRIBUTE[=VALUE]]...")
@click.option("--type", "kind", help="The type of the entity, with or without its prefix.")
@click.option("--name", help="The name of the entity.")
@click.option("--identity", metavar="ID", help="The identity of the entity.")
@click.option(
    "--stdin",
    is_flag=True,
    help="Read attributes from standard input as JSON: a map, or a list of maps.",
)
@click.option(
    "--body",
    metavar="JSON",
    help="The body of the request, for an operation that is not listed above.",
)
@click.option(
    "--properties",
    metavar="JSON",
    help="Further properties of the request, for an operation that is not listed above.",
)
@click.option(
    "--indent",
    type=click.IntRange(-1, 16),
    default=2,
    show_default=True,
    help="Indent JSON by this many spaces; -1 prints it on one line.",
)
@target_options
def manage(target: RouterTarget, operation: str, indent: int, **given: Unpack[Given]) -> None:
    """Perform a management OPERATION on a router, and print the response as JSON.

    \b
    query [ATTRIBUTE]...           show the entities of a --type, or all
    read                           show an entity, by --name or --identity
    create ATTRIBUTE=VALUE...      create an entity of a --type
    update ATTRIBUTE=VALUE...      change an entity, by --name or --identity
    delete                         delete an entity, by --name or --identity
    get-types, get-attributes, get-operations, get-annotations [TYPE]
                                   show those of one TYPE, or of all types
    get-schema, get-json-schema    show the types, attributes and operations
    get-mgmt-nodes                 show the routers of the network
    get-log [limit=N]              show the latest log lines
    any other [PROPERTY=VALUE]...  send a request; see --properties and --body

    Exits with 0 on success, 1 if the router refused, and 3 if there was no connection or no
    response.
    """  # noqa: D301  (click reads \b)
    request = ManageRequest(
        operation=operation.upper(), indent=None if indent < 0 else indent, **given
    )
    # the input is checked before connecting
    if request.operation in ("CREATE", "UPDATE"):
        entities = request.attributes()
        if request.operation == "CREATE" and len(entities) > 1:
            run_with_management(
                target, lambda management: _create_all(management, request, entities)
            )
            return
        run_with_management(target, lambda management: _each(management, request, entities))
    elif request.operation in _USUAL:
        perform = _USUAL[request.operation]
        run_with_management(target, lambda management: perform(management, request))
    else:
        properties = request.assignments() | _json_map(request.properties)
        body = None if request.body is None else _json_or_text(request.body)
        run_with_management(
            target, lambda management: _other(management, request, properties, body)
        )


async def _query(management: ManagementClient, request: ManageRequest) -> None:
    table = await management.query(_type(request.kind), request.arguments)
    _print(table.entities(), request)


async def _read(management: ManagementClient, request: ManageRequest) -> None:
    _print(
        await management.read(_type(request.kind), name=request.name, identity=request.identity),
        request,
    )


async def _delete(management: ManagementClient, request: ManageRequest) -> None:
    await management.delete(_type(request.kind), name=request.name, identity=request.identity)


async def _about_types(management: ManagementClient, request: ManageRequest) -> None:
    kind = request.kind or next(iter(request.arguments), None)
    _print(await management.request(request.operation, {"entityType": _type(kind)}), request)


async def _other(
    management: ManagementClient, request: ManageRequest, properties: JsonMap, body: object
) -> None:
    about = {"type": _type(request.kind), "name": request.name, "identity": request.identity}
    _print(await management.request(request.operation, {**about, **properties}, body), request)


async def _create_all(
    management: ManagementClient, request: ManageRequest, entities: Sequence[JsonMap]
) -> None:
    """Create many entities, up to `MOST_AT_ONCE` per request.

    A refused request creates none of its entities.
    """
    made: list[object] = []
    try:
        for begin in range(0, len(entities), MOST_AT_ONCE):
            bodies = [_typed(request, each) for each in entities[begin : begin + MOST_AT_ONCE]]
            made += await management.request("CREATE", {}, bodies)
    finally:
        if made:
            _print(made, request)


def _typed(request: ManageRequest, attributes: JsonMap) -> JsonMap:
    """Return an entity's attributes, with the long name of its type."""
    name = {} if request.name is None else {"name": request.name}
    return {**attributes, **name, "type": _type(request.kind or attributes.get("type"))}


async def _each(
    management: ManagementClient, request: ManageRequest, entities: Sequence[JsonMap]
) -> None:
    """Create or update the entities one by one until one is refused; print the results."""
    done = []
    try:
        for number, attributes in enumerate(entities, 1):
            try:
                done.append(await _changed(management, request, dict(attributes)))
            except RequestRefused as refused:
                if len(entities) == 1:
                    raise
                where = f"entry {number} of {len(entities)}: {refused.description}"
                raise RequestRefused(refused.status, where) from None
    finally:
        if done:
            _print(done if len(entities) > 1 else done[0], request)


async def _changed(
    management: ManagementClient, request: ManageRequest, attributes: JsonMap
) -> JsonMap:
    """Create or update one entity, named by options or by `attributes`; return its attributes."""
    kind = _type(request.kind or attributes.get("type"))
    name = request.name or attributes.get("name")
    if "type" in attributes:
        attributes["type"] = _type(attributes["type"])
    if request.operation == "CREATE":
        return await management.create(kind, attributes, name=name)
    identity = request.identity or attributes.get("identity")
    return await management.update(kind, attributes, name=name, identity=identity)


_USUAL: Final[dict[str, Callable[[ManagementClient, ManageRequest], Awaitable[None]]]] = {
    "QUERY": _query,
    "READ": _read,
    "DELETE": _delete,
    "GET-TYPES": _about_types,
    "GET-ATTRIBUTES": _about_types,
    "GET-OPERATIONS": _about_types,
    "GET-ANNOTATIONS": _about_types,
}


def _type(kind: str | None) -> str | None:
    """Return the long name of a type, which may be given by a short name as in qdmanage."""
    if kind is None or "." in kind:
        return kind
    if kind in _ROUTER_TYPES:
        return f"{PREFIX}router.{kind}"
    if kind in _CONFIGURED_TYPES:
        return f"{PREFIX}router.config.{kind}"
    return long_name(kind)


def _assigned(argument: str, kind: str | None) -> tuple[str, object]:
    """Parse `attribute=value`; the schema of `kind` determines the type of the value."""
    name, equals, text = argument.partition("=")
    if not name:
        raise click.UsageError(f"{argument!r} is not of the form attribute=value")
    if not equals:
        return name, None
    if text in ("true", "false"):
        return name, text == "true"
    # imported only here, since the import takes longer than most commands
    from router.management.entity_types import ENTITY_TYPES

    entry = ENTITY_TYPES.get(_type(kind) or "")
    attribute = None if entry is None else entry[0].attribute(name)
    declared = "" if attribute is None else attribute.kind
    if declared in ("map", "list") or (declared in ("", "integer") and _is_number(text)):
        return name, _json_or_text(text)
    return name, text


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isascii() and text.removeprefix("-").isdigit()


def _json_or_text(text: str) -> object:
    """Parse JSON; return text that is obviously not JSON unchanged."""
    try:
        return json.loads(text)
    except ValueError as error:
        if not set('"{}[]') & set(text):
            return text
        raise click.UsageError(f"{text!r} is not JSON: {error}") from None


def _json_map(text: str | None) -> JsonMap:
    if text is None:
        return {}
    value = _json_or_text(text)
    if not isinstance(value, dict):
        raise click.UsageError("--properties must be a JSON map")
    return value


def _print(body: object, request: ManageRequest) -> None:
    """Print a response: text unchanged, anything else as JSON, and nothing for None."""
    if isinstance(body, str):
        click.echo(body)
    elif body is not None:
        click.echo(json.dumps(as_json(body), indent=request.indent, ensure_ascii=False))
