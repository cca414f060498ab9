"""Metrics of the router's certificates and revocation lists."""

from __future__ import annotations

from typing import Final

from router.metrics.metric import Metric

CERTIFICATES: Final = (
    Metric(
        "trioute_certificate_expiry_timestamp_seconds",
        "gauge",
        "When the certificate of a TLS profile expires, in seconds since 1970.",
        ("profile",),
        lambda r: (((name,), at) for name, at in r.certificate_expiries.items()),
    ),
    Metric(
        "trioute_crl_expiry_timestamp_seconds",
        "gauge",
        "When the revocation list of a TLS profile expires (its next update), in seconds since "
        "1970. From then on, all certificates of its authority are refused.",
        ("profile",),
        lambda r: (((name,), at) for name, at in r.crl_expiries.items()),
    ),
)
