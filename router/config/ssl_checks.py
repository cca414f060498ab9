"""Checks of TLS profiles, and of what refers to them.

See `router.config.checks`, which runs these checks. Whether the files of a profile can be used is
checked in `router.net.tls.checking`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from router.config.mistakes import Data, Finding
from router.config.model import Configuration
from router.config.name_checks import check_names, unknown_name


def _profile_names(configuration: Configuration, _: Data) -> Iterator[Finding]:
    yield from check_names("sslProfile", (each.name for each in configuration.ssl_profiles))


def _used_profiles(configuration: Configuration, _: Data) -> Iterator[Finding]:
    """Yield a finding for each listener or connector whose profile is missing or incomplete."""
    profiles = {each.name: each for each in configuration.ssl_profiles}
    for index, listener in enumerate(configuration.listeners):
        used = [("sslProfile", listener.ssl_profile)] if listener.ssl_profile is not None else []
        used += [("sniSslProfiles", name) for name in listener.sni_ssl_profiles]
        for key, name in used:
            profile = profiles.get(name)
            if profile is None:
                yield unknown_name(("listener", index, key), name, "sslProfile", profiles)
            elif profile.cert_file is None:
                yield Finding(
                    ("listener", index, key),
                    f"names {name}, a profile without a certificate",
                    "give that profile a certFile, or name another one",
                )
        main = profiles.get(listener.ssl_profile)
        asks = listener.client_certificate != "none"
        if main is not None and asks and main.ca_cert_file is None:
            yield Finding(
                ("listener", index, "sslProfile"),
                f"names {main.name}, a profile without caCertFile, though peers are asked for "
                "certificates",
                "give that profile the authorities that sign them, in caCertFile",
                concerns=(
                    ("listener", index, "clientCertificate"),
                    ("listener", index, "saslMechanisms"),
                ),
            )
        if asks or not listener.authenticate_peer or not listener.serves_amqp:
            continue
        if set(listener.sasl_mechanisms) <= {"EXTERNAL", "ANONYMOUS"} and main is not None:
            yield Finding(
                ("listener", index, "authenticatePeer"),
                "lets no peer in, because peers are not asked for certificates",
                'set clientCertificate to "required" or "optional", or add other mechanisms',
                concerns=(
                    ("listener", index, "clientCertificate"),
                    ("listener", index, "saslMechanisms"),
                ),
            )
    for index, connector in enumerate(configuration.connectors):
        profile = profiles.get(connector.ssl_profile)
        if connector.ssl_profile is not None and profile is None:
            where = ("connector", index, "sslProfile")
            yield unknown_name(where, connector.ssl_profile, "sslProfile", profiles)
        elif connector.sasl_mechanisms == ("EXTERNAL",) and (
            profile is None or profile.cert_file is None
        ):
            yield Finding(
                ("connector", index, "saslMechanisms"),
                "has only EXTERNAL, but the connector has no certificate to show",
                "give an sslProfile with a certFile, or add other mechanisms",
                concerns=(("connector", index, "sslProfile"),),
            )


def _need_profile(configuration: Configuration, data: Data) -> Iterator[Finding]:
    """Yield a finding for each attribute that has no effect, or no use, without a profile."""
    for index, listener in enumerate(configuration.listeners):
        if listener.ssl_profile is not None:
            continue
        for key in ("sniSslProfiles", "requireSsl", "requireEncryption", "clientCertificate"):
            given = data["listener"][index].get(key)
            if given not in (None, False, "none", (), []):
                yield _without("listener", index, key)
        if "EXTERNAL" in listener.sasl_mechanisms:
            yield Finding(
                ("listener", index, "saslMechanisms"),
                "has EXTERNAL, but without TLS no peer has a certificate",
                "give an sslProfile, or remove EXTERNAL",
                concerns=(("listener", index, "sslProfile"),),
            )
    for index, connector in enumerate(configuration.connectors):
        if connector.ssl_profile is None and connector.ssl_upgrade:
            yield _without("connector", index, "sslUpgrade")


def _without(entity: str, index: int, key: str) -> Finding:
    return Finding(
        (entity, index, key),
        "has no effect without TLS",
        "give an sslProfile, or remove it",
        shown=True,
        concerns=((entity, index, "sslProfile"),),
    )


SSL_CHECKS: Final = (_profile_names, _used_profiles, _need_profile)
