"""Settings of listeners and connectors are applied to their connections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from router import __version__
from router.amqp.redirects import Redirect
from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.redirects import RedirectSettings
from router.config.secret import Secret, SecretUnavailable
from router.net.endpoints import (
    UNSENT_LIMIT_BYTES,
    configured_redirects,
    connector_settings,
    listener_settings,
)

COMMON: dict[str, Any] = {
    "max_frame_size": 1024,
    "max_sessions": 3,
    "max_session_frames": 77,
    "link_capacity": 5,
    "connection_buffer_bytes": 100_000,
    "idle_timeout_seconds": 9.0,
    "open_properties": {"site": "here"},
}
TOLD: dict[str, Any] = {
    "container_id": "router",
    "max_frame_size": 1024,
    "channel_max": 2,
    "window_limit": 77,
    "link_capacity": 5,
    "held_limit_bytes": 100_000,
    "unsent_limit_bytes": UNSENT_LIMIT_BYTES,
    "idle_timeout_s": 9.0,
    "properties": {"product": "trioute", "version": __version__, "site": "here"},
}


def told(settings: Any, names: Any) -> dict[str, Any]:
    """Return the settings of these names."""
    return {name: getattr(settings, name) for name in names}


def test_a_listener_tells_all() -> None:
    listener = ListenerSettings(**COMMON, initial_handshake_timeout_seconds=4.0)
    settings = listener_settings("router", listener)
    assert told(settings, TOLD) == TOLD
    assert settings.handshake_timeout_s == 4.0
    assert settings.sasl_mechanisms == ("ANONYMOUS",)
    assert not settings.sasl_required


@pytest.mark.parametrize(
    ("strip", "honours", "shows"),
    [("in", False, True), ("out", True, False), ("both", False, False), ("no", True, True)],
)
def test_annotations_are_believed_and_shown_where_they_are_not_stripped(
    strip: Any, honours: bool, shows: bool
) -> None:
    connector = ConnectorSettings(strip_annotations=strip)
    for settings in (
        listener_settings("router", ListenerSettings(strip_annotations=strip)),
        connector_settings("router", connector, connector.host),
    ):
        assert (settings.honours_annotations, settings.shows_annotations) == (honours, shows)


def test_whoever_has_to_prove_himself_is_not_offered_anonymous(tmp_path: Path) -> None:
    settings = listener_settings(
        "router",
        ListenerSettings(
            sasl_mechanisms=("ANONYMOUS", "PLAIN"),
            authenticate_peer=True,
            users_file=tmp_path / "users",
        ),
    )
    assert settings.sasl_mechanisms == ("PLAIN",)
    assert settings.sasl_required


def test_clients_of_azure_find_their_mechanism_where_tokens_are_accepted() -> None:
    def offered(**fields: Any) -> tuple[str, ...]:
        listener = ListenerSettings(sasl_mechanisms=("ANONYMOUS", "PLAIN"), **fields)
        return listener_settings("router", listener).sasl_mechanisms

    assert offered() == ("ANONYMOUS", "PLAIN")
    assert offered(claims="c") == ("ANONYMOUS", "PLAIN", "MSSBCBS")
    assert offered(claims="c", authenticate_peer=True) == ("PLAIN",)


def test_a_connector_tells_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTER_PASSWORD", "first")
    connector = ConnectorSettings(
        host="broker",
        sasl_username="ada",
        sasl_password=Secret.parse("env:ROUTER_PASSWORD"),
        **COMMON,
    )
    settings = connector_settings("router", connector, connector.host)
    assert told(settings, TOLD) == TOLD
    assert (settings.hostname, settings.sasl_username) == ("broker", "ada")
    assert settings.sasl_password == "first"
    assert "first" not in repr(settings)
    monkeypatch.setenv("ROUTER_PASSWORD", "second")
    assert connector_settings("router", connector, connector.host).sasl_password == "second"
    monkeypatch.delenv("ROUTER_PASSWORD")
    with pytest.raises(SecretUnavailable):
        connector_settings("router", connector, connector.host)


def test_a_password_file_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "password"
    connector = ConnectorSettings(sasl_username="ada", sasl_password=Secret.parse(f"file:{file}"))
    for password in ("first", "second"):
        file.write_text(f"{password}\n", encoding="utf-8")
        assert connector_settings("router", connector, connector.host).sasl_password == password


def test_a_connector_that_was_redirected_calls_the_container_by_its_name() -> None:
    connector = ConnectorSettings(host="broker")
    assert connector_settings("router", connector, "broker-2").hostname == "broker-2"


@pytest.mark.parametrize(
    ("direction", "sender", "receiver"),
    [("in", True, False), ("out", False, True), ("both", True, True)],
)
def test_redirects_have_their_direction(direction: Any, sender: bool, receiver: bool) -> None:
    redirects = configured_redirects(
        [RedirectSettings(pattern="a/*", direction=direction, to_network_host="h")]
    )
    assert (redirects.error_for_link("a/b", "a/b", is_sender=True) is not None) is sender
    assert (redirects.error_for_link("a/b", "a/b", is_sender=False) is not None) is receiver
    assert redirects.error_for_link("a", "a", is_sender=sender) is None


def test_redirects_lead_where_they_are_configured_to() -> None:
    redirects = configured_redirects(
        [
            RedirectSettings(prefix="a", to_network_host="h", to_address="b"),
            RedirectSettings(hostname="x", to_network_host="h", to_hostname="y", to_port=7),
        ]
    )
    of_link = redirects.error_for_link("a/b", "a/b", is_sender=True)
    of_connection = redirects.error_for_connection("X")
    assert of_link is not None
    assert of_connection is not None
    assert of_link.info == Redirect("h", "h", 5672, "b").info()
    assert of_connection.info == Redirect("y", "h", 7).info()
