"""Attributes that are configured have the names and meanings of the configuration's model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from router.config.connectors import ConnectorSettings
from router.config.differences import RESTART_ONLY
from router.config.listeners import ListenerSettings
from router.config.model import ENTITIES, Entity
from router.config.secret import Secret
from router.config.setting import file_name, setting_of
from router.management.names import long_name
from router.management.schema import (
    ENTITY,
    OPERATIONAL,
    Attribute,
    EntityType,
    configured_entity,
    settings_attributes,
    wire_value,
)


@pytest.mark.parametrize(
    ("name", "long"),
    [
        ("router", "org.apache.qpid.dispatch.router"),
        ("org.apache.qpid.dispatch.router", "org.apache.qpid.dispatch.router"),
        ("org.amqp.management", "org.amqp.management"),
    ],
)
def test_types_have_long_names(name: str, long: str) -> None:
    assert long_name(name) == long


def test_a_type_knows_its_attributes_and_bases() -> None:
    attribute = Attribute("key", "string", "Its key.", lambda each: each)
    made = EntityType("thing", "A thing.", OPERATIONAL, (attribute,))
    assert made.attribute("key") is attribute
    assert made.attribute("lock") is None
    assert made.bases == [OPERATIONAL, ENTITY]
    assert made.long_name == "org.apache.qpid.dispatch.thing"


@pytest.mark.parametrize("entity", ENTITIES, ids=lambda each: str(each.name))
def test_settings_are_attributes_under_their_names(entity: Entity) -> None:
    made = {each.name: each for each in settings_attributes(entity)}
    fields = {file_name(field.name): field for field in attrs.fields(entity.settings)}
    # the name is an attribute of every entity
    assert made.keys() == fields.keys() - {"name"}
    for name, attribute in made.items():
        setting = setting_of(fields[name])
        assert attribute.meaning == setting.description
        assert attribute.setting is not None
        assert attribute.setting.allowed == setting.kind.words
        assert attribute.setting.default
        assert attribute.can_be_created_with
        fixed = RESTART_ONLY.get((entity.name, fields[name].name), "")
        assert (attribute.setting.why_fixed, attribute.can_be_updated) == (fixed, not fixed)


def test_what_has_no_default_is_required() -> None:
    required = {
        (entity.name, each.name)
        for entity in ENTITIES
        for each in settings_attributes(entity)
        if each.setting is not None and each.setting.is_required
    }
    assert required == {
        ("linkRoute", "direction"),
        ("redirect", "toNetworkHost"),
        ("proxyProfile", "host"),
        ("proxyProfile", "port"),
        ("autoLink", "address"),
        ("autoLink", "direction"),
        ("binding", "exchangeName"),
        ("binding", "nextHopAddress"),
        ("exchange", "address"),
        ("plugin", "plugin"),
        ("vhost", "hostname"),
        ("sharedAccessKey", "key"),
    }


def test_what_only_a_restart_changes_exists() -> None:
    for entity, name in RESTART_ONLY:
        assert name in attrs.fields_dict(configured_entity(entity).settings)


def test_settings_are_told_in_the_types_that_dispatch_has() -> None:
    listener = ListenerSettings(
        host="::1", port=5671, idle_timeout_seconds=8.0, sasl_mechanisms=("PLAIN", "ANONYMOUS")
    )
    told: dict[str, Any] = {}
    kinds = {}
    for each in settings_attributes(configured_entity("listener")):
        told[each.name] = each.read(listener)
        kinds[each.name] = each.kind
    assert told["port"] == "5671"
    assert told["idleTimeoutSeconds"] == 8
    assert type(told["idleTimeoutSeconds"]) is int
    assert told["saslMechanisms"] == "PLAIN ANONYMOUS"
    assert told["usersFile"] is None
    assert told["openProperties"] == {}
    assert told["authenticatePeer"] is False
    words = {"string": str, "integer": int, "boolean": bool, "map": dict}
    for name, value in told.items():
        assert value is None or type(value) is words[kinds[name]], name


def test_passwords_are_told_to_nobody() -> None:
    connector = ConnectorSettings(sasl_username="u", sasl_password=Secret.parse("literal:hush"))
    attributes = settings_attributes(configured_entity("connector"))
    told = {each.name: each.read(connector) for each in attributes}
    assert told["saslPassword"] is None
    assert "hush" not in str(told)


def test_values_that_amqp_does_not_know_become_text() -> None:
    assert wire_value("users_file", Path("/a/b")) == "/a/b"
    assert wire_value("some_seconds", 0.5) == 0.5
    assert wire_value("anything", None) is None
