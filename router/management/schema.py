"""What an entity type is made of: its attributes, each with its kind, its meaning and its reader.

An attribute is written down once. The agent answers from it, and the reference prints it. Those of
configured entities are not even written once: they are those of the configuration's model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from router.config.model import ENTITIES, Entity
from router.config.reference import default_words
from router.config.reload import NOT_LIVE
from router.config.secret import Secret
from router.config.setting import file_name, setting_of

PREFIX: Final = "org.apache.qpid.dispatch."

CONFIGURATION: Final = f"{PREFIX}configurationEntity"
OPERATIONAL: Final = f"{PREFIX}operationalEntity"
ENTITY: Final = f"{PREFIX}entity"


@attrs.frozen
class Given:
    """That an attribute is one of the configuration's, and can be given to an entity.

    `field` is that of the configuration's model; `fixed` says why a running router does not change
    it, and is empty where it does.
    """

    field: attrs.Attribute[Any]
    fixed: str = ""

    @property
    def allowed(self) -> str:
        """Which values it may have, in words."""
        return setting_of(self.field).kind.words

    @property
    def default(self) -> str:
        """What it is where it is not given, in words."""
        return default_words(self.field)

    @property
    def is_required(self) -> bool:
        """Whether an entity cannot do without it."""
        return setting_of(self.field).required


@attrs.frozen
class Attribute:
    """One attribute of an entity type.

    `kind` is Dispatch's word for the type of its values; `read` takes what entities of this type
    are made from, and returns something that AMQP can carry, None where there is no value. Without
    `given` nobody sets it, unless `changes` says that it can be changed.
    """

    name: str
    kind: str
    meaning: str
    read: Callable[[Any], Any]
    given: Given | None = None
    changes: bool = False

    @property
    def can_be_given(self) -> bool:
        """Whether a new entity may be given it."""
        return self.given is not None

    @property
    def can_change(self) -> bool:
        """Whether that of an entity which is there can become another."""
        return self.changes or (self.given is not None and not self.given.fixed)


@attrs.frozen
class EntityType:
    """One entity type; `name` is without the prefix that all have.

    `absent` are the attributes that this type has in Dispatch and for which there is nothing to be
    told here: who asks for them gets an answer without them. `entity` is what entities of this type
    are in the configuration; `lacking` says what this router has not, where nothing can be done to
    them for want of it. `tells_null` says that READ tells attributes without a value, too, as it
    does in Dispatch of what is in its core.
    """

    name: str
    meaning: str
    base: str
    attributes: tuple[Attribute, ...]
    absent: tuple[str, ...] = ()
    operations: tuple[str, ...] = ("READ",)
    entity: Entity | None = None
    lacking: str = ""
    tells_null: bool = False

    @property
    def long_name(self) -> str:
        """As it is called on the wire."""
        return long_name(self.name)

    @property
    def bases(self) -> list[str]:
        """The types that it extends, the nearest one first."""
        return [self.base, ENTITY]

    def is_a(self, name: str) -> bool:
        """Whether this is the type with this long name, or extends it."""
        return name == self.long_name or name in self.bases

    def attribute(self, name: str) -> Attribute | None:
        """The attribute of this name, or None."""
        return next((each for each in self.attributes if each.name == name), None)


@attrs.frozen
class Live:
    """A configured entity of which there is more to tell than what is configured of it: `state` is
    what the router has made of it, None where that is nothing yet.
    """

    settings: Any
    state: Any


def settings_of(entity: Any) -> Any:
    """What is configured of an entity."""
    return entity.settings if isinstance(entity, Live) else entity


def told_live(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The reader of an attribute that tells what has become of an entity, made of one that looks
    at its `state`; None where there is none.
    """

    def read_live(entity: Any) -> Any:
        is_there = isinstance(entity, Live) and entity.state is not None
        return read(entity.state) if is_there else None

    return read_live


def configured(name: str) -> Entity:
    """What is called `name` in the configuration."""
    return next(entity for entity in ENTITIES if entity.name == name)


def long_name(name: str) -> str:
    """The name of a type with the prefix, however it was written."""
    return name if name.startswith((PREFIX, "org.amqp.")) else PREFIX + name


def settings_attributes(entity: Entity) -> Iterator[Attribute]:
    """The attributes of what is configured, from the configuration's model; names are left out,
    since every entity has one.
    """
    for field in attrs.fields(entity.settings):
        if field.name == "name":
            continue
        name = field.name

        def read(settings: Any, name: str = name) -> Any:
            return wire_value(name, getattr(settings_of(settings), name))

        given = Given(field, NOT_LIVE.get((entity.name, name), ""))
        meaning = setting_of(field).description
        yield Attribute(file_name(name), wire_kind(field), meaning, read, given)


def wire_kind(field: attrs.Attribute[Any]) -> str:
    """Dispatch's word for what `wire_value` makes of a setting."""
    declared = str(field.type)
    if "Literal" in declared and "tuple" not in declared:
        # whatever its words are made of
        return "string"
    if field.name == "port" or "tuple" in declared:
        return "string"
    if "Mapping" in declared:
        return "map"
    if "bool" in declared:
        return "boolean"
    return "integer" if "int" in declared or "float" in declared else "string"


def wire_value(name: str, value: object) -> Any:
    """A configured value as Dispatch tells it: ports are text, and so are lists; a password is
    told to nobody.
    """
    if value is None or isinstance(value, Secret):
        return None
    if name == "port" or isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple):
        return (", " if name.endswith("_urls") else " ").join(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return dict(value)
    return value
