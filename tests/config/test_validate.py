"""A configuration that a program made is held to the rules of the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.load import default_configuration
from router.config.mistakes import Finding
from router.config.model import AddressSettings, Configuration
from router.config.secret import Secret
from router.config.validate import find_mistakes


def mistakes(**fields: Any) -> list[str]:
    return [str(mistake) for mistake in find_mistakes(Configuration(**fields))]


def test_what_can_be_run_has_no_mistakes() -> None:
    assert find_mistakes(default_configuration()) == []
    assert find_mistakes(Configuration()) == []


def test_each_is_named_with_its_place_and_what_is_allowed() -> None:
    (taken,) = mistakes(
        listeners=(ListenerSettings(name="one", port=1), ListenerSettings(name="two", port=1))
    )
    assert taken == (
        "the configuration: listener[1].port (two): 1 is taken: listener[0] also listens on "
        "127.0.0.1:1; give another port or another host"
    )
    (unsaid,) = mistakes(addresses=(AddressSettings(name="a"),))
    assert "address[0] (a): does not say which addresses it covers" in unsaid


def test_a_listener_for_http_may_be_made_of_nothing_but_its_port() -> None:
    assert mistakes(listeners=(ListenerSettings(http=True, port=8080),)) == []
    (odd,) = mistakes(listeners=(ListenerSettings(http=True, link_capacity=5),))
    assert "linkCapacity (listener/127.0.0.1:5672): has no effect" in odd


def test_what_others_know_is_asked_too() -> None:
    def refuse(_: Configuration, data: Mapping[str, Any]) -> Iterator[Finding]:
        yield Finding(("router", "id"), f"is one of {sorted(data)}")

    (found,) = find_mistakes(Configuration(), [refuse])
    assert "router.id: is one of ['address'," in str(found)


def test_users_files_are_read(tmp_path: Path) -> None:
    file = tmp_path / "users"
    listener = ListenerSettings(sasl_mechanisms=("PLAIN",), users_file=file)
    assert "cannot be read" in mistakes(listeners=(listener,))[0]
    file.write_text("nobody\n", encoding="utf-8")
    (found,) = mistakes(listeners=(listener,))
    assert found.startswith(f"{file}:1: ")


def test_no_secret_is_told(tmp_path: Path) -> None:
    connector = ConnectorSettings(
        sasl_username="u", sasl_password=Secret("literal", "hidden"), sasl_mechanisms=("ANONYMOUS",)
    )
    found = mistakes(connectors=(connector,))
    assert len(found) == 2
    assert "hidden" not in "".join(found)
    missing = attrs.evolve(
        connector, sasl_password=Secret("file", str(tmp_path / "no")), sasl_mechanisms=("PLAIN",)
    )
    assert "is not available" in mistakes(connectors=(missing,))[0]
