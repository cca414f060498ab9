"""From parsed TOML to the model: names, kinds, and the path of everything that is refused."""

from __future__ import annotations

from typing import Any

import pytest

from router.config.mistakes import Finding, Path
from router.config.model import ENTITIES, Configuration
from router.config.structure import is_secret, structure


def test_nothing_is_the_defaults() -> None:
    assert structure({}).configuration == Configuration()


def test_names_are_turned_round_and_values_read() -> None:
    found = structure(
        {
            "router": {"id": "a", "memoryLimitBytes": 2**20},
            "listener": [{"port": "amqp"}, {"saslMechanisms": "PLAIN", "idleTimeoutSeconds": 3}],
        }
    )
    assert found.findings == ()
    assert found.configuration.router.memory_limit_bytes == 2**20
    assert found.configuration.listeners[0].port == 5672
    assert found.configuration.listeners[1].sasl_mechanisms == ("PLAIN",)
    assert found.configuration.listeners[1].idle_timeout_seconds == 3.0


@pytest.mark.parametrize(
    ("data", "path", "allowed"),
    [
        ({"router": 1}, ("router",), "give a table, [router]"),
        ({"router": [{}]}, ("router",), "give a table, [router]"),
        (
            {"listener": {}},
            ("listener",),
            "give a list of tables: write [[listener]], in two brackets",
        ),
        ({"listener": 1}, ("listener",), "give a list of tables, [[listener]]"),
        ({"listener": [{}, 1]}, ("listener", 1), "give a table, [[listener]]"),
        ({"listener": [{"http": 1}]}, ("listener", 0, "http"), "give true or false"),
    ],
)
def test_what_is_refused_has_its_path(data: dict[str, Any], path: Path, allowed: str) -> None:
    assert structure(data).findings == (Finding(path, "is not allowed", allowed, shown=True),)


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("maxframesize", "maxFrameSize"),
        ("max_frame_size", "maxFrameSize"),
        ("max-frame-size", "maxFrameSize"),
        ("MaxFrameSize", "maxFrameSize"),
        ("maxFramSize", "maxFrameSize"),
        ("prot", "port"),
        ("saslMechanism", "saslMechanisms"),
        ("idleTimeout", "idleTimeoutSeconds"),
    ],
)
def test_an_unknown_attribute_has_a_nearest(key: str, nearest: str) -> None:
    [finding] = structure({"listener": [{key: 1}]}).findings
    assert finding == Finding(("listener", 0, key), "is not a known attribute", nearest=nearest)


def test_what_is_near_to_nothing_is_told_what_there_is() -> None:
    [finding] = structure({"log": {"zzz": 1}}).findings
    assert finding.allowed == "known here: level, levels, format, linesPerSecond"
    [finding] = structure({"zzz": {}}).findings
    assert finding == Finding(
        ("zzz",),
        "is not a known entity",
        f"known here: {', '.join(entity.name for entity in ENTITIES)}",
    )


def test_everything_is_found_at_once() -> None:
    data = {
        "router": {"id": "", "mode": "inner"},
        "listener": [{"port": -1, "x": 1, "y": 2}, {}, {"role": 1}],
        "log": 1,
        "lisener": [],
    }
    assert {finding.path for finding in structure(data).findings} == {
        ("router", "id"),
        ("router", "mode"),
        ("listener", 0, "port"),
        ("listener", 0, "x"),
        ("listener", 0, "y"),
        ("listener", 2, "role"),
        ("log",),
        ("lisener",),
    }


def test_only_a_password_is_a_secret() -> None:
    assert is_secret(("connector", 3, "saslPassword"))
    assert not is_secret(("connector", 3, "saslUsername"))
    assert not is_secret(("connector", 3))
    assert not is_secret(())
