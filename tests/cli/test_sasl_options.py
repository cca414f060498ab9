"""The option for SASL mechanisms."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from router.cli.sasl_options import sasl_options
from router.client import Url
from router.client.url import parse_url


def given(*options: str) -> tuple[int, str, list[Url]]:
    """Run a command with these options: its exit code, its words, and the URL that it gets."""
    found: list[Url] = []

    @click.command()
    @click.argument("url", callback=lambda _, __, text: parse_url(text))
    @sasl_options("url")
    def command(url: Url) -> None:
        found.append(url)

    result = CliRunner().invoke(command, ["there", *options])
    return result.exit_code, result.output, found


@pytest.mark.parametrize(
    "text", ["SCRAM-SHA-256,PLAIN", "scram-sha-256 plain", " SCRAM-SHA-256, PLAIN"]
)
def test_mechanisms_in_their_order(text: str) -> None:
    code, _, [url] = given("--sasl-mechanisms", text)
    assert (code, url.mechanisms) == (0, ("SCRAM-SHA-256", "PLAIN"))


def test_mechanisms_of_tokens() -> None:
    assert given("--sasl-mechanisms", "oauthbearer XOAUTH2")[2][0].mechanisms == (
        "OAUTHBEARER",
        "XOAUTH2",
    )


@pytest.mark.parametrize("options", [(), ("--sasl-mechanisms", "")])
def test_without_any_the_client_chooses(options: tuple[str, ...]) -> None:
    assert given(*options)[2][0].mechanisms == ()


def test_a_mechanism_that_is_not_known() -> None:
    code, words, found = given("--sasl-mechanisms", "PLAIN GSSAPI")
    assert (code, found) == (2, [])
    assert "GSSAPI is not one of ANONYMOUS, EXTERNAL, PLAIN, SCRAM-SHA-1" in words
