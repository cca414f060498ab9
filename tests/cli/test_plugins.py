"""`trioute plugins`: what is installed, and how to configure it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from router.cli.main import main
from router.config.load import parse_configuration
from router.config.plugin_classes import installed_plugins

from support.plugins import install

SOURCE = '''
@attrs.frozen(kw_only=True, field_transformer=plugin.checked)
class Settings:
    how_often_seconds: float = attrs.field(
        default=5.0, metadata=plugin.setting(plugin.number(0.1, 60, "seconds"), "How often.")
    )
    kind: str = attrs.field(
        default="plain", metadata=plugin.setting(plugin.choice(("plain", "fancy")), "Which.")
    )

class Good(plugin.Plugin):
    """Does something useful.

    And more.
    """

    api_version = (1, 0)
    settings_class = Settings
    async def run(self, router): ...

class Simple(Good):
    settings_class = plugin.NoSettings
class Newer(Good):
    api_version = (2, 0)
'''


def run(*arguments: str) -> tuple[int, str]:
    """Run `trioute plugins`; return its exit code and its output."""
    result = CliRunner().invoke(main, ["plugins", *arguments])
    return result.exit_code, result.output


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Three installed plugins of one distribution."""
    return install(tmp_path, monkeypatch, SOURCE, good="Good", simple="Simple", newer="Newer")


def test_what_is_installed(module: str) -> None:
    code, output = run()
    assert code == 0
    lines = output.splitlines()
    assert f"good    {module} 1.2  Does something useful." in lines
    assert (
        f"newer   {module} 1.2  unusable: needs version 2.0 of the plugin contract; "
        "this router has version 1.1"
    ) in lines


def test_a_section_to_begin_with(module: str) -> None:
    code, output = run("good")
    assert code == 0
    assert "# How often.\n# Allowed: a number" in output
    assert '# kind = "plain"\n' in output
    # with and without its comments it is a section that can be used
    for text in (output, output.replace("# howOften", "howOften").replace("# kind", "kind")):
        (section,) = parse_configuration(text, source="f").plugins
        assert section.plugin == "good"
    assert run("simple") == (0, '[[plugin]]\nplugin = "simple"\n')


@pytest.mark.usefixtures("module")
def test_what_cannot_be_shown() -> None:
    code, output = run("nobody")
    assert code == 1
    known = ", ".join(installed_plugins())
    assert output == f"Error: 'nobody' is not an installed plugin; installed: {known}\n"
    code, output = run("newer")
    assert code == 1
    assert output.startswith("Error: newer: needs version 2.0")


def test_nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("router.cli.plugins.installed_plugins", dict)
    assert run() == (
        0,
        "No plugin is installed: no distribution has an entry point in trioute.plugins.\n",
    )
