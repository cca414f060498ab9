"""Find the entity that a request means, by the entity's name or identity.

There may be very many entities, so other tasks run after every few of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import attrs
import trio

from router.management.entities.link import LINK
from router.management.entities.vhosts import VHOST, VHOST_STATS
from router.management.entity_index import look_up
from router.management.entity_types import ENTITY_TYPES, MANAGEMENT, ListedType, types_of
from router.management.names import long_name
from router.management.requests import BAD_REQUEST, NOT_FOUND, AnswerMap, Refused, Request
from router.management.schema import AnyEntityType
from router.management.views import RouterView

# Names of the node's type: in the standard, and in Dispatch.
NODE_TYPES: Final = ("org.amqp.management", MANAGEMENT.long_name)
# Types whose entities may be named by host name alone, with what their full names begin with.
_BY_HOSTNAME: Final = {each.long_name: each.name for each in (VHOST, VHOST_STATS)}
# Entities that are examined before other tasks run.
STEPS_PER_CHECKPOINT: Final = 32


@attrs.frozen
class FoundEntity:
    """Entity that a request means: its type, and the object that its attributes are read from."""

    entity_type: AnyEntityType
    entity: object

    def attributes(self) -> AnswerMap:
        """Return the attributes, as in the answer to READ."""
        return attributes_of(self.entity_type, self.entity)


def attributes_of(entity_type: AnyEntityType, entity: object) -> AnswerMap:
    """Return all attributes of an entity.

    Attributes without a value are omitted, unless Dispatch includes them.
    """
    values = {each.name: each.read(entity) for each in entity_type.attributes}
    if entity_type.includes_null:
        return values
    return {name: value for name, value in values.items() if value is not None}


def known_type(kind: str, known: Mapping[str, ListedType] = ENTITY_TYPES) -> str:
    """Return the long name of a type; raise Refused if no known type has this name."""
    name = long_name(kind)
    bases = {base for each, _ in known.values() for base in each.bases}
    if name not in known and name not in bases:
        raise Refused(BAD_REQUEST, f"there is no entity type {kind[:100]!r}")
    return name


async def find(router: RouterView, request: Request) -> FoundEntity:
    """Return the entity that a request means; raise Refused if there is none, or several match."""
    known = types_of(router)
    kind, name, identity = map(request.text, ("type", "name", "identity"))
    if name is None and identity is None:
        if kind is not None and long_name(kind) not in NODE_TYPES:
            reason = f"{request.operation} needs the name or the identity of an entity"
            raise Refused(BAD_REQUEST, reason)
        # as in Dispatch: without a name and an identity, the node itself is meant
        return FoundEntity(MANAGEMENT, MANAGEMENT)
    # as in Dispatch: if both are given, the identity counts
    wanted, key = ("name", name or "") if identity is None else ("identity", identity)
    long = None if kind is None else known_type(kind, known)
    one = None if long is None else known.get(long)
    if long in _BY_HOSTNAME and "/" not in key:
        key = f"{_BY_HOSTNAME[long]}/{key}"
    found = await _search(router, wanted, key, known.values() if one is None else [one])
    right = [each for each in found if long is None or each.entity_type.is_a(long)]
    if long is None and len(right) > 1:
        # a peer must not hide another entity by giving its link the same name
        right = [each for each in right if each.entity_type is not LINK] or right
    if len(right) == 1:
        return right[0]
    if right:
        types = " and ".join(sorted({each.entity_type.name for each in right}))
        reason = f"several entities have the {wanted} {key[:100]!r}: give the type, one of {types}"
        raise Refused(BAD_REQUEST, reason)
    if found or (one is not None and await _search(router, wanted, key, known.values())):
        raise Refused(
            BAD_REQUEST, f"the entity with the {wanted} {key[:100]!r} is not of the type {kind}"
        )
    # Dispatch's description, which users of its tools know
    raise Refused(NOT_FOUND, f"No entity with {wanted}={key[:100]}")


async def _search(
    router: RouterView, wanted: str, key: str, types: Iterable[ListedType]
) -> list[FoundEntity]:
    """Return the entities of `types` that have the value `key` in their attribute `wanted`.

    `wanted` is `name` or `identity`.
    """
    found = []
    steps = 0
    for entity_type, entities in types:
        attribute = entity_type.attribute(wanted)
        assert attribute is not None
        looked_up = await look_up(router, entity_type, wanted, key)
        for entity in entities(router) if looked_up is None else looked_up:
            # None stands for a step without a result
            if entity is not None and attribute.read(entity) == key:
                found.append(FoundEntity(entity_type, entity))
            steps += 1
            if steps % STEPS_PER_CHECKPOINT == 0:
                await trio.lowlevel.checkpoint()
    return found
