"""What is to be other in a configuration where that is known: some entities, and all else stays.

Of very many entities few change at a time. Who knows which they are spares everybody the comparison
of all (docs/decisions/0102-one-change-beside-very-many.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from router.config.model import Entity


@attrs.frozen(eq=False)
class Edit:
    """One entity in the place of another one that is known by the same: `old` is None for one that
    is added, and `new` for one that is removed.
    """

    entity: Entity
    old: Any
    new: Any

    @property
    def undone(self) -> Edit:
        """What takes it back."""
        return Edit(self.entity, self.new, self.old)


Edits = Sequence[Edit]


def others(edits: Edits, entity: str) -> tuple[list[Any], list[Any]]:
    """Return the entities of a kind that are there no more as they were, and those that come."""
    gone = [each.old for each in edits if each.entity.name == entity and each.old is not None]
    come = [each.new for each in edits if each.entity.name == entity and each.new is not None]
    return gone, come
