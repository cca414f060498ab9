"""Option of client commands for the SASL mechanisms, with the name that Dispatch's tools use."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import attrs
import click

from router.client import Url

MECHANISMS: Final = (
    "ANONYMOUS",
    "EXTERNAL",
    "PLAIN",
    "SCRAM-SHA-1",
    "SCRAM-SHA-256",
    "SCRAM-SHA-512",
    "XOAUTH2",
    "OAUTHBEARER",
)

Command = Callable[..., None]


def sasl_options(parameter: str) -> Callable[[Command], Command]:
    """Return a decorator that adds `--sasl-mechanisms` to a command.

    The mechanisms are set in the URL that the command gets in `parameter`.
    """

    def decorated(command: Command) -> Command:
        @click.option(
            "--sasl-mechanisms",
            metavar="LIST",
            callback=_read,
            help="SASL mechanisms to use, in order of preference, separated by commas or spaces. "
            "Without TLS, PLAIN is used for another host than this one only if it is in the list. "
            "XOAUTH2 and OAUTHBEARER send the password as a bearer token, and need TLS there. "
            "[default: with a user SCRAM, then PLAIN; otherwise EXTERNAL or ANONYMOUS]",
        )
        @functools.wraps(command)
        def with_sasl(sasl_mechanisms: tuple[str, ...], **options: Any) -> None:
            if sasl_mechanisms:
                url: Url = options[parameter]
                options[parameter] = attrs.evolve(url, mechanisms=sasl_mechanisms)
            command(**options)

        return with_sasl

    return decorated


def _read(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...]:
    names = tuple((value or "").replace(",", " ").upper().split())
    for name in names:
        if name not in MECHANISMS:
            raise click.BadParameter(f"{name} is not one of {', '.join(MECHANISMS)}")
    return names
