"""When certificates expire, as a metric."""

from __future__ import annotations

from support.readings import idle_hub, reading_of, samples

NAME = "trioute_certificate_expiry_timestamp_seconds"
CRL_NAME = "trioute_crl_expiry_timestamp_seconds"


def test_each_profile_has_its_expiry() -> None:
    reading = reading_of(idle_hub())
    reading.certificate_expiries = {"a": 1.8e9, "b": 1.9e9}
    assert samples(reading, NAME) == {("a",): 1.8e9, ("b",): 1.9e9}


def test_without_certificates_there_are_no_samples() -> None:
    assert samples(reading_of(idle_hub()), NAME) == {}


def test_each_profile_has_the_expiry_of_its_revocation_list() -> None:
    reading = reading_of(idle_hub())
    assert samples(reading, CRL_NAME) == {}
    reading.crl_expiries = {"a": 1.7e9}
    assert samples(reading, CRL_NAME) == {("a",): 1.7e9}
