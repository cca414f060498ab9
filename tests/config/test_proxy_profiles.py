"""HTTP proxies in the configuration."""

from __future__ import annotations

from pathlib import Path

from router.config.load import parse_configuration


def test_a_proxy_is_read_and_its_password_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("sesame", encoding="utf-8")
    text = """
    [[proxyProfile]]
    name = "p"
    host = "proxy.example"
    port = 3128
    username = "u"
    password = "file:password"
    [[connector]]
    proxyProfile = "p"
    """
    configuration = parse_configuration(text, source="f", folder=tmp_path)
    (proxy,) = configuration.proxy_profiles
    assert (proxy.name, proxy.host, proxy.port) == ("p", "proxy.example", 3128)
    assert proxy.password is not None
    assert proxy.password.reveal() == "sesame"
    assert "sesame" not in repr(configuration)
    assert configuration.connectors[0].proxy_profile == "p"
