"""The syntax of one of Dispatch's files is recognized by its content, not by its name."""

from __future__ import annotations

import pytest

from router.config.load import default_text
from router.config.qdrouterd.syntax import Syntax, detect_syntax


@pytest.mark.parametrize(
    ("text", "syntax"),
    [
        ("# a comment\n\nrouter {\n}\n", "sections"),
        ("ssl-profile{\n", "sections"),
        ("mode: standalone\n", "sections"),
        ("}\n", "sections"),
        ('[\n  ["router", {"id": "A"}]\n]', "json"),
        ('# comment\n[["listener", {}]]', "json"),
        ('[\n  # comment\n  ["listener", {}]\n]', "json"),
        ("[ ]\n", "json"),
        ('[ { "router": 1 } ]', "json"),
        ("[router]\n", "toml"),
        ('[["listener"]]\nport = 1\n', "toml"),
        ("[[listener]]\n", "toml"),
        ("router = { id = 'A' }\n", "toml"),
        ("'router'.id = 'A'\n", "toml"),
        ("", "toml"),
        (default_text(), "toml"),
    ],
)
@pytest.mark.parametrize("suffix", ["", ".toml"])
def test_the_content_counts(text: str, syntax: Syntax, suffix: str) -> None:
    assert detect_syntax(text, suffix) == syntax


@pytest.mark.parametrize("suffix", [".conf", ".json", ".JSON"])
def test_no_suffix_makes_toml_another_thing(suffix: str) -> None:
    assert detect_syntax(default_text(), suffix) == "toml"


@pytest.mark.parametrize(("suffix", "syntax"), [(".conf", "sections"), (".json", "json")])
@pytest.mark.parametrize("text", ["", "# nothing\n", "what is this\n"])
def test_the_suffix_counts_where_nothing_else_tells(text: str, suffix: str, syntax: Syntax) -> None:
    assert detect_syntax(text, suffix) == syntax
