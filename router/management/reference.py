"""Write the reference of `$management` as Markdown, from the entity types.

`python -m router.management.reference > docs/reference/management.md` brings the page up to date.
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
switches it off; what matches every address does not.

A request names its `operation`, and what that is about, in its application-properties, and needs a
`reply-to`. The answer has a `statusCode` and a `statusDescription` there, and the request's
correlation-id, or else its message-id. Type names may be written with or without the prefix
`org.apache.qpid.dispatch.`.

| Operation | Asked with | Answered with |
|---|---|---|
| `QUERY` | `entityType`, `offset`, `count`; body: `attributeNames` | `attributeNames`, `results` |
| `READ` | `identity` or `name`, and `type` | all attributes that have a value |
| `CREATE` | `type`, `name`; body: attributes, or a list of maps | attributes, or a list of maps |
| `UPDATE` | `identity` or `name`, and `type`; body: attributes | all attributes that have a value |
| `DELETE` | `identity` or `name`, and `type` | nothing |
| `GET-TYPES` | `entityType` | each type and what it extends |
| `GET-ATTRIBUTES` | `entityType` | each type and its attributes |
| `GET-OPERATIONS` | `entityType` | each type and its operations |
| `GET-ANNOTATIONS` | `entityType` | nothing: no type has any |
| `GET-MGMT-NODES` | | the nodes of all interior routers, this one among them |
| `GET-SCHEMA` | | all of this page as a map |
| `GET-JSON-SCHEMA` | `indent` | the same as text in JSON |
| `GET-LOG` | `limit` | the last lines: module, level, text, null, null, seconds since 1970 |
| `TRACE` | body: `to`, and what is traced ([more](../how-to/trace.md)) | the number of the trace |
| `EXPLAIN` | `direction` (send or receive), `address`, `user`, `vhost` | what flows, and why |
| `GET-CONFIGURATION` | | what the router runs, as TOML, without passwords |
| `EXPORT-CONFIGURATION` | | the same with passwords |
| `GET-REVISIONS` | | what it has run, the newest first, with numbers |
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
| 403 | The connection may not ask for that: see [who may](#who-may). |
| 404 | There is no such entity, or no such attribute. |
| 500 | The router failed; see its log. |
| 501 | There is no such operation, or none on this type. |

Attributes that Dispatch has and this router has nothing to say about are left out of the answer to
a `QUERY`, whose `attributeNames` tell what came. A request of more than {MAX_READ_BYTES} octets
({MAX_CHANGE_BYTES} from who may change things), one that is no message, and one without a
reply-to are rejected. An answer waits
{ANSWER_TTL_MS // 1000} seconds to be taken; while {MAX_ANSWERS} wait at one reply-to to be settled,
or up to {MAX_SMALL_ANSWERS} that are not more than {MAX_SMALL_BYTES} octets together, further
requests with it are rejected.

## Who may

The attribute `management` of the [listener or connector](configuration.md#listener) that a
connection belongs to says what its peer may ask: nothing (`none`), what changes nothing (`read`:
QUERY, READ, EXPLAIN and all whose names begin with GET-), or everything (`change`). With `trusted`,
the default, a peer may ask everything if it has proved who it is, by SASL other than ANONYMOUS, or
if it connects from this host's loopback address; anybody else may read. The others are answered
with 403. What comes from another router may be asked as far as that router says that its client
may, and its endpoint here allows ([more](../decisions/0078-rights-go-along.md)).

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
    yield "Queries for them return no entities."
    yield ""
    yield "| Type | What it would be |"
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
    has_settings = any(each.given for each in entity_type.attributes)
    head = ["Attribute", "Type", "Meaning"]
    head += ["Set", "Default", "Allowed"] if has_settings else []
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for each in entity_type.attributes:
        cells = [f"`{each.name}`", each.kind, each.meaning]
        if has_settings:
            given = each.given
            cells.append(_when(each))
            cells += ["", ""] if given is None else [given.default, given.allowed]
        yield f"| {' | '.join(cells)} |"
    yield ""


def _when(attribute: AnyAttribute) -> str:
    """Return when an attribute can be set."""
    times = ["created"] if attribute.can_be_created_with else []
    times += ["updated"] if attribute.can_be_updated else []
    return ", ".join(times)


if __name__ == "__main__":
    sys.stdout.write(format_reference())
