"""Profiles as management shows them."""

from __future__ import annotations

from pathlib import Path

from router.config.model import Configuration
from router.config.secret import Secret
from router.management.entities.ssl_profiles import SSL_PROFILE, ssl_profiles
from router.management.views import RouterView

from support.certificates import Authority
from support.loopback import running_node


async def test_a_profile_shows_its_expiry_and_not_its_password(tmp_path: Path) -> None:
    profile = Authority(tmp_path).profile(password=None)
    configuration = Configuration(ssl_profiles=(profile,))
    async with running_node(configuration) as running:
        hub = running.node.hub
        view = RouterView("router", "host", configuration, hub, 0.0)
        [entity] = ssl_profiles(view)
        values = {each.name: each.read(entity) for each in SSL_PROFILE.attributes}
    assert values["name"] == values["identity"] == "tls"
    assert values["certFile"] == str(profile.cert_file)
    assert str(values["certificateExpires"]).endswith("Z")
    seconds = values["certificateSeconds"]
    assert isinstance(seconds, int)
    assert seconds > 0


def test_a_profile_without_a_certificate_has_no_expiry(tmp_path: Path) -> None:
    secret = Authority(tmp_path).profile(password=Secret.parse("s3cret"))
    values = {each.name: each.read(secret) for each in SSL_PROFILE.attributes}
    assert values["certificateExpires"] is None
    assert "s3cret" not in str(values)
