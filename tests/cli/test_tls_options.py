"""Options for TLS, and files that cannot be used, which are named by their option."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from router.cli.main import main
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


def locked(file: Path, password: str) -> Path:
    """Return a new file with the private key of a certificate, encrypted with a password."""
    key = load_pem_private_key(file.read_bytes(), None)
    encryption = BestAvailableEncryption(password.encode())
    data = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    path = file.with_suffix(".key")
    path.write_bytes(data)
    return path


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
        (
            ["--ssl-password-file", __file__],
            "--ssl-key and --ssl-password-file need --ssl-certificate",
        ),
        (["--ssl-trustfile", __file__], "--ssl-trustfile has nothing in PEM form"),
        (["--ssl-certificate", __file__], "has no private key in PEM form"),
        (["--ssl-trustfile", "/nowhere"], "does not exist"),
    ],
)
def test_files_that_cannot_be_used(options: list[str], said: str) -> None:
    code, output, _ = given(*options)
    assert code == 2
    assert said in " ".join(output.split())


def test_a_key_may_have_a_file_and_a_password_of_its_own(tmp_path: Path) -> None:
    certificate = Authority(tmp_path).issue("a@example.org")
    key, password = locked(certificate, "s3cret"), tmp_path / "password"
    password.write_text("s3cret\n", encoding="utf-8")
    options = ["--ssl-certificate", str(certificate), "--ssl-key", str(key)]
    code, _, [url] = given(*options, "--ssl-password-file", str(password))
    assert code == 0
    assert url.shows_certificate
    code, output, found = given(*options)
    assert (code, found) == (2, [])
    assert "--ssl-key is encrypted; give its password" in " ".join(output.split())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"wrong", "--ssl-password-file is wrong: the private key cannot be decrypted"),
        (b"", "is empty"),
        (b"\xff", "is not UTF-8 text"),
    ],
)
def test_a_password_that_cannot_be_used(tmp_path: Path, content: bytes, said: str) -> None:
    certificate = Authority(tmp_path).issue("a@example.org")
    key, password = locked(certificate, "s3cret"), tmp_path / "password"
    password.write_bytes(content)
    code, output, _ = given(
        *("--ssl-certificate", str(certificate)),
        *("--ssl-key", str(key), "--ssl-password-file", str(password)),
    )
    assert code == 2
    assert "--ssl-password-file" in output
    assert said in " ".join(output.split())
    assert "s3cret" not in output


def test_a_key_of_another_certificate_is_named(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    mine, other = (str(authority.issue(f"{name}@example.org")) for name in "ab")
    code, output, _ = given("--ssl-certificate", mine, "--ssl-key", other)
    assert code == 2
    assert "--ssl-key does not belong to the certificate" in " ".join(output.split())


@pytest.mark.parametrize(
    "arguments", [["send", "{url}/q"], ["receive", "{url}/q"], ["manage", "query", "-b", "{url}"]]
)
@pytest.mark.parametrize(
    ("scheme", "said"),
    [
        ("amqp", "need a URL that begins with amqps://"),
        ("amqps", "--ssl-trustfile has nothing in PEM form"),
    ],
)
def test_every_client_command_has_these_options(
    arguments: list[str], scheme: str, said: str
) -> None:
    filled = [each.format(url=f"{scheme}://there") for each in arguments]
    result = CliRunner().invoke(main, [*filled, "--ssl-trustfile", __file__])
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
