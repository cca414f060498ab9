"""A configuration that was written is read again unchanged."""

from __future__ import annotations

import string
import tomllib
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.load import default_configuration, parse_configuration
from router.config.model import ENTITIES, AddressSettings, Configuration
from router.config.open_properties import RESERVED_KEYS, RESERVED_PREFIXES
from router.config.redirects import RedirectSettings
from router.config.secret import Secret
from router.config.structure import structure
from router.config.write import data_of, file_value, format_configuration

TEXTS = st.text(
    st.characters(exclude_categories=("C", "Z"), include_characters=" \"'\\#"), min_size=1
)
WORDS = st.text(string.ascii_letters + string.digits + "-_\"'\\", min_size=1, max_size=20)
PROPERTIES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, width=64).filter(lambda value: abs(value) != float("inf"))
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OPEN_PROPERTIES = st.dictionaries(
    WORDS.filter(lambda word: word not in RESERVED_KEYS and not word.startswith(RESERVED_PREFIXES)),
    PROPERTIES,
)
SECRETS = st.builds(Secret, st.just("literal"), st.text(min_size=1)) | st.builds(
    Secret, st.just("env"), WORDS
)
SECONDS = st.floats(0.001, 4_000_000).map(abs)
LISTENERS = st.builds(
    ListenerSettings,
    name=TEXTS,
    host=WORDS,
    port=st.integers(0, 65535),
    sasl_mechanisms=st.sampled_from([("ANONYMOUS",), ("PLAIN",), ("PLAIN", "ANONYMOUS")]),
    users_file=st.none() | WORDS.map(lambda name: Path("/etc/trioute") / name),
    idle_timeout_seconds=SECONDS,
    open_properties=OPEN_PROPERTIES,
    http=st.booleans(),
)
CONNECTORS = st.builds(
    ConnectorSettings,
    name=TEXTS,
    sasl_username=st.none() | TEXTS,
    sasl_password=st.none() | SECRETS,
    redirect_hosts=st.just(()) | st.just(("broker-2", "::1")),
    open_properties=OPEN_PROPERTIES,
)
ADDRESSES = st.builds(
    AddressSettings,
    prefix=st.none() | st.just("a/b"),
    pattern=st.none() | st.just("*/x/#"),
    name=TEXTS,
    distribution=st.sampled_from(["closest", "balanced", "multicast", "unavailable"]),
    redeliver=st.booleans(),
)
CONFIGURATIONS = st.builds(
    Configuration,
    listeners=st.lists(LISTENERS, max_size=3).map(tuple),
    connectors=st.lists(CONNECTORS, max_size=3).map(tuple),
    addresses=st.lists(ADDRESSES, max_size=3).map(tuple),
)


@given(CONFIGURATIONS)
def test_every_configuration_is_read_as_it_was_written(configuration: Configuration) -> None:
    found = structure(tomllib.loads(format_configuration(configuration)))
    assert found.findings == ()
    assert found.configuration == configuration
    assert data_of(found.configuration) == data_of(configuration)


def test_the_loader_reads_what_is_written(tmp_path: Path) -> None:
    configuration = default_configuration()
    text = format_configuration(configuration)
    assert parse_configuration(text, source="written", folder=tmp_path) == configuration


@pytest.mark.parametrize("entity", ENTITIES, ids=lambda entity: entity.name)
def test_what_is_at_its_default_is_not_written(entity: Any) -> None:
    assert set(data_of(Configuration())) == set()
    if entity.repeated:
        one: dict[str, Any] = {entity.attribute: (entity.settings(),)}
        configuration = attrs.evolve(Configuration(), **one)
        (table,) = data_of(configuration)[entity.name]
        assert set(table) <= {"host", "port", "distribution"}


def test_nothing_is_written_twice_as_long_as_it_is_said() -> None:
    redirect = RedirectSettings(prefix="a", to_network_host="h")
    assert data_of(Configuration(redirects=(redirect,))) == {
        "redirect": [{"prefix": "a", "toNetworkHost": "h"}]
    }


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        (Secret("literal", "x"), "literal:x"),
        (Secret("literal", "env:X"), "literal:env:X"),
        (Secret("env", "X"), "env:X"),
        (Secret("file", "/x/y"), "file:/x/y"),
    ],
)
def test_a_secret_is_written_so_that_it_stays_the_same(secret: Secret, text: str) -> None:
    assert file_value(secret) == text
    assert Secret.parse(text) == secret


def test_paths_are_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert file_value(Path("users")) == str(tmp_path / "users")
    assert file_value(Secret("file", "password")) == f"file:{tmp_path}/password"
