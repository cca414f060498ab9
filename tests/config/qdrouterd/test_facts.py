"""The facts about Dispatch are consistent, and describe every loss."""

from __future__ import annotations

import attrs

from router.config.model import ENTITIES as OURS
from router.config.qdrouterd import facts
from router.config.qdrouterd.values import read_value
from router.config.setting import file_name


def test_defaults_are_values_of_their_kind() -> None:
    for entity in facts.ENTITIES.values():
        for attribute in entity.attributes.values():
            if attribute.default is not None:
                assert read_value(attribute.kind, attribute.default) == attribute.default


def test_old_names_are_nobodys_names() -> None:
    for entity in facts.ENTITIES.values():
        old = [each.old for each in entity.attributes.values() if each.old]
        assert len(set(old)) == len(old)
        assert not set(old) & set(entity.attributes)


def test_every_loss_has_its_meaning() -> None:
    ours = {each.name: each for each in OURS}
    for name, entity in facts.ENTITIES.items():
        if name == "log":
            continue
        if name not in ours:
            assert entity.meaning, name
            continue
        fields = {file_name(field.name) for field in attrs.fields(ours[name].settings)}
        for key, attribute in entity.attributes.items():
            if key not in fields and not attribute.had_no_effect:
                assert attribute.meaning or attribute.default is not None, f"{name}.{key}"


def test_what_is_said_of_attributes_of_ours_names_them() -> None:
    ours = {each.name: each for each in OURS}
    for name, defaults in facts.OWN_DEFAULTS.items():
        fields = {file_name(field.name) for field in attrs.fields(ours[name].settings)}
        assert set(defaults) <= fields
