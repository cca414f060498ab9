"""Configured TLS profiles, and when their certificates and revocation lists expire."""

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
class ExpiryView:
    """View of when a profile's certificate and revocation list expire.

    All times are in seconds since 1970; None without a certificate or list.
    """

    certificate: float | None
    crl: float | None
    now: float

    @property
    def certificate_seconds(self) -> int | None:
        """Return the seconds until the certificate expires."""
        return None if self.certificate is None else int(self.certificate - self.now)

    @property
    def crl_seconds(self) -> int | None:
        """Return the seconds until the revocation list expires."""
        return None if self.crl is None else int(self.crl - self.now)


def _moment(at: float | None) -> str | None:
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


SSL_PROFILE: Final = named_type(
    "sslProfile",
    "Certificates and rules for TLS.",
    "sslProfile",
    (
        Attribute(
            "certificateExpires",
            "string",
            "When its certificate expires, in UTC; null without a certificate.",
            live_reader(ExpiryView, lambda view: _moment(view.certificate)),
        ),
        Attribute(
            "certificateSeconds",
            "integer",
            "Seconds until its certificate expires; negative afterwards.",
            live_reader(ExpiryView, lambda view: view.certificate_seconds),
        ),
        Attribute(
            "crlExpires",
            "string",
            "When its revocation list expires, in UTC: from then on, the certificates of the "
            "list's authority are refused. Null without a list.",
            live_reader(ExpiryView, lambda view: _moment(view.crl)),
        ),
        Attribute(
            "crlSeconds",
            "integer",
            "Seconds until its revocation list expires; negative afterwards.",
            live_reader(ExpiryView, lambda view: view.crl_seconds),
        ),
    ),
)


def ssl_profiles(router: RouterView) -> Iterator[LiveEntity]:
    """Yield the configured TLS profiles, with the expiry of their certificates and lists."""
    now = time.time()
    certificates, lists = router.observed.certificate_expiries, router.observed.crl_expiries
    for profile in router.configuration.ssl_profiles:
        name = str(profile.name)
        yield LiveEntity(profile, ExpiryView(certificates.get(name), lists.get(name), now))
