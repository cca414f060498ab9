"""The model as a whole: described, unambiguous, with defaults that hold to their own rules."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.model import ENTITIES, AddressSettings, Configuration, Entity
from router.config.secret import Secret
from router.config.setting import Setting, file_name, setting_of

FIELDS = {
    f"{entity.name}.{file_name(field.name)}": setting_of(field)
    for entity in ENTITIES
    for field in attrs.fields(entity.settings)
}


def test_every_entity_is_an_attribute_of_the_configuration() -> None:
    assert [entity.attribute for entity in ENTITIES] == [
        field.name for field in attrs.fields(Configuration)
    ]


@pytest.mark.parametrize("entity", ENTITIES, ids=lambda entity: entity.name)
def test_every_entity_says_what_it_is(entity: Entity) -> None:
    assert (entity.settings.__doc__ or "").endswith(".")


@pytest.mark.parametrize("setting", FIELDS.values(), ids=FIELDS)
def test_every_attribute_says_what_it_is(setting: Setting) -> None:
    assert setting.description[0].isupper()
    assert setting.description.endswith(".")
    assert setting.kind.words


@pytest.mark.parametrize("setting", FIELDS.values(), ids=FIELDS)
def test_no_words_break_the_table_of_the_reference(setting: Setting) -> None:
    for text in (setting.description, setting.default, setting.kind.words):
        assert "|" not in text
        assert "\n" not in text


@pytest.mark.parametrize("entity", ENTITIES, ids=lambda entity: entity.name)
def test_a_default_that_is_no_plain_value_is_put_in_words(entity: Entity) -> None:
    for field in attrs.fields(entity.settings):
        plain = isinstance(field.default, (str, int, float, tuple))
        assert plain != bool(setting_of(field).default), field.name


@pytest.mark.parametrize("path", FIELDS)
def test_a_name_with_a_unit_has_that_unit(path: str) -> None:
    for unit in ("Bytes", "Seconds", "Frames"):
        if path.endswith(unit):
            assert FIELDS[path].kind.unit == unit.lower()


def test_everything_has_a_default() -> None:
    configuration = Configuration(
        listeners=(ListenerSettings(),),
        connectors=(ConnectorSettings(),),
        addresses=(AddressSettings(),),
    )
    assert configuration.listeners[0].port == 5672
    assert configuration.router.id is None


def test_names_come_from_where_an_entity_leads() -> None:
    assert ListenerSettings(host="::1", port=7).name == "listener/::1:7"
    assert ConnectorSettings(host="h").name == "connector/h:5672"
    assert AddressSettings(prefix="a").name == "router.config.address/a"
    assert AddressSettings(pattern="a/#").name == "router.config.address/a/#"


def test_the_longest_names_that_are_made_up_are_allowed() -> None:
    assert ConnectorSettings(host="h" * 255, port=65535).name.endswith("h:65535")
    assert AddressSettings(prefix="a" * 255).name.endswith("/" + "a" * 255)


def test_a_connector_with_a_user_prefers_scram() -> None:
    assert ConnectorSettings().sasl_mechanisms == ("ANONYMOUS",)
    scram = ("SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1")
    assert ConnectorSettings(sasl_username="u").sasl_mechanisms == (*scram, "PLAIN")


def test_a_password_does_not_show() -> None:
    secret = Secret.parse("s3cret")
    assert "s3cret" not in repr(ConnectorSettings(sasl_username="u", sasl_password=secret))


def test_a_program_is_held_to_the_same_rules() -> None:
    with pytest.raises(ValueError, match="max_frame_size"):
        ListenerSettings(max_frame_size=511)
    assert ListenerSettings(users_file=Path("users")).users_file == Path("users")
