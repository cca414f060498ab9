"""The mechanisms that a connector uses unless it is told."""

from __future__ import annotations

from router.config.connectors import ConnectorSettings


def test_mechanisms_follow_from_user_and_profile() -> None:
    scram = ("SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1")
    assert ConnectorSettings().sasl_mechanisms == ("ANONYMOUS",)
    assert ConnectorSettings(sasl_username="u").sasl_mechanisms == (*scram, "PLAIN")
    assert ConnectorSettings(ssl_profile="p").sasl_mechanisms == ("EXTERNAL", "ANONYMOUS")
