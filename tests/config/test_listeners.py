"""Defaults of listeners that depend on other attributes."""

from __future__ import annotations

import pytest

from router.config.listeners import ClientCertificate, ListenerSettings


def test_tls_is_required_where_there_is_a_profile() -> None:
    assert not ListenerSettings().needs_tls
    assert ListenerSettings(ssl_profile="p").needs_tls
    assert not ListenerSettings(ssl_profile="p", require_ssl=False).needs_tls
    assert ListenerSettings(ssl_profile="p", require_ssl=False, require_encryption=True).needs_tls


@pytest.mark.parametrize(
    ("mechanisms", "asks"), [(("ANONYMOUS",), "none"), (("PLAIN", "EXTERNAL"), "required")]
)
def test_a_certificate_is_required_for_external(mechanisms: tuple[str, ...], asks: str) -> None:
    listener = ListenerSettings(ssl_profile="p", sasl_mechanisms=mechanisms)  # type: ignore[arg-type]
    assert listener.client_certificate == asks


@pytest.mark.parametrize("asks", ["required", "optional", "none"])
def test_who_says_what_to_ask_for_is_obeyed(asks: ClientCertificate) -> None:
    listener = ListenerSettings(
        ssl_profile="p", sasl_mechanisms=("EXTERNAL",), client_certificate=asks
    )
    assert listener.client_certificate == asks


def test_without_a_profile_nothing_is_asked_for() -> None:
    listener = ListenerSettings()
    assert (listener.require_ssl, listener.client_certificate) == (False, "none")
    assert listener.sni_ssl_profiles == ()
