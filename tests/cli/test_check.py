"""`trioute check`: every mistake and 1, or a summary and 0; 2 is for a wrong command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from router.cli.check import check, format_summary
from router.config.connectors import ConnectorSettings
from router.config.link_routes import LinkRouteSettings
from router.config.listeners import ListenerSettings
from router.config.load import default_configuration, default_text
from router.config.model import AddressSettings, Configuration
from router.config.redirects import RedirectSettings
from router.config.router_settings import RouterSettings
from router.config.ssl_profiles import SslProfileSettings


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path of a configuration file that is not there yet."""
    return tmp_path / "trioute.toml"


def test_every_mistake_is_printed(file: Path) -> None:
    file.write_text("[log]\nlevel = 'loud'\n[[listener]]\nport = -1\n", encoding="utf-8")
    result = CliRunner().invoke(check, [str(file)])
    assert result.exit_code == 1
    assert [line.partition(": ")[0] for line in result.output.splitlines()] == [
        f"{file}:2",
        f"{file}:4",
    ]


def test_a_file_that_is_not_there_is_a_mistake(file: Path) -> None:
    result = CliRunner().invoke(check, [str(file)])
    assert result.exit_code == 1
    assert result.output == f"{file}: cannot be read: No such file or directory\n"


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["--what"]])
def test_a_wrong_command_line(arguments: list[str]) -> None:
    assert CliRunner().invoke(check, arguments).exit_code == 2


def test_what_would_run_is_summed_up(file: Path) -> None:
    file.write_text(default_text(), encoding="utf-8")
    result = CliRunner().invoke(check, [str(file)])
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        f"{file}: no mistakes",
        *format_summary(default_configuration()),
    ]


def test_the_summary_of_the_default() -> None:
    assert list(format_summary(default_configuration()))[:4] == [
        "router     id: the host's name, standalone, other addresses balanced",
        "listener   amqp: AMQP on 127.0.0.1:5672, SASL ANONYMOUS, the peer may stay anonymous",
        "listener   http: HTTP on 127.0.0.1:9672, /metrics /healthz /readyz",
        "address    prefix closest: closest",
    ]


def test_the_summary_of_other_things() -> None:
    configuration = Configuration(
        router=RouterSettings(id="edge-1", default_distribution="closest"),
        listeners=(
            ListenerSettings(
                host="::1",
                port=0,
                name="in",
                sasl_mechanisms=("PLAIN",),
                authenticate_peer=True,
                users_file=Path("users"),
            ),
            ListenerSettings(port=1, name="health", http=True, metrics=False),
        ),
        connectors=(ConnectorSettings(name="broker", sasl_username="ada"),),
        addresses=(AddressSettings(pattern="a/*", distribution="unavailable"),),
    )
    assert list(format_summary(configuration)) == [
        "router     edge-1, standalone, other addresses closest",
        "listener   in: AMQP on [::1]:any free port, SASL PLAIN, the peer has to authenticate",
        "listener   health: HTTP on 127.0.0.1:1, /healthz /readyz",
        (
            "connector  broker: AMQP to 127.0.0.1:5672 as ada, SASL "
            "SCRAM-SHA-512 SCRAM-SHA-256 SCRAM-SHA-1 PLAIN"
        ),
        "address    pattern a/*: unavailable",
    ]


def test_the_summary_says_where_there_is_tls() -> None:
    profile = SslProfileSettings(name="p")
    configuration = Configuration(
        ssl_profiles=(profile,),
        listeners=(
            ListenerSettings(name="strict", ssl_profile="p"),
            ListenerSettings(name="either", port=1, ssl_profile="p", require_ssl=False),
            ListenerSettings(name="health", port=2, ssl_profile="p", http=True, metrics=False),
        ),
        connectors=(ConnectorSettings(name="far", ssl_profile="p"),),
    )
    assert list(format_summary(configuration))[1:5] == [
        (
            "listener   strict: AMQP on 127.0.0.1:5672, with TLS, SASL ANONYMOUS, the peer may "
            "stay anonymous"
        ),
        (
            "listener   either: AMQP on 127.0.0.1:1, with or without TLS, SASL ANONYMOUS, the "
            "peer may stay anonymous"
        ),
        "listener   health: HTTPS on 127.0.0.1:2, /healthz /readyz",
        "connector  far: AMQP to 127.0.0.1:5672 with TLS, SASL EXTERNAL ANONYMOUS",
    ]


def test_a_router_that_nothing_reaches_is_told_so() -> None:
    *_, last = format_summary(Configuration())
    assert last.strip() == "no listener and no connector: nothing can reach this router"


def test_every_other_entity_is_summed_up_by_what_is_said_of_it() -> None:
    configuration = Configuration(
        link_routes=(LinkRouteSettings(prefix="a", direction="in", connection="c"),),
        redirects=(RedirectSettings(prefix="b", to_network_host="h"),),
    )
    assert list(format_summary(configuration))[1:3] == [
        "redirect   prefix b, toNetworkHost h",
        "linkRoute  prefix a, direction in, connection c, distribution linkBalanced",
    ]


CONF = """\
router {
    mode: interior
    timestampFormat: %H
}
listener {
    port: 0
    requireSsl: yes
}
"""


def test_a_file_of_dispatch_is_reported_on(tmp_path: Path) -> None:
    file = tmp_path / "qdrouterd.conf"
    file.write_text(CONF, encoding="utf-8")
    refused = CliRunner().invoke(check, [str(file)])
    assert refused.exit_code == 1
    mistake, title, mode, *_ = refused.output.splitlines()
    assert mistake.startswith(f"{file}:7: listener[0].requireSsl: true is not supported")
    assert title == "not supported; the router starts without it:"
    assert mode.startswith(f"  {file}:3: router.timestampFormat")
    accepted = CliRunner().invoke(check, [str(file), "--weaker-security"])
    assert accepted.exit_code == 0
    assert accepted.output.splitlines()[0].startswith(f"{file}: a Dispatch file; 1 less secure")
    assert accepted.output.splitlines()[-1].startswith("listener   listener/0.0.0.0:0: AMQP on")
