"""Options of client commands for TLS, under the names of Dispatch's tools."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import attrs
import click

from router.client import Url
from router.config.secret import Secret

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_OPTIONS: Final = (
    click.option(
        "--ssl-trustfile",
        metavar="FILE",
        type=_FILE,
        help="With amqps: the authorities to trust, in PEM form. [default: the system's]",
    ),
    click.option(
        "--ssl-certificate",
        metavar="FILE",
        type=_FILE,
        help="With amqps: the certificate to show, in PEM form.",
    ),
    click.option(
        "--ssl-key",
        metavar="FILE",
        type=_FILE,
        help="The certificate's private key. [default: in the file of --ssl-certificate]",
    ),
    click.option(
        "--ssl-password-file",
        metavar="FILE",
        type=_FILE,
        help="A file with the password of the private key.",
    ),
    click.option(
        "--ssl-disable-peer-name-verify",
        is_flag=True,
        help="With amqps: accept a certificate that is for another host.",
    ),
)

Command = Callable[..., None]


def tls_options(parameter: str) -> Callable[[Command], Command]:
    """Return a decorator that adds options for TLS; `parameter` is the command's URL."""

    def decorated(command: Command) -> Command:
        @functools.wraps(command)
        def with_tls(
            ssl_trustfile: Path | None,
            ssl_certificate: Path | None,
            ssl_key: Path | None,
            ssl_password_file: Path | None,
            ssl_disable_peer_name_verify: bool,
            **options: Any,
        ) -> None:
            files = (ssl_trustfile, ssl_certificate, ssl_key, ssl_password_file)
            given = any(files) or ssl_disable_peer_name_verify
            url: Url = options[parameter]
            if given and not url.is_encrypted:
                raise click.UsageError("options for TLS need a URL that begins with amqps://")
            if ssl_certificate is None and (ssl_key or ssl_password_file):
                raise click.UsageError("--ssl-key and --ssl-password-file need --ssl-certificate")
            if url.is_encrypted:
                options[parameter] = _secured(url, *files, not ssl_disable_peer_name_verify)
            command(**options)

        for option in reversed(_OPTIONS):
            with_tls = option(with_tls)
        return with_tls

    return decorated


def _secured(
    url: Url,
    authorities: Path | None,
    certificate: Path | None,
    key: Path | None,
    password: Path | None,
    verify_hostname: bool,
) -> Url:
    """Return the URL with the context of its TLS; raise UsageError if a file cannot be used."""
    # only here: other commands need no TLS
    from router.config.ssl_profiles import SslProfileSettings
    from router.net.tls.contexts import ProfileUnusable, client_context

    profile = SslProfileSettings(
        name="options",
        ca_cert_file=authorities,
        cert_file=certificate,
        private_key_file=key,
        password=None if password is None else Secret("file", str(password)),
    )
    options = {
        "caCertFile": "--ssl-trustfile",
        "certFile": "--ssl-certificate",
        "privateKeyFile": "--ssl-key" if key is not None else "--ssl-certificate",
        "password": "--ssl-password-file",
    }
    try:
        context = client_context(profile, verify_hostname)
    except ProfileUnusable as unusable:
        name = options.get(unusable.attribute, unusable.attribute)
        raise click.UsageError(f"{name} {unusable.reason}") from None
    return attrs.evolve(url, tls=context, shows_certificate=certificate is not None)
