"""`trioute check FILE`: report every mistake in a configuration file, or summarize the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
import click

from router.config.connectors import ConnectorSettings
from router.config.differences import SECRET
from router.config.listeners import ListenerSettings
from router.config.load import load_file
from router.config.mistakes import InvalidConfiguration
from router.config.model import ENTITIES, AddressSettings, Configuration
from router.config.qdrouterd.reading import InvalidDispatch
from router.config.qdrouterd.report import FLAG
from router.config.router_settings import RouterSettings
from router.config.setting import file_name, setting_of
from router.config.write import table_of
from router.net.extra_checks import EXTRA_CHECKS

# entities with formats of their own
_SHOWN: Final = ("listener", "connector", "address")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    FLAG,
    is_flag=True,
    help="Accept a Dispatch file even if it asks for TLS, authentication or policies that are "
    "not supported.",
)
def check(file: Path, weaker_security: bool) -> None:
    """Report every mistake in the configuration FILE, which is TOML or a Dispatch file.

    For a Dispatch file, also reports which settings are not supported, with the consequences, and
    which are ignored.

    Exits with 0 and a summary if the router would start with FILE, and otherwise with 1 and one
    line for each mistake.
    """
    try:
        loaded = load_file(file, EXTRA_CHECKS, weaker_security=weaker_security)
    except InvalidConfiguration as invalid:
        for mistake in invalid.mistakes:
            click.echo(str(mistake))
        if isinstance(invalid, InvalidDispatch):
            for line in invalid.report.lines():
                click.echo(line)
        raise SystemExit(1) from None
    if loaded.report is None:
        click.echo(f"{file}: no mistakes")
    else:
        click.echo(f"{file}: a Dispatch file; {loaded.report.summary()}")
        for line in loaded.report.lines():
            click.echo(line)
    for line in format_summary(loaded.configuration):
        click.echo(line)


def format_summary(configuration: Configuration) -> Iterator[str]:
    """Yield the lines of a summary of the configuration, one for each entity."""
    yield f"router     {_router(configuration.router)}"
    for listener in configuration.listeners:
        yield f"listener   {listener.name}: {_listener(listener)}"
    for connector in configuration.connectors:
        yield f"connector  {connector.name}: {_connector(connector)}"
    for address in configuration.addresses:
        yield f"address    {_address(address)}"
    for entity in ENTITIES:
        if entity.repeated and entity.name not in _SHOWN:
            for settings in getattr(configuration, entity.attribute):
                yield f"{entity.name:10} {_anything(settings)}"
    if not configuration.listeners and not configuration.connectors:
        yield "           no listener and no connector: nothing can reach this router"


def _router(router: RouterSettings) -> str:
    name = router.id or "id: the host's name"
    return f"{name}, {router.mode}, other addresses {router.default_distribution}"


def _listener(listener: ListenerSettings) -> str:
    place = _socket(listener.host, listener.port)
    if listener.http:
        served = ["/metrics"] * listener.metrics + ["/healthz", "/readyz"] * listener.healthz
        served += ["AMQP over WebSockets"] * listener.websockets
        text = "HTTP" if listener.ssl_profile is None else "HTTPS"
        text += f" on {place}, {' '.join(served)}"
        return f"{text}, {_sasl(listener)}" if listener.websockets else text
    return f"AMQP on {place}, {_security(listener)}{_sasl(listener)}"


def _sasl(listener: ListenerSettings) -> str:
    needed = "has to authenticate" if listener.authenticate_peer else "may stay anonymous"
    mechanisms = " ".join(listener.sasl_mechanisms)
    return f"SASL {mechanisms}, the peer {needed}"


def _security(listener: ListenerSettings) -> str:
    """Return whether a listener requires TLS, as part of a line; nothing without TLS."""
    if listener.ssl_profile is None:
        return ""
    return "with TLS, " if listener.needs_tls else "with or without TLS, "


def _connector(connector: ConnectorSettings) -> str:
    place = _socket(connector.host, connector.port)
    user = f" as {connector.sasl_username}" if connector.sasl_username else ""
    security = "" if connector.ssl_profile is None else " with TLS"
    if connector.web_socket_path is not None:
        security = f" over a WebSocket{security}"
    if connector.proxy_profile is not None:
        security += f" through the proxy {connector.proxy_profile}"
    return f"AMQP to {place}{security}{user}, SASL {' '.join(connector.sasl_mechanisms)}"


def _address(address: AddressSettings) -> str:
    if address.prefix is not None:
        return f"prefix {address.prefix}: {address.distribution}"
    return f"pattern {address.pattern}: {address.distribution}"


def _anything(settings: attrs.AttrsInstance) -> str:
    """Return an entity's attributes as text, or its name if it has no other attributes."""
    table = table_of(settings)
    secret = {
        file_name(each.name)
        for each in attrs.fields(type(settings))
        if setting_of(each).kind.secret
    }
    pairs = [
        f"{key} {SECRET if key in secret else value}"
        for key, value in table.items()
        if key != "name"
    ]
    return ", ".join(pairs) or str(table.get("name", ""))


def _socket(host: str, port: int) -> str:
    written = f"[{host}]" if ":" in host else host
    return f"{written}:{port or 'any free port'}"
