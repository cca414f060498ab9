"""The first frames of a connector fit the peer's frame size; `check` finds those that do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from router.cli.check import check
from router.cli.run import run
from router.net.first_frames import find_too_long

from support.configuring import mistakes_in


def mistakes(text: str) -> list[tuple[str, int]]:
    """Return the path and line of each mistake."""
    return [(one.path, one.line) for one in mistakes_in(text, find_too_long)]


def connector(**attributes: Any) -> str:
    lines = [f"{key} = {value!r}" for key, value in attributes.items()]
    return "\n".join(["[[connector]]", *lines])


def longest(make: Any) -> int:
    """Return the largest count for which `make` makes no mistake; one more is a mistake."""
    return max(count for count in range(600) if not mistakes(make(count)))


def test_what_is_usual_fits() -> None:
    assert mistakes(connector()) == []
    names = {"host": "h" * 255, "saslUsername": "u" * 100, "saslPassword": "p" * 100}
    assert mistakes("[router]\nid = '" + "r" * 100 + "'\n" + connector(**names)) == []


@pytest.mark.spec("5.3.1-4")
def test_a_password_that_is_too_long() -> None:
    def make(count: int) -> str:
        return connector(host="h", saslUsername="u" * 100, saslPassword="p" * count)

    assert mistakes(make(longest(make) + 1)) == [("connector[0].saslPassword", 4)]
    assert 350 < longest(make) < 400
    # one that cannot be had is one mistake and not two
    missing = connector(host="h" * 255, saslUsername="u" * 255, saslPassword="file:/not/there")
    assert mistakes(missing) == [("connector[0].saslPassword", 4)]


@pytest.mark.spec("5.3.1-4")
@pytest.mark.parametrize("mechanism", ["XOAUTH2", "OAUTHBEARER"])
def test_a_token_may_be_longer(mechanism: str) -> None:
    def make(token: str) -> str:
        login = {"saslUsername": "u", "saslPassword": token, "saslMechanisms": mechanism}
        return connector(host="localhost", **login)

    assert mistakes(make("t" * 16_000)) == []
    assert mistakes(make("t" * 16_384)) == [("connector[0].saslPassword", 4)]
    text = make("t" * 16_384).replace(mechanism, f"{mechanism} PLAIN")
    # once is enough
    assert mistakes(text) == [("connector[0].saslPassword", 4)]


@pytest.mark.parametrize("mechanism", ["XOAUTH2", "OAUTHBEARER"])
def test_what_is_no_token(mechanism: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    login = {"saslUsername": "u", "saslMechanisms": mechanism}
    for token in ("s3 cret", "Bearer s3cret", "s3cret\x01", "s3crét", '{"s3cret"}'):
        file.write_text(token, encoding="utf-8")
        text = connector(saslPassword=f"file:{file}", **login)
        (found,) = mistakes_in(text, find_too_long)
        assert found.path == "connector[0].saslPassword"
        assert found.problem == f"is no bearer token, though {mechanism} is to be used"
        assert "s3" not in str(found)
    file.write_text("s3cret==\n", encoding="utf-8")
    assert mistakes(connector(saslPassword=f"file:{file}", **login)) == []
    # a password may be anything
    assert mistakes(connector(saslUsername="u", saslPassword="s3 cret")) == []


@pytest.mark.spec("2.4.1-3")
def test_open_properties_that_are_too_long() -> None:
    def make(count: int) -> str:
        return connector(host="h") + f"\nopenProperties = {{ a = '{'x' * count}' }}"

    assert mistakes(make(longest(make) + 1)) == [("connector[0].openProperties", 3)]
    # a listener speaks second, and as much as its peers take
    assert mistakes(make(600).replace("connector", "listener").replace("h'", "::1'")) == []


def test_check_and_run_look_at_it(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(connector() + f"\nopenProperties = {{ a = '{'x' * 600}' }}", encoding="utf-8")
    for command, arguments in ((check, [str(file)]), (run, ["--config", str(file)])):
        result = CliRunner().invoke(command, arguments)
        assert result.exit_code == 1
        assert "connector[0].openProperties" in result.output
        assert "512 octets are allowed" in result.output
