"""Translate a Dispatch file into this router's form, and record everything that is lost.

Entities and attributes have the same names in both, so the translation mostly follows the router's
own model. An attribute that the model has is kept, with its value in the model's form. For any
other attribute, `facts` says what its loss means. Defaults of Dispatch that differ from those of
this router are set explicitly.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import attrs

from router.config.kinds import ValueNotAllowed
from router.config.mistakes import Mistake, Path, format_path, format_value
from router.config.model import ENTITIES as OURS, Entity as OurEntity
from router.config.qdrouterd import facts
from router.config.qdrouterd.auto_link_names import AutoLinkNames
from router.config.qdrouterd.document import (
    Document,
    GivenAttribute,
    Section,
    modern_name,
    modern_section,
)
from router.config.qdrouterd.endpoints import adapt_endpoint, adapt_profile
from router.config.qdrouterd.logs import LogSections
from router.config.qdrouterd.old_names import (
    INVERTED,
    OLD_VALUES,
    inverted,
    is_old,
    replace_old_entity,
)
from router.config.qdrouterd.policies import adapt_vhost
from router.config.qdrouterd.report import Remark, Sort
from router.config.qdrouterd.sasl import SaslUsers
from router.config.qdrouterd.table import Table
from router.config.qdrouterd.values import read_value, to_file_value
from router.config.setting import Setting, file_name, setting_of

_OURS: Final = {entity.name: entity for entity in OURS}
# Values that Dispatch corrects: the range, and the values that it uses below and above the range.
_RIGHT: Final[Mapping[str, tuple[int, int, int, int]]] = {
    "maxSessions": (1, 32768, 32768, 32768),
    "maxFrameSize": (512, 2**20, 512, 2**20),
    "maxSessionFrames": (1, 2**31 - 1, 2**31 - 1, 2**31 - 1),
    "linkCapacity": (1, 1_000_000, 250, 1_000_000),
}
# Service names of ports, except amqp, which this router's file also accepts.
_SERVICES: Final = {"amqps": 5671}


@attrs.define
class Translation:
    """Result of a translation: data in the form of parsed TOML, the line of each part, and remarks.

    `tables` are the entities in the order of the file. `places` maps paths in `data` to paths in
    Dispatch's file.
    """

    data: dict[str, Any] = attrs.Factory(dict)
    lines: dict[Path, int] = attrs.Factory(dict)
    tables: list[Table] = attrs.Factory(list)
    places: dict[Path, Path] = attrs.Factory(dict)
    remarks: list[Remark] = attrs.Factory(list)
    mistakes: list[Mistake] = attrs.Factory(list)
    log_file: str = ""


def translate(document: Document, source: str, users: SaslUsers | None = None) -> Translation:
    """Translate a Dispatch file; mistakes are returned in the result, not raised.

    `users` are the users of listeners that name no usersFile.
    """
    translator = _Translator(source, users or SaslUsers())
    translator.made.mistakes.extend(document.mistakes)
    for section in document.sections:
        translator.section(section)
    translator.finish()
    return translator.made


class _Translator:
    def __init__(self, source: str, users: SaslUsers) -> None:
        self.made = Translation()
        self.source = source
        self.users = users
        self.counts: dict[str, int] = {}
        self.logs = LogSections()
        self.said: set[tuple[str, str]] = set()
        self.single: dict[str, Table] = {}
        self.alone: set[str] = set()
        self.auto_link_names = AutoLinkNames()
        self.addresses: set[tuple[object, object]] = set()

    def section(self, written: Section) -> None:
        name = modern_section(written.name)
        given: dict[str, GivenAttribute] = {}
        for key, each in written.given.items():
            given[modern_name(key)] = each
        section = attrs.evolve(written, given=given)
        for key, line in written.repeated:
            text = "is given twice; the last counts, as in Dispatch"
            self.remark("changed", line, f"{name}.{key}", text)
        if is_old(name):
            text = "is an entity from before Dispatch 1.0; taken as its successor"
            self.remark("old", written.line, name, text)
        for current, part in replace_old_entity(name, section):
            self.entity(current, part, is_rewritten=is_old(name))

    def entity(self, name: str, section: Section, *, is_rewritten: bool) -> None:
        """Translate one entity; `name` is its current name.

        `is_rewritten` is true if the file contains an entity of an old name instead.
        """
        entity, ours = facts.ENTITIES.get(name), _OURS.get(name)
        if entity is None and ours is None:
            known = dict.fromkeys([*facts.ENTITIES, *_OURS])
            self.unknown(section.line, name, name, known)
            return
        repeated = ours.repeated if ours is not None else entity is not None and entity.repeated
        place: Path = (name,)
        if repeated or name == "log":
            number = self.counts.get(name, 0)
            self.counts[name] = number + 1
            place = (name, number)
        elif not is_rewritten:
            if name in self.alone:
                self.mistake(section.line, name, "occurs twice", "give it once")
                return
            self.alone.add(name)
        table = Table(name, place, section)
        if entity is not None:
            self.read(table, entity, ours)
        else:
            table.values = {key: each.value for key, each in section.given.items()}
        if name == "log":
            self.logs.add(table, self.remark)
        elif ours is None:
            assert entity is not None
            self.lost(table, entity)
        else:
            self.keep(table, entity, ours)

    def read(self, table: Table, entity: facts.Entity, ours: OurEntity | None) -> None:
        """Read the values of a section as Dispatch does, and replace old attribute names."""
        old = {each.old: key for key, each in entity.attributes.items() if each.old}
        # our log table has no attributes in common with Dispatch's section for one module
        own = _fields(ours) if ours is not None and table.name != "log" else ()
        known = dict.fromkeys([*entity.attributes, *own])
        for key, given in table.section.given.items():
            now, path = old.get(key, key), f"{format_path(table.place)}.{key}"
            value = given.value
            try:
                if (table.name, key) in INVERTED:
                    now, value = INVERTED[table.name, key], inverted(value)
            except ValueNotAllowed as refused:
                self.refused(given, path, refused, given.value)
                continue
            if now != key:
                what = "is the opposite of" if (table.name, key) in INVERTED else "is now called"
                self.remark("old", given.line, path, f"{what} {now}")
                if now in table.section.given:
                    problem = f"is the old name of {now}, which is given as well"
                    self.mistake(given.line, path, problem, "give one of the two")
                    continue
            if now not in known:
                self.unknown(given.line, path, now, known)
                continue
            if given.cut:
                text = "continues after a #, which begins a comment here, as in Dispatch"
                self.remark("changed", given.line, path, text)
            attribute = entity.attributes.get(now)
            if attribute is not None:
                value = OLD_VALUES.get((table.name, now), {}).get(str(value), value)
                try:
                    value = read_value(attribute.kind, value)
                except ValueNotAllowed as refused:
                    self.refused(given, path, refused, None if _is_secret(now) else given.value)
                    continue
            table.values[now] = value
            table.given[now] = given

    def lost(self, table: Table, entity: facts.Entity) -> None:
        """Report an entity that this router does not have."""
        if any(attribute.fate == "guard" for attribute in entity.attributes.values()):
            for key, value in table.values.items():
                self.without(table, key, value, entity.attributes[key])
        elif table.values:
            sort, line = _sort(entity.fate), table.section.line
            self.remark(sort, line, _shown_name(table), entity.meaning)

    def keep(self, table: Table, entity: facts.Entity | None, ours: OurEntity) -> None:
        """Translate an entity that this router has."""
        kept = self.single.get(table.name, table)
        fields = _fields(ours)
        if table.name in ("listener", "connector"):
            adapt_endpoint(table, fields, self.users, self.remark)
            if table.left_out:
                return
        elif table.name == "router" and self.users.database:
            # they have served their purpose
            for key in ("saslConfigDir", "saslConfigName"):
                table.values.pop(key, None)
        elif table.name == "sslProfile":
            adapt_profile(table, fields, self.remark)
        elif table.name == "vhost":
            for path, value, refused in adapt_vhost(table, self.remark):
                self.refused(table.given.get("groups"), path, refused, value)
        for key, value in table.values.items():
            attribute = entity.attributes.get(key) if entity is not None else None
            if attribute is not None and attribute.had_no_effect:
                text = "had no effect in Dispatch, and has none here"
                self.remark("ignored", table.line_of(key), _path(table, key), text, value)
            elif key not in fields:
                assert attribute is not None
                self.without(table, key, value, attribute)
            else:
                self.take(table, key, value, fields[key])
        if entity is not None:
            self.fill(table, entity, fields)
        if table.name == "autoLink":
            self.tell_apart(table)
        elif table.name == "address" and self.repeats_address(table):
            return
        if kept is not table:
            # the entity occurs once, but an old entity may add attributes to it: combine both
            kept.data = {**table.data, **kept.data}
            kept.values = {**table.values, **kept.values}
            kept.given = {**table.given, **kept.given}
        else:
            self.made.tables.append(table)
        self.place(kept, ours)

    def repeats_address(self, table: Table) -> bool:
        """Report an address with the prefix or pattern of an earlier one; return whether it has."""
        covered = table.data.get("prefix"), table.data.get("pattern")
        if covered not in self.addresses:
            self.addresses.add(covered)
            return False
        text = "repeats an earlier address, which takes precedence, as in Dispatch"
        self.remark("changed", table.section.line, format_path(table.place), text)
        return True

    def tell_apart(self, table: Table) -> None:
        """Give a repeated auto-link its own name: it is a separate link, as in Dispatch."""
        name = self.auto_link_names.name_for(table.data)
        if name is not None:
            table.data["name"] = name
            text = f"repeats an earlier auto-link; taken as another link, called {name}"
            self.remark("changed", table.section.line, format_path(table.place), text)

    def place(self, table: Table, ours: OurEntity) -> None:
        """Put a table in its place in the translated data."""
        data, here = self.made.data, table.place
        if not ours.repeated:
            self.single[table.name] = table
            data[table.name] = table.data
            here = (table.name,)
        else:
            listed = data.setdefault(table.name, [])
            here = (table.name, len(listed))
            listed.append(table.data)
        self.made.places[here] = table.place
        self.made.lines.setdefault((table.name,), table.section.line)
        self.made.lines[here] = table.section.line
        for key in table.data:
            self.made.lines[(*here, key)] = table.line_of(key)

    def take(self, table: Table, key: str, value: object, setting: Setting) -> None:
        """Translate an attribute that this router has."""
        path, line = _path(table, key), table.line_of(key)
        if key in _RIGHT and isinstance(value, int):
            low, high, below, above = _RIGHT[key]
            right = below if value < low else above if value > high else value
            if right != value:
                self.remark("changed", line, path, f"taken as {right}", value)
                value = right
        if key == "port" and isinstance(value, str):
            value = _SERVICES.get(value, value)
        if key == "openProperties":
            value, nulls = _without_nulls(value)
            if nulls:
                text = "null is left out: TOML has no null, and this router sends none"
                self.remark("missing", line, path, text)
        try:
            table.data[key] = to_file_value(setting.kind, value)
        except ValueNotAllowed as refused:
            shown = None if setting.kind.secret else value
            self.refused(table.given.get(key), path, refused, shown)

    def without(self, table: Table, key: str, value: object, attribute: facts.Attribute) -> None:
        """Report an attribute that this router does not have, if its value matters."""
        if value == attribute.default or value in ("", {}):
            return
        text = attribute.meaning or "this router has no such attribute"
        shown = None if _is_secret(key) else value
        self.remark(_sort(attribute.fate), table.line_of(key), _path(table, key), text, shown)

    def fill(self, table: Table, entity: facts.Entity, fields: Mapping[str, Setting]) -> None:
        """Set the defaults of Dispatch explicitly where they differ from those of this router."""
        defaults = {
            key: each.default for key, each in entity.attributes.items() if not each.had_no_effect
        } | dict(facts.OWN_DEFAULTS.get(table.name, {}))
        for key, default in defaults.items():
            if key in table.values or key not in fields or not table.has(key):
                continue
            own = table.own_default(key)
            if default is None or own is attrs.NOTHING:
                continue
            try:
                form = to_file_value(fields[key].kind, default)
            except ValueNotAllowed:
                continue
            if fields[key].kind.read(form) == own:
                continue
            table.data[key] = form
            if (table.name, key) not in self.said:
                self.said.add((table.name, key))
                text = f"taken as {format_value(form)}; here it would be {format_value(own)}"
                self.remark("default", 0, f"{table.name}.{key}", text)

    def finish(self) -> None:
        """Add the router entity if it is missing, and the log table."""
        if "router" not in self.single:
            self.entity("router", Section("router", 0, {}), is_rewritten=True)
        table = self.logs.table()
        if table is not None:
            self.made.tables.append(table)
            self.made.data["log"] = table.data
            self.made.lines.update(self.logs.lines)
            self.made.places[("log",)] = ("log",)
        self.made.log_file = self.logs.file
        self.made.mistakes.extend(
            Mistake(self.source, line, 0, path, format_value(value), "is not allowed", allowed)
            for line, path, value, allowed in self.logs.refused
        )

    def remark(self, sort: Sort, line: int, path: str, text: str, value: object = None) -> None:
        shown = "" if value is None else format_value(value)
        self.made.remarks.append(Remark(sort, line, path, shown, text))

    def mistake(self, line: int, path: str, problem: str, allowed: str = "") -> None:
        self.made.mistakes.append(Mistake(self.source, line, 0, path, "", problem, allowed))

    def unknown(self, line: int, path: str, name: str, known: Collection[str]) -> None:
        """Report a name that neither Dispatch nor this router knows."""
        what = "entity" if path == name else "attribute"
        near = difflib.get_close_matches(name, known, n=1)
        here = "" if near else f"known here: {', '.join(known)}"
        problem = f"is not a known {what}"
        mistake = Mistake(self.source, line, 0, path, "", problem, here, "".join(near))
        self.made.mistakes.append(mistake)

    def refused(
        self, given: GivenAttribute | None, path: str, refused: ValueNotAllowed, value: object
    ) -> None:
        """Report a value that is not allowed; `value` is None for a secret."""
        line = 0 if given is None else given.line
        text = "(a secret)" if value is None else format_value(value)
        self.made.mistakes.append(
            Mistake(self.source, line, 0, path, text, "is not allowed", f"give {refused.allowed}")
        )


def _fields(ours: OurEntity) -> dict[str, Setting]:
    return {file_name(field.name): setting_of(field) for field in attrs.fields(ours.settings)}


def _path(table: Table, key: str) -> str:
    return f"{format_path(table.place)}.{key}"


def _shown_name(table: Table) -> str:
    for key in ("name", "hostname", "prefix", "pattern", "address"):
        if key in table.values:
            return f"{format_path(table.place)} ({table.values[key]})"
    return format_path(table.place)


def _is_secret(key: str) -> bool:
    return "password" in key.lower()


def _sort(fate: facts.Fate) -> Sort:
    return "ignored" if fate == "harmless" else fate


def _without_nulls(value: object) -> tuple[object, int]:
    """Return a JSON value without its nulls, and the number of nulls."""
    if isinstance(value, dict):
        parts = {key: _without_nulls(item) for key, item in value.items() if item is not None}
        nulls = sum(item is None for item in value.values())
        return {key: part for key, (part, _) in parts.items()}, nulls + _count(parts.values())
    if isinstance(value, list):
        items = [_without_nulls(item) for item in value if item is not None]
        return [item for item, _ in items], sum(item is None for item in value) + _count(items)
    return value, 0


def _count(parts: Iterable[tuple[object, int]]) -> int:
    return sum(count for _, count in parts)
