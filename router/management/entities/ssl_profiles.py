"""Configured TLS profiles, and when their certificates expire."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import attrs

from router.management.entities.configured import named_type
from router.management.schema import Attribute, LiveEntity, live_reader
from router.management.views import RouterView


@attrs.frozen
class CertificateView:
    """View of a profile's certificate; `expires_at` and `now` are in seconds since 1970."""

    expires_at: float
    now: float


def _expiry(certificate: CertificateView) -> str:
    moment = datetime.fromtimestamp(certificate.expires_at, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


SSL_PROFILE: Final = named_type(
    "sslProfile",
    "Certificates and rules for TLS.",
    "sslProfile",
    (
        Attribute(
            "certificateExpires",
            "string",
            "When its certificate expires, in UTC; null without a certificate.",
            live_reader(CertificateView, _expiry),
        ),
        Attribute(
            "certificateSeconds",
            "integer",
            "Seconds until its certificate expires; negative afterwards.",
            live_reader(CertificateView, lambda view: int(view.expires_at - view.now)),
        ),
    ),
)


def ssl_profiles(router: RouterView) -> Iterator[LiveEntity]:
    """Yield the configured TLS profiles, with the expiry of their certificates."""
    now = time.time()
    expiries = router.observed.certificate_expiries
    for profile in router.configuration.ssl_profiles:
        at = expiries.get(str(profile.name))
        yield LiveEntity(profile, None if at is None else CertificateView(at, now))
