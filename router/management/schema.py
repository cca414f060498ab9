"""Schema of entity types: attributes, each with its kind, its meaning and a function that reads it.

Each attribute is defined once; the agent answers requests from the definition, and the reference
page is generated from it.
The attributes of configured entities are taken from the model of the configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Generic, TypeAlias, TypeVar

import attrs

from router.config.differences import RESTART_ONLY
from router.config.model import ENTITIES, Entity
from router.config.reference import default_words
from router.config.secret import Secret
from router.config.setting import file_name, setting_of
from router.management.names import PREFIX, long_name

CONFIGURATION: Final = f"{PREFIX}configurationEntity"
OPERATIONAL: Final = f"{PREFIX}operationalEntity"
ENTITY: Final = f"{PREFIX}entity"

# Ends of the names of lists whose items may contain spaces, so that commas separate them.
_WITH_COMMAS: Final = ("_urls", "users", "hosts", "sources", "targets", "_pattern", "aliases")

# Class of the objects that an entity is read from, and class of a configured entity's state.
E_contra = TypeVar("E_contra", contravariant=True)
S = TypeVar("S")

SettingField: TypeAlias = "attrs.Attribute[object]"
"""Field of a class of settings."""


@attrs.frozen
class Setting:
    """Configuration setting whose value an attribute shows.

    `field` is the setting's field in the configuration's model. `why_fixed` says why the setting
    cannot be changed in a running router, and is empty if it can.
    """

    field: SettingField
    why_fixed: str = ""

    @property
    def allowed(self) -> str:
        """Return the allowed values, in words."""
        return setting_of(self.field).kind.words

    @property
    def default(self) -> str:
        """Return the default value, in words."""
        return default_words(self.field)

    @property
    def is_required(self) -> bool:
        """Return whether every entity needs a value for the setting."""
        return setting_of(self.field).required


@attrs.frozen
class Attribute(Generic[E_contra]):
    """Attribute of an entity type, whose entities are read from objects of one class.

    `kind` is Dispatch's name for the type of its values. `read` takes the object that an entity is
    read from, and returns a value that AMQP can carry, None for no value. An attribute without
    `setting` cannot be set when an entity is created, and can be updated only if `changes` is true.
    """

    name: str
    kind: str
    meaning: str
    read: Callable[[E_contra], object]
    setting: Setting | None = None
    changes: bool = False

    @property
    def can_be_created_with(self) -> bool:
        """Return whether a new entity can be given a value for the attribute."""
        return self.setting is not None

    @property
    def can_be_updated(self) -> bool:
        """Return whether the attribute's value in an existing entity can be changed."""
        return self.changes or (self.setting is not None and not self.setting.why_fixed)


@attrs.frozen
class EntityType(Generic[E_contra]):
    """Type of entities, which are read from objects of one class.

    `name` is without the common prefix. `unsupported` has the names of attributes that the type has
    only in Dispatch; answers leave them out. `entity` is the configuration entity of this type, if
    there is one. `missing_feature` is the reason why operations are not implemented, or empty. With
    `includes_null`, READ includes attributes without a value, as Dispatch does for some types.
    """

    name: str
    meaning: str
    base: str
    attributes: tuple[Attribute[E_contra], ...]
    unsupported: tuple[str, ...] = ()
    operations: tuple[str, ...] = ("READ",)
    entity: Entity | None = None
    missing_feature: str = ""
    includes_null: bool = False

    @property
    def long_name(self) -> str:
        """Return the type's name with the common prefix, as requests and answers contain it."""
        return long_name(self.name)

    @property
    def bases(self) -> list[str]:
        """Return the names of the types that this type extends, the nearest one first."""
        return [self.base, ENTITY]

    def is_a(self, name: str) -> bool:
        """Return whether `name` is the long name of this type, or of a type that it extends."""
        return name == self.long_name or name in self.bases

    def attribute(self, name: str) -> Attribute[E_contra] | None:
        """Return the attribute with this name, or None."""
        return next((each for each in self.attributes if each.name == name), None)


# Of any class: an entity always has the class that the readers of its type take.
AnyAttribute: TypeAlias = Attribute[Any]
AnyEntityType: TypeAlias = EntityType[Any]


@attrs.frozen
class LiveEntity:
    """Configured entity with its live state; `state` is None if there is no state yet."""

    settings: object
    state: object


def settings_of(entity: object) -> Any:
    """Return the settings of an entity: an instance of one of the configuration classes."""
    return entity.settings if isinstance(entity, LiveEntity) else entity


def live_reader(of: type[S], read: Callable[[S], object]) -> Callable[[object], object]:
    """Return a reader that applies `read` to an entity's live state.

    The reader returns None if the entity has no live state of the class `of`.
    """

    def read_live(entity: object) -> object:
        state = entity.state if isinstance(entity, LiveEntity) else None
        return read(state) if isinstance(state, of) else None

    return read_live


def configured_entity(name: str) -> Entity:
    """Return the configuration's entity with this name."""
    return next(entity for entity in ENTITIES if entity.name == name)


def settings_attributes(entity: Entity) -> Iterator[Attribute[object]]:
    """Yield the attributes of a configured entity, from the configuration's model.

    The attribute `name` is left out, since every entity has one anyway.
    """
    for attribute in fields_attributes(entity.settings):
        field = attribute.setting.field if attribute.setting else None
        if field is None or field.name == "name":
            continue
        setting = Setting(field, RESTART_ONLY.get((entity.name, field.name), ""))
        yield attrs.evolve(attribute, setting=setting)


def fields_attributes(of: type[attrs.AttrsInstance]) -> Iterator[Attribute[object]]:
    """Yield an attribute for each field of a class of settings."""
    for field in attrs.fields(of):
        name = field.name

        def read(settings: object, name: str = name) -> object:
            return wire_value(name, getattr(settings_of(settings), name))

        meaning = setting_of(field).description
        yield Attribute(file_name(name), wire_kind(field), meaning, read, Setting(field))


def wire_kind(field: SettingField) -> str:
    """Return Dispatch's name for the type of value that `wire_value` returns for a setting."""
    declared = str(field.type)
    if "Literal" in declared and "tuple" not in declared:
        # even if the choices include other types
        return "string"
    if field.name == "port" or "tuple" in declared:
        return "string"
    if "Mapping" in declared:
        return "map"
    if "bool" in declared:
        return "boolean"
    return "integer" if "int" in declared or "float" in declared else "string"


def wire_value(name: str, value: object) -> object:
    """Return a configured value in Dispatch's form.

    Ports and lists are text. Passwords are never returned.
    """
    if value is None or isinstance(value, Secret):
        return None
    if name == "port" or isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple):
        return (", " if name.endswith(_WITH_COMMAS) else " ").join(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {
            key: _wire_table(each) if attrs.has(type(each)) else each for key, each in value.items()
        }
    return value


def _wire_table(settings: attrs.AttrsInstance) -> dict[str, object]:
    """Return a table within a map, such as a group of a vhost, without attributes that are None."""
    names = [field.name for field in attrs.fields(type(settings))]
    values = {file_name(name): wire_value(name, getattr(settings, name)) for name in names}
    return {name: value for name, value in values.items() if value is not None}
