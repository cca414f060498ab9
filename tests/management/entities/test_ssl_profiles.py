"""Profiles as management shows them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from router.config.model import Configuration
from router.config.secret import Secret
from router.config.ssl_profiles import SslProfileSettings
from router.management.entities.ssl_profiles import SSL_PROFILE, ExpiryView, ssl_profiles
from router.management.schema import LiveEntity
from router.management.views import RouterView

from support.certificates import Authority
from support.loopback import running_node


def values_of(entity: object) -> dict[str, object]:
    """Return the values of a profile's attributes by name."""
    return {each.name: each.read(entity) for each in SSL_PROFILE.attributes}


async def test_a_profile_shows_its_expiries_and_not_its_password(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    profile = authority.profile(password=None, crl_file=authority.revoke())
    configuration = Configuration(ssl_profiles=(profile,))
    async with running_node(configuration) as running:
        hub = running.node.hub
        view = RouterView("router", "host", configuration, hub, 0.0)
        [entity] = ssl_profiles(view)
        values = values_of(entity)
    assert values["name"] == values["identity"] == "tls"
    assert values["certFile"] == str(profile.cert_file)
    assert str(values["certificateExpires"]).endswith("Z")
    seconds = values["certificateSeconds"]
    assert isinstance(seconds, int)
    assert seconds > 0
    left = values["crlSeconds"]
    assert isinstance(left, int)
    assert 0 < left <= 86400


def test_a_profile_without_a_certificate_has_no_expiry(tmp_path: Path) -> None:
    values = values_of(Authority(tmp_path).profile(password=Secret.parse("s3cret")))
    assert values["certificateExpires"] is None
    assert "s3cret" not in str(values)


@pytest.mark.parametrize(("now", "seconds"), [(1.8e9 - 90.5, 90), (1.8e9, 0), (1.8e9 + 90.5, -90)])
def test_an_expiry_is_a_moment_in_utc_and_what_is_left_of_the_time(
    now: float, seconds: int
) -> None:
    profile = SslProfileSettings(name="p")
    values = values_of(LiveEntity(profile, ExpiryView(1.8e9, None, now)))
    assert values["certificateExpires"] == "2027-01-15T08:00:00Z"
    assert values["certificateSeconds"] == seconds
    assert values["crlExpires"] is values["crlSeconds"] is None
    values = values_of(LiveEntity(profile, ExpiryView(None, 1.8e9, now)))
    assert values["crlExpires"] == "2027-01-15T08:00:00Z"
    assert values["crlSeconds"] == seconds
    assert values["certificateExpires"] is values["certificateSeconds"] is None


async def test_each_profile_has_the_expiry_of_its_own_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    late = authority.issue("localhost", not_after=datetime(2040, 1, 2, 3, 4, 5, tzinfo=UTC))
    configuration = Configuration(
        ssl_profiles=(
            SslProfileSettings(name="trust", ca_cert_file=authority.ca_file),
            authority.profile("late", cert_file=late),
        )
    )
    async with running_node(configuration) as running:
        view = RouterView("router", "host", configuration, running.node.hub, 0.0)
        found = [values_of(entity) for entity in ssl_profiles(view)]
    assert {values["name"]: values["certificateExpires"] for values in found} == {
        "trust": None,
        "late": "2040-01-02T03:04:05Z",
    }
