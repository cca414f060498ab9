"""Options for TLS, and files that cannot be used, which are named by their option."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from router.cli.tls_options import tls_options
from router.client import Url
from router.client.url import parse_url

from support.certificates import Authority


def given(*options: str, url: str = "amqps://there") -> tuple[int, str, list[Url]]:
    """Run a command with these options: its exit code, its words, and the URL that it gets."""
    found: list[Url] = []

    @click.command()
    @click.argument("url", callback=lambda _, __, text: parse_url(text))
    @tls_options("url")
    def command(url: Url) -> None:
        found.append(url)

    result = CliRunner().invoke(command, [url, *options])
    return result.exit_code, result.output, found


def test_a_url_has_its_context(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    code, _, [url] = given("--ssl-trustfile", str(authority.ca_file))
    assert code == 0
    assert url.tls is not None
    assert url.tls.check_hostname
    assert not url.shows_certificate
    _, _, [url] = given(
        "--ssl-trustfile",
        str(authority.ca_file),
        "--ssl-certificate",
        str(authority.issue("a@example.org")),
        "--ssl-disable-peer-name-verify",
    )
    assert url.tls is not None
    assert not url.tls.check_hostname
    assert url.shows_certificate


def test_without_options_the_systems_authorities_count() -> None:
    code, _, [url] = given()
    assert code == 0
    assert url.tls is not None


def test_without_tls_there_is_no_context() -> None:
    assert given(url="amqp://there")[2] == [parse_url("amqp://there")]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--ssl-trustfile", __file__], "need a URL that begins with amqps://"),
        (["--ssl-disable-peer-name-verify"], "need a URL that begins with amqps://"),
    ],
)
def test_options_without_tls(options: list[str], said: str) -> None:
    code, output, _ = given(*options, url="amqp://there")
    assert code == 2
    assert said in " ".join(output.split())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--ssl-key", __file__], "--ssl-key and --ssl-password-file need --ssl-certificate"),
        (["--ssl-trustfile", __file__], "--ssl-trustfile has nothing in PEM form"),
        (["--ssl-certificate", __file__], "has no private key in PEM form"),
        (["--ssl-trustfile", "/nowhere"], "does not exist"),
    ],
)
def test_files_that_cannot_be_used(options: list[str], said: str) -> None:
    code, output, _ = given(*options)
    assert code == 2
    assert said in " ".join(output.split())
