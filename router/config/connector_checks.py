"""Checks of connectors: attributes that need or exclude each other.

See `router.config.checks`, which runs these checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from router.config.connectors import ConnectorSettings
from router.config.endpoints import CLEARTEXT, TOKENS
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
        used = _secret_mechanisms(connector)
        names = " or ".join(used)
        # the token alone may say who this is
        is_user_needed = used not in ([], ["OAUTHBEARER"])
        values = {
            "saslUsername": (connector.sasl_username, is_user_needed),
            "saslPassword": (connector.sasl_password, bool(used)),
        }
        concerns: tuple[Path, ...] = tuple((*here, key) for key in (*values, "saslMechanisms"))
        for key, (value, is_needed) in values.items():
            if is_needed and value is None:
                yield Finding(
                    (*here, key),
                    f"is missing, though {names} is to be used",
                    "give saslUsername and saslPassword" if is_user_needed else "give the token",
                    concerns=concerns,
                )
            if value is not None and not used:
                yield Finding(
                    (*here, key),
                    "has no effect, because neither PLAIN nor SCRAM nor a token is to be used",
                    "give saslUsername and saslPassword, and PLAIN, SCRAM, XOAUTH2 or OAUTHBEARER "
                    "in saslMechanisms",
                    concerns=concerns,
                )
        yield from check_secret((*here, "saslPassword"), connector.sasl_password)


def _secret_mechanisms(connector: ConnectorSettings) -> list[str]:
    """Return the mechanisms of a connector that need saslPassword, those of SCRAM as one."""
    named = ["SCRAM" if each in SCRAM else each for each in connector.sasl_mechanisms]
    return [each for each in ("PLAIN", "SCRAM", *TOKENS) if each in named]


def _connector_failover(configuration: Configuration, _: Data) -> Iterator[Finding]:
    for index, connector in enumerate(configuration.connectors):
        if "*" in connector.failover_hosts and (
            connector.sasl_username is not None or connector.sasl_password is not None
        ):
            key = "saslPassword" if connector.sasl_username is None else "saslUsername"
            yield Finding(
                ("connector", index, "failoverHosts"),
                "would show the password to any host that the peer names",
                f'name the hosts, or remove "*" or the {key}',
                concerns=(("connector", index, key),),
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
            not set(connector.sasl_mechanisms).issubset(CLEARTEXT)
            or connector.ssl_profile is not None
            or connector.allow_insecure_authentication
        ):
            continue
        urls = [parse_server_url(text) for text in connector.backup_urls]
        for host in (connector.host, *(url.host for url in urls)):
            if not names_this_host(host):
                here: Path = ("connector", index)
                keys = ("host", "backupUrls", "sslProfile", "allowInsecureAuthentication")
                has_token = set(connector.sasl_mechanisms) != {"PLAIN"}
                names = " or ".join(connector.sasl_mechanisms)
                secret, scram = ("token", "") if has_token else ("password", "add SCRAM, ")
                yield Finding(
                    (*here, "saslMechanisms"),
                    f"is {names} alone, which would send the {secret} in clear text to {host}",
                    f"give an sslProfile, {scram}or set allowInsecureAuthentication = true",
                    concerns=tuple((*here, key) for key in keys),
                )
                break


CONNECTOR_CHECKS: Final = (
    _connector_sasl,
    _connector_redirects,
    _connector_failover,
    _connector_password,
)
