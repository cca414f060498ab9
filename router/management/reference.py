"""Reference page for `$management` in Markdown, generated from the entity types.

`python -m router.management.reference > docs/reference/management.md` updates the page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

from router.management.access import MAX_CHANGE_BYTES, MAX_READ_BYTES
from router.management.agent import ANSWER_TTL_MS
from router.management.entities.unsupported_types import UNSUPPORTED_TYPES
from router.management.entity_types import ENTITY_TYPES, NODE_OPERATIONS
from router.management.schema import AnyAttribute, AnyEntityType
from router.management.unsettled_answers import MAX_ANSWERS, MAX_SMALL_ANSWERS, MAX_SMALL_BYTES

_HEAD: Final = f"""\
# Management

<!-- Written by `python -m router.management.reference`; change the entity types, not this page. -->

`$management` answers requests in the way of Qpid Dispatch (AMQP management, working draft 9). The
same node is `_local/$management`, and `_topo/0/ROUTER/$management` with the router's `id`. An
`address` entity with the prefix or pattern `$management` itself and the distribution `unavailable`
disables the node; a pattern that matches every address does not.

A request has its `operation` and the arguments in its application-properties, and needs a
`reply-to`. The answer has a `statusCode` and a `statusDescription` there, and the request's
correlation-id, or else its message-id. Type names may be written with or without the prefix
`org.apache.qpid.dispatch.`.

| Operation | Arguments | Answer |
|---|---|---|
| `QUERY` | `entityType`, `offset`, `count`; body: `attributeNames` | `attributeNames`, `results` |
| `READ` | `identity` or `name`, and `type` | all attributes that have a value |
| `CREATE` | `type`, `name`; body: attributes, or a list of maps | attributes, or a list of maps |
| `UPDATE` | `identity` or `name`, and `type`; body: attributes | all attributes that have a value |
| `DELETE` | `identity` or `name`, and `type` | nothing |
| `GET-TYPES` | `entityType` | each type and the types that it extends |
| `GET-ATTRIBUTES` | `entityType` | each type and its attributes |
| `GET-OPERATIONS` | `entityType` | each type and its operations |
| `GET-ANNOTATIONS` | `entityType` | nothing: no type has any |
| `GET-MGMT-NODES` | | the nodes of all interior routers, including this one |
| `GET-SCHEMA` | | all of this page as a map |
| `GET-JSON-SCHEMA` | `indent` | the same as text in JSON |
| `GET-LOG` | `limit` | the last lines: module, level, text, null, null, seconds since 1970 |
| `TRACE` | body: `to`, and what to trace ([more](../how-to/trace.md)) | the number of the trace |
| `EXPLAIN` | `direction` (send or receive), `address`; `user`, `vhost`, `host` | what flows |
| `GET-CONFIGURATION` | | the running configuration as TOML, without passwords |
| `EXPORT-CONFIGURATION` | | the same with passwords |
| `GET-REVISIONS` | | the revisions that it has run, with numbers, newest first |
| `APPLY` | body: TOML as a string; `dryRun`, `ifRevision`, `comment` | revision, differences |
| `ROLLBACK` | `revision` (the one before), `dryRun`, `ifRevision` | revision, differences |

The operations on the node itself ({", ".join(NODE_OPERATIONS)}) are those of the type
`org.amqp.management`.

| `statusCode` | When |
|---|---|
| 200 | It was done. |
| 201 | It was created. |
| 204 | It was deleted. |
| 400 | The request is wrong: no operation, an unknown type, an argument of a wrong type. |
| 403 | The connection may not request that: see [who may](#who-may). |
| 404 | There is no such entity, or no such attribute. |
| 500 | The router failed; see its log. |
| 501 | There is no such operation, or none on this type. |

Attributes of Dispatch for which this router has no values are omitted from the answer to a `QUERY`;
its `attributeNames` lists those that are included. A request of more than {MAX_READ_BYTES} octets
({MAX_CHANGE_BYTES} from a sender that may change things), one that is not a valid message, and one
without a reply-to are rejected. An answer waits up to {ANSWER_TTL_MS // 1000} seconds for its
receiver. One reply-to may have {MAX_ANSWERS} unsettled answers, or up to {MAX_SMALL_ANSWERS} with
not more than {MAX_SMALL_BYTES} octets in total; while it has that many, further requests with the
same reply-to are rejected.

## Who may

The attribute `management` of the [listener or connector](configuration.md#listener) that a
connection belongs to determines which operations its peer may request: none (`none`), those that
change nothing (`read`: QUERY, READ, EXPLAIN and all whose names begin with GET-), or all
(`change`). With `trusted`, the default, a peer may request all operations if it has authenticated
with SASL other than ANONYMOUS, or if it connects from this host's loopback address; any other peer
may only read. Other requests are answered with 403. A request from another router is allowed if
that router states that its client may make it, and if the router's listener or connector here
allows it ([more](../decisions/0078-rights-go-along.md)).

Behind a proxy on the same host every peer comes from a loopback address: set `read`
there, or have the peers authenticate ([more](../decisions/0037-who-may-manage.md)).
"""


def format_reference() -> str:
    """Return the whole page."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    yield _HEAD
    for each, _ in ENTITY_TYPES.values():
        if each not in UNSUPPORTED_TYPES:
            yield from _section(each)
    yield "## Types without entities"
    yield ""
    yield "Queries for these types return no entities."
    yield ""
    yield "| Type | Meaning |"
    yield "|---|---|"
    for each in UNSUPPORTED_TYPES:
        yield f"| `{each.name}` | {each.meaning} |"
    yield ""


def _section(entity_type: AnyEntityType) -> Iterator[str]:
    yield f"## {entity_type.name}"
    yield ""
    yield entity_type.meaning
    yield ""
    yield f"Operations: {', '.join(entity_type.operations)}."
    yield ""
    has_settings = any(each.setting for each in entity_type.attributes)
    head = ["Attribute", "Type", "Meaning"]
    head += ["Set", "Default", "Allowed"] if has_settings else []
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for each in entity_type.attributes:
        cells = [f"`{each.name}`", each.kind, each.meaning]
        if has_settings:
            setting = each.setting
            cells.append(_when(each))
            cells += ["", ""] if setting is None else [setting.default, setting.allowed]
        yield f"| {' | '.join(cells)} |"
    yield ""


def _when(attribute: AnyAttribute) -> str:
    """Return when an attribute can be set."""
    times = ["created"] if attribute.can_be_created_with else []
    times += ["updated"] if attribute.can_be_updated else []
    return ", ".join(times)


if __name__ == "__main__":
    sys.stdout.write(format_reference())
