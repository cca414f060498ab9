"""Operations of `$management`: each returns the answer to a decoded request.

The operations, their arguments and the status codes are Dispatch's (AMQP management, working draft
9). Invalid requests are answered with status 400, 404 or 501 and a description.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final

from router.management import configuration_operations
from router.management.changes import CHANGE_HANDLERS
from router.management.entities.node import other_nodes
from router.management.entity_types import NODE_OPERATIONS, types_of
from router.management.explain import explain
from router.management.find_entity import NODE_TYPES, find, known_type
from router.management.get_log import get_log
from router.management.names import PREFIX, long_name
from router.management.requests import (
    BAD_REQUEST,
    NOT_FOUND,
    NOT_IMPLEMENTED,
    Answer,
    AnswerMap,
    QueryRows,
    Refused,
    Request,
)
from router.management.schema import AnyAttribute, AnyEntityType
from router.management.trace import trace
from router.management.views import RouterView

# Maximum indentation of the schema as JSON.
WIDEST_INDENT: Final = 16


async def answer(router: RouterView, request: Request) -> Answer:
    """Return the answer to one request."""
    router.requester_number = request.connection
    try:
        answered = _perform(router, request)
        if isinstance(answered, Awaitable):
            answered = await answered
    except Refused as refused:
        return Answer({}, refused.status, refused.description)
    return answered if isinstance(answered, Answer) else Answer(answered)


def _perform(router: RouterView, request: Request) -> object:
    """Return the answer to a request: an Answer, its body alone, or an awaitable of either."""
    asked = request.operation
    if asked in CHANGE_HANDLERS:
        return CHANGE_HANDLERS[asked](router, request)
    # as in Dispatch: without a type or a name, the node itself is meant
    kind = request.text("type")
    is_node = kind is None or long_name(kind) in NODE_TYPES
    if (is_node or asked == "QUERY") and asked in NODE_OPERATIONS:
        return _NODE_ANSWERS[asked](router, request)
    if asked == "READ":
        return _read(router, request)
    raise Refused(NOT_IMPLEMENTED, f"{asked} is not implemented on {kind or 'this node'}")


async def _read(router: RouterView, request: Request) -> AnswerMap:
    return (await find(router, request)).attributes()


def _types(router: RouterView, request: Request) -> list[AnyEntityType]:
    """Return the types that a request asks for: all, or one type and the types that extend it."""
    kind = request.text("entityType")
    if kind is None:
        # as in Dispatch: a QUERY may name the entities' type in `type`, in place of the node's type
        named = request.text("type")
        kind = None if named is None or long_name(named) in NODE_TYPES else named
    known = types_of(router)
    every = [entity_type for entity_type, _ in known.values()]
    if kind is None:
        return every
    name = known_type(kind, known)
    return [each for each in every if each.is_a(name)]


# Operations of the node itself.


def _query(router: RouterView, request: Request) -> QueryRows:
    types = _types(router, request)
    names = _attribute_names(types, request.body)
    offset, count = request.count("offset") or 0, request.count("count")
    return QueryRows(names, _rows(router, types, names, offset, count))


def _rows(
    router: RouterView, types: list[AnyEntityType], names: list[str], offset: int, count: int | None
) -> Iterator[list[object] | None]:
    """Yield a row with the values of `names` for each entity, after the first `offset` entities.

    Yield at most `count` rows, unless that is None or 0. Also yield None for each skipped entity,
    and for each step of work without a row.
    """
    left = count or -1
    known = types_of(router)
    for entity_type in types:
        readers = [entity_type.attribute(name) for name in names]
        _, entities = known.get(entity_type.long_name, (None, None))
        if entities is None:
            # its plugin has stopped meanwhile
            continue
        for entity in entities(router):
            if entity is None:
                # a step without a row
                yield None
                continue
            if offset:
                offset -= 1
                yield None
                continue
            yield [None if attribute is None else attribute.read(entity) for attribute in readers]
            left -= 1
            if not left:
                return


def _attribute_names(types: Iterable[AnyEntityType], body: object) -> list[str]:
    """Return the requested attribute names, without those that only Dispatch has.

    Raise Refused if a name is unknown or the body is invalid.
    """
    known = dict.fromkeys(each.name for of in types for each in of.attributes)
    absent = {name for of in types for name in of.unsupported}
    if body is None:
        return list(known)
    if not isinstance(body, dict):
        raise Refused(BAD_REQUEST, "the body of a QUERY must be a map")
    names = body.get("attributeNames") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Refused(BAD_REQUEST, "attributeNames must be a list of strings")
    if not names:
        return list(known)
    unknown = [name for name in names if name not in known and name not in absent]
    if unknown:
        raise Refused(NOT_FOUND, f"there are no attributes {', '.join(unknown)[:200]}")
    return [name for name in dict.fromkeys(names) if name in known]


def _get_types(router: RouterView, request: Request) -> AnswerMap:
    return {each.long_name: each.bases for each in _types(router, request)}


def _get_attributes(router: RouterView, request: Request) -> AnswerMap:
    return {each.long_name: [a.name for a in each.attributes] for each in _types(router, request)}


def _get_operations(router: RouterView, request: Request) -> AnswerMap:
    return {each.long_name: list(each.operations) for each in _types(router, request)}


def _get_annotations(router: RouterView, request: Request) -> AnswerMap:
    # types without annotations are left out, and here no type has annotations
    _types(router, request)
    return {}


def _get_nodes(router: RouterView, _request: Request) -> list[str]:
    is_interior = router.configuration.router.mode == "interior"
    # including this router, as in Dispatch
    known = sorted([router.id, *other_nodes(router)]) if is_interior else []
    return [f"amqp:/_topo/0/{each}/$management" for each in known]


def _get_schema(router: RouterView, _request: Request) -> AnswerMap:
    return {
        "prefix": PREFIX.rstrip("."),
        "entityTypes": {
            each.name: {
                "description": each.meaning,
                "fullyQualifiedType": each.long_name,
                "operations": list(each.operations),
                "attributes": {of.name: _described(of) for of in each.attributes},
            }
            for each, _ in types_of(router).values()
        },
    }


def _described(attribute: AnyAttribute) -> AnswerMap:
    """Return an attribute's part of the schema, with `create` and `update` only if they apply."""
    told: AnswerMap = {"type": attribute.kind, "description": attribute.meaning}
    setting = attribute.setting
    if setting is not None:
        told |= {"create": True, "default": setting.default, "allowed": setting.allowed}
        if setting.is_required:
            told["required"] = True
    if attribute.can_be_updated:
        told["update"] = True
    return told


def _get_json_schema(router: RouterView, request: Request) -> str:
    indent = request.count("indent")
    if indent is not None and indent > WIDEST_INDENT:
        raise Refused(BAD_REQUEST, f"indent must be at most {WIDEST_INDENT}")
    return json.dumps(_get_schema(router, request), indent=indent)


_NODE_ANSWERS: Final[dict[str, Callable[[RouterView, Request], object]]] = {
    "QUERY": _query,
    "GET-TYPES": _get_types,
    "GET-ATTRIBUTES": _get_attributes,
    "GET-OPERATIONS": _get_operations,
    "GET-ANNOTATIONS": _get_annotations,
    "GET-MGMT-NODES": _get_nodes,
    "GET-SCHEMA": _get_schema,
    "GET-JSON-SCHEMA": _get_json_schema,
    "GET-LOG": get_log,
    "EXPLAIN": explain,
    "TRACE": trace,
    **configuration_operations.HANDLERS,
}
