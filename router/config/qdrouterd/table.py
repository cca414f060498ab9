"""Entity that is being translated from Dispatch's file to this router's."""

from __future__ import annotations

from typing import Final

import attrs

from router.config.mistakes import Path
from router.config.model import ENTITIES
from router.config.qdrouterd.document import GivenAttribute, Section
from router.config.setting import file_name

_DEFAULTS: Final[dict[tuple[str, str], object]] = {
    (entity.name, file_name(field.name)): field.default
    for entity in ENTITIES
    for field in attrs.fields(entity.settings)
}


@attrs.define
class Table:
    """Entity that is being translated.

    `values` are the values in Dispatch's file, by the attribute names of Dispatch 1.19. `data` are
    the attributes for this router. With `left_out`, this router gets no such entity. If
    `allowed_attributes` is not empty, the entity may have no other attributes; it never has
    `excluded_attributes`.
    """

    name: str
    place: Path
    section: Section
    values: dict[str, object] = attrs.Factory(dict)
    given: dict[str, GivenAttribute] = attrs.Factory(dict)
    data: dict[str, object] = attrs.Factory(dict)
    left_out: bool = False
    allowed_attributes: tuple[str, ...] = ()
    excluded_attributes: tuple[str, ...] = ()

    def line_of(self, key: str) -> int:
        """Return the line of an attribute, or of the entity if it was not given."""
        given = self.given.get(key)
        return self.section.line if given is None else given.line

    def has(self, key: str) -> bool:
        """Return whether the entity may have this attribute."""
        if key in self.excluded_attributes:
            return False
        return not self.allowed_attributes or key in self.allowed_attributes

    def own_default(self, key: str) -> object:
        """Return the default of an attribute in this router's model.

        It is `attrs.NOTHING` if the default is made from other attributes.
        """
        default = _DEFAULTS.get((self.name, key), attrs.NOTHING)
        return attrs.NOTHING if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]
