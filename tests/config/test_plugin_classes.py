"""Finding, loading and configuring plugins."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from router.config.plugin_classes import (
    API_VERSION,
    PluginUnusable,
    installed_plugins,
    load_plugin,
    read_settings,
    with_absolute_paths,
)
from router.config.plugins import PluginSettings

from support.plugins import install

SOURCE = """
@attrs.frozen(kw_only=True, field_transformer=plugin.checked)
class Settings:
    interval_seconds: float = attrs.field(
        default=5.0, metadata=plugin.setting(plugin.number(0.1, 60, "seconds"), "How often.")
    )
    output: object = attrs.field(
        default=None, metadata=plugin.setting(plugin.file_path(), "Where to write.")
    )
    token: object = attrs.field(
        default=None, metadata=plugin.setting(plugin.secret(), "What to say.")
    )

class Good(plugin.Plugin):
    api_version = (1, 0)
    settings_class = Settings
    async def run(self, router): ...

class Older(Good):
    api_version = (0, 9)
class Newer(Good):
    api_version = (1, 99)
class Unversioned(plugin.Plugin):
    async def run(self, router): ...
class Unsettled(Good):
    settings_class = dict
@attrs.frozen
class Plain:
    a: int = 1
class Undescribed(Good):
    settings_class = Plain
class Idle:
    api_version = (1, 0)
    settings_class = plugin.NoSettings
def function(): ...
"""


def test_nothing_is_imported_before_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = install(tmp_path, monkeypatch, SOURCE, zebra="Good", ant="Good")
    found = installed_plugins()
    assert [name for name in found if name in ("ant", "zebra")] == ["ant", "zebra"]
    assert (found["ant"].distribution, found["ant"].version) == (module, "1.2")
    assert module not in sys.modules
    assert load_plugin("ant") is load_plugin("zebra")
    assert module in sys.modules


@pytest.mark.parametrize(
    ("which", "why"),
    [
        ("Older", "needs version 0.9 of the plugin contract; this router has version 1.1"),
        ("Newer", "needs version 1.99 of the plugin contract; this router has version 1.1"),
        ("Unversioned", "api_version must be two numbers"),
        ("Unsettled", "settings_class must be an attrs class"),
        ("Undescribed", "must have the metadata that router.plugin.setting returns"),
        ("Idle", "it has no method run"),
        ("function", "its entry point must name a class"),
        ("Missing", "cannot be imported: AttributeError: "),
    ],
)
def test_what_is_no_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str, why: str
) -> None:
    assert API_VERSION == (1, 1)
    install(tmp_path, monkeypatch, SOURCE, wrong=which)
    with pytest.raises(PluginUnusable, match=why):
        load_plugin("wrong")


def test_a_plugin_that_is_not_there() -> None:
    with pytest.raises(PluginUnusable, match="is not an installed plugin"):
        load_plugin("nobody-has-this")


def test_an_import_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "raise RuntimeError('no licence')", broken="Good")
    with pytest.raises(PluginUnusable, match="cannot be imported: RuntimeError: no licence"):
        load_plugin("broken")


def test_settings_are_read_as_their_class_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, SOURCE, good="Good")
    plugin = load_plugin("good")
    settings, findings = read_settings(plugin, {"intervalSeconds": 2})
    assert (settings.interval_seconds, findings) == (2, ())
    assert read_settings(plugin, {})[0] == plugin.settings_class()
    _, findings = read_settings(plugin, {"intervalSeconds": 0, "intervalSecond": 1})
    assert {finding.path for finding in findings} == {
        ("settings", "intervalSeconds"),
        ("settings", "intervalSecond"),
    }


def test_a_settings_class_that_raises_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """
    @attrs.frozen(kw_only=True)
    class Settings:
        low: int = attrs.field(
            default=1, metadata=plugin.setting(plugin.whole_number(0, 9, "things"), "Least.")
        )
        high: int = attrs.field(
            default=2, metadata=plugin.setting(plugin.whole_number(0, 9, "things"), "Most.")
        )
        def __attrs_post_init__(self):
            if self.low > self.high:
                raise OverflowError("low is more than high")

    class Picky(plugin.Plugin):
        api_version = (1, 0)
        settings_class = Settings
        async def run(self, router): ...
    """
    install(tmp_path, monkeypatch, source, picky="Picky")
    _, (finding,) = read_settings(load_plugin("picky"), {"low": 5})
    assert finding.path == ("settings",)
    assert finding.problem == "is refused by the plugin: OverflowError: low is more than high"


def test_paths_are_relative_to_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, SOURCE, good="Good")
    settings = {"output": "out", "token": "file:secret", "intervalSeconds": "wrong"}
    section = with_absolute_paths(
        PluginSettings(plugin="good", settings=settings), Path("/etc/trioute")
    )
    assert section.settings == {
        "output": "/etc/trioute/out",
        "token": "file:/etc/trioute/secret",
        "intervalSeconds": "wrong",
    }
    missing = PluginSettings(plugin="nobody-has-this", settings=settings)
    assert with_absolute_paths(missing, Path("/etc")) is missing


def test_a_secret_is_a_reference_and_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, SOURCE, good="Good")
    plugin = load_plugin("good")
    settings, findings = read_settings(plugin, {"token": "env:TOKEN"})
    assert (settings.token.kind, findings) == ("env", ())
    for wrong in ("hunter2", "pass:hunter2", "literal:hunter2", "env:", 7):
        _, (finding,) = read_settings(plugin, {"token": wrong})
        assert finding.allowed == "give env:VARIABLE or file:PATH, where the secret is stored"
        assert not finding.shown


def test_a_setting_that_is_required(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
    @attrs.frozen(kw_only=True, field_transformer=plugin.checked)
    class Settings:
        url: str | None = attrs.field(
            default=None, metadata=plugin.setting(plugin.text(99), "Where.", required=True)
        )

    class Needy(plugin.Plugin):
        api_version = (1, 0)
        settings_class = Settings
        async def run(self, router): ...
    """
    install(tmp_path, monkeypatch, source, needy="Needy")
    _, (finding,) = read_settings(load_plugin("needy"), {})
    assert (finding.path, finding.problem) == (("settings", "url"), "is missing")
    assert read_settings(load_plugin("needy"), {"url": "x"})[1] == ()
