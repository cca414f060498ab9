"""`trioute convert`: TOML on standard output or in a file, or every mistake and 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.config.load import load_configuration

from support.commands import Ended, invoke

CONF = "listener {\n    port: 5673\n    requireSsl: %s\n}\n"


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """Return a file that can be converted."""
    file = tmp_path / "qdrouterd.conf"
    file.write_text(CONF % "no", encoding="utf-8")
    return file


def test_it_is_printed(conf: Path) -> None:
    ended = invoke("convert", conf)
    assert (ended.code, ended.errors) == (0, "")
    toml = conf.with_name("trioute.toml")
    toml.write_text(ended.output, encoding="utf-8")
    assert load_configuration(toml) == load_configuration(conf)


@pytest.mark.parametrize("there", ["trioute.toml", "sub/trioute.toml"])
def test_it_is_written(conf: Path, there: str) -> None:
    toml = conf.parent / there
    toml.parent.mkdir(exist_ok=True)
    assert invoke("convert", conf, "-o", toml) == Ended(0, "", "")
    assert load_configuration(toml) == load_configuration(conf)
    again = invoke("convert", conf, "-o", toml)
    assert (again.code, again.errors) == (1, f"{toml}: exists already\n")


def test_where_it_cannot_be_written(conf: Path) -> None:
    ended = invoke("convert", conf, "-o", conf.parent / "none" / "trioute.toml")
    assert ended.code == 1
    assert "cannot be written: No such file or directory" in ended.errors


def test_what_is_less_secure_has_to_be_asked_for(conf: Path) -> None:
    conf.write_text(CONF % "yes", encoding="utf-8")
    refused = invoke("convert", conf)
    assert (refused.code, refused.output) == (1, "")
    assert refused.errors.startswith(f"{conf}:3: listener[0].requireSsl: true is not supported")
    assert "not given in the file" in refused.errors
    assert invoke("convert", conf, "--weaker-security").code == 0


def test_what_is_toml(conf: Path) -> None:
    conf.write_text("[router]\n", encoding="utf-8")
    ended = invoke("convert", conf)
    assert (ended.code, ended.errors) == (1, f"{conf}: is TOML already\n")
