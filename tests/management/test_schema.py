"""Attributes that are configured have the names and meanings of the configuration's model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from router.config.model import ConnectorSettings, ListenerSettings
from router.config.secret import Secret
from router.config.setting import file_name, setting_of
from router.management.schema import (
    ENTITY,
    OPERATIONAL,
    Attribute,
    EntityType,
    long_name,
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


@pytest.mark.parametrize("settings", [ListenerSettings, ConnectorSettings])
def test_settings_are_attributes_under_their_names(settings: type[attrs.AttrsInstance]) -> None:
    made = {each.name: each for each in settings_attributes(settings)}
    fields = {file_name(field.name): field for field in attrs.fields(settings)}
    # the name is an attribute of every entity
    assert made.keys() == fields.keys() - {"name"}
    for name, attribute in made.items():
        assert attribute.meaning == setting_of(fields[name]).description


def test_settings_are_told_in_the_types_that_dispatch_has() -> None:
    listener = ListenerSettings(
        host="::1", port=5671, idle_timeout_seconds=8.0, sasl_mechanisms=("PLAIN", "ANONYMOUS")
    )
    told: dict[str, Any] = {}
    kinds = {}
    for each in settings_attributes(ListenerSettings):
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
    told = {each.name: each.read(connector) for each in settings_attributes(ConnectorSettings)}
    assert told["saslPassword"] is None
    assert "hush" not in str(told)


def test_values_that_amqp_does_not_know_become_text() -> None:
    assert wire_value("users_file", Path("/a/b")) == "/a/b"
    assert wire_value("some_seconds", 0.5) == 0.5
    assert wire_value("anything", None) is None
