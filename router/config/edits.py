"""Edits of a configuration: the entities that change, while all others stay the same.

Usually a few of very many entities change. If these are known, the others need not be compared
(docs/decisions/0102-one-change-beside-very-many.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from router.config.model import Entity


@attrs.frozen(eq=False)
class Edit:
    """Replacement of one entity by another with the same key.

    `old` is None for an entity that is added, and `new` for one that is removed.
    """

    entity: Entity
    old: object
    new: object

    @property
    def inverse(self) -> Edit:
        """Return the edit that reverts this one."""
        return Edit(self.entity, self.new, self.old)


Edits = Sequence[Edit]


def removed_and_added(edits: Edits, entity: str) -> tuple[list[object], list[object]]:
    """Return the entities of a kind that the edits remove, and those that they add."""
    gone = [each.old for each in edits if each.entity.name == entity and each.old is not None]
    come = [each.new for each in edits if each.entity.name == entity and each.new is not None]
    return gone, come
