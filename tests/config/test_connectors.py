"""The mechanisms that a connector uses unless it is told."""

from __future__ import annotations

from router.config.connectors import ConnectorSettings


def test_mechanisms_follow_from_user_and_profile() -> None:
    scram = ("SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1")
    assert ConnectorSettings().sasl_mechanisms == ("ANONYMOUS",)
    assert ConnectorSettings(sasl_username="u").sasl_mechanisms == (*scram, "PLAIN")
    assert ConnectorSettings(ssl_profile="p").sasl_mechanisms == ("EXTERNAL", "ANONYMOUS")


def test_a_user_logs_in_by_password_even_with_a_profile() -> None:
    connector = ConnectorSettings(sasl_username="u", ssl_profile="p")
    assert connector.sasl_mechanisms == ConnectorSettings(sasl_username="u").sasl_mechanisms


def test_who_says_which_mechanisms_to_use_is_obeyed() -> None:
    for profile in (None, "p"):
        connector = ConnectorSettings(ssl_profile=profile, sasl_mechanisms=("PLAIN",))
        assert connector.sasl_mechanisms == ("PLAIN",)


def test_a_server_is_verified_unless_it_is_said_otherwise() -> None:
    connector = ConnectorSettings(ssl_profile="p")
    assert (connector.verify_hostname, connector.ssl_upgrade) == (True, False)
