"""Checks of connectors: attributes that need or exclude each other.

See `router.config.checks`, which runs these checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from router.config.mistakes import Data, Finding, Path
from router.config.model import Configuration
from router.config.name_checks import check_secret
from router.config.scram import MECHANISMS as SCRAM
from router.config.urls import names_this_host, parse_server_url


def _connector_redirects(configuration: Configuration, _: Data) -> Iterator[Finding]:
    for index, connector in enumerate(configuration.connectors):
        if connector.redirect_hosts and not connector.allow_redirect:
            yield Finding(
                ("connector", index, "redirectHosts"),
                "has no effect, because redirects are not followed",
                "set allowRedirect = true, or remove it",
                shown=True,
                concerns=(("connector", index, "allowRedirect"),),
            )


def _connector_sasl(configuration: Configuration, _: Data) -> Iterator[Finding]:
    for index, connector in enumerate(configuration.connectors):
        here: Path = ("connector", index)
        plain = any(each == "PLAIN" or each in SCRAM for each in connector.sasl_mechanisms)
        values = {"saslUsername": connector.sasl_username, "saslPassword": connector.sasl_password}
        concerns: tuple[Path, ...] = tuple((*here, key) for key in (*values, "saslMechanisms"))
        for key, value in values.items():
            if plain and value is None:
                yield Finding(
                    (*here, key),
                    "is missing, though PLAIN or SCRAM is to be used",
                    "give saslUsername and saslPassword",
                    concerns=concerns,
                )
            if value is not None and not plain:
                yield Finding(
                    (*here, key),
                    "has no effect, because neither PLAIN nor SCRAM is to be used",
                    "give saslUsername and saslPassword, and PLAIN or SCRAM in saslMechanisms",
                    concerns=concerns,
                )
        yield from check_secret((*here, "saslPassword"), connector.sasl_password)


def _connector_failover(configuration: Configuration, _: Data) -> Iterator[Finding]:
    for index, connector in enumerate(configuration.connectors):
        if "*" in connector.failover_hosts and connector.sasl_username is not None:
            yield Finding(
                ("connector", index, "failoverHosts"),
                "would show the password to any host that the peer names",
                'name the hosts, or remove "*" or the saslUsername',
                concerns=(("connector", index, "saslUsername"),),
            )
        urls = [parse_server_url(text) for text in connector.backup_urls]
        if connector.ssl_profile is None and any(url.scheme == "amqps" for url in urls):
            yield Finding(
                ("connector", index, "backupUrls"),
                "has a URL for TLS, but the connector has no TLS",
                "give an sslProfile, or only URLs with amqp://",
                concerns=(("connector", index, "sslProfile"),),
            )


def _connector_password(configuration: Configuration, _: Data) -> Iterator[Finding]:
    for index, connector in enumerate(configuration.connectors):
        if (
            set(connector.sasl_mechanisms) != {"PLAIN"}
            or connector.ssl_profile is not None
            or connector.allow_insecure_authentication
        ):
            continue
        urls = [parse_server_url(text) for text in connector.backup_urls]
        for host in (connector.host, *(url.host for url in urls)):
            if not names_this_host(host):
                here: Path = ("connector", index)
                keys = ("host", "backupUrls", "sslProfile", "allowInsecureAuthentication")
                yield Finding(
                    (*here, "saslMechanisms"),
                    f"is PLAIN alone, which would send the password in clear text to {host}",
                    "give an sslProfile, add SCRAM, or set allowInsecureAuthentication = true",
                    concerns=tuple((*here, key) for key in keys),
                )
                break


CONNECTOR_CHECKS: Final = (
    _connector_sasl,
    _connector_redirects,
    _connector_failover,
    _connector_password,
)
