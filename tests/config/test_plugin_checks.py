"""Mistakes in the sections of plugins, each with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.configuring import mistakes_in
from support.plugins import install

SOURCE = """
@attrs.frozen(kw_only=True, field_transformer=plugin.checked)
class Settings:
    limit: int = attrs.field(
        default=1, metadata=plugin.setting(plugin.whole_number(1, 9, "things"), "How many.")
    )

class Counting(plugin.Plugin):
    api_version = (1, 0)
    settings_class = Settings
    async def run(self, router): ...

class Unversioned(plugin.Plugin):
    async def run(self, router): ...
"""


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, SOURCE, counting="Counting", unversioned="Unversioned")


def mistakes(text: str) -> list[str]:
    """Return the mistakes in a file, as people read them."""
    return [str(each) for each in mistakes_in(text)]


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ('[[plugin]]\nplugin = "counting"\nsettings = { limit = 9 }', ""),
        (
            '[[plugin]]\nplugin = "counting"\n[plugin.settings]\nlimit = 10',
            (
                "f:4: plugin[0].settings.limit: 10 is not allowed; "
                "give a whole number of things from 1 to 9"
            ),
        ),
        (
            '[[plugin]]\nplugin = "counting"\n[plugin.settings]\n\nlimi = 10',
            "f:5: plugin[0].settings.limi: is not a known attribute; did you mean limit?",
        ),
        (
            '[[plugin]]\nplugin = "countin"',
            (
                'f:2: plugin[0].plugin: "countin" is not an installed plugin; did you mean '
                "counting?; give one of those that are installed: counting, unversioned"
            ),
        ),
        (
            '[[plugin]]\nplugin = "unversioned"',
            (
                'f:2: plugin[0].plugin: "unversioned" is not a plugin: '
                "its api_version must be two numbers, as in (1, 0)"
            ),
        ),
        (
            '[[plugin]]\nname = "a"',
            (
                "f:1: plugin[0].plugin: is missing; "
                "give one of those that are installed: counting, unversioned"
            ),
        ),
        (
            '[[plugin]]\nplugin = "counting"\n[[plugin]]\nplugin = "counting"',
            (
                "f:3: plugin[1].name: is already the name of plugin[0]; "
                "only letters and digits count; give another name"
            ),
        ),
        ('[[plugin]]\nplugin = "counting"\n[[plugin]]\nplugin = "counting"\nname = "b"', ""),
        (
            '[[plugin]]\nplugin = "counting"\nsettings = 1',
            (
                "f:3: plugin[0].settings: 1 is not allowed; "
                "give a table of text, numbers, true or false, and lists and tables of those"
            ),
        ),
        (
            (
                '[[listener]]\nauthenticationPlugin = "counting"\n'
                'saslMechanisms = "XOAUTH2 PLAIN"\n'
                '[[plugin]]\nplugin = "counting"'
            ),
            "",
        ),
        (
            (
                '[[listener]]\nauthenticationPlugin = "countin"\nsaslMechanisms = "PLAIN"\n'
                '[[plugin]]\nplugin = "counting"'
            ),
            (
                "f:2: listener[0].authenticationPlugin: names countin, but no plugin "
                "section has this name; did you mean counting?; name one of counting"
            ),
        ),
        (
            '[[listener]]\nauthorizationPlugin = "counting"',
            (
                "f:2: listener[0].authorizationPlugin: names counting, but no plugin "
                "section has this name; add a plugin section first"
            ),
        ),
        (
            (
                "[[listener]]\nhttp = true\nport = 8080\nwebsockets = true\n"
                'authenticationPlugin = "other"'
            ),
            (
                "f:5: listener[0].authenticationPlugin: names other, but no plugin "
                "section has this name; add a plugin section first"
            ),
        ),
        (
            '[[listener]]\nsaslMechanisms = "OAUTHBEARER XOAUTH2"',
            (
                "f:2: listener[0].saslMechanisms: offers OAUTHBEARER and XOAUTH2, which need an "
                "authentication plugin; name one in authenticationPlugin, or remove them"
            ),
        ),
        (
            (
                '[[listener]]\nsaslMechanisms = "SCRAM-SHA-256 PLAIN"\n'
                'authenticationPlugin = "counting"\n[[plugin]]\nplugin = "counting"'
            ),
            (
                "f:1: listener[0].usersFile: is missing, though PLAIN or SCRAM is offered; give "
                "the path of a users file, which `trioute user add` writes"
            ),
        ),
    ],
)
def test_each_mistake_is_reported_with_its_line(text: str, mistake: str) -> None:
    assert mistakes(text) == ([mistake] if mistake else [])
