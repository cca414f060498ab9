"""The plugin contract as a whole: what changes in it changes its version."""

from __future__ import annotations

import inspect

import attrs
import pytest

from router import plugin
from router.hosting.handle import Handle
from router.plugin import NoSettings, Plugin, Router


def test_what_version_1_1_consists_of() -> None:
    """A name that is added asks for a new minor version, one that goes for a new major version."""
    assert plugin.API_VERSION == (1, 1)
    assert plugin.ENTRY_POINTS == "trioute.plugins"
    assert all(hasattr(plugin, name) for name in plugin.__all__)
    assert {name for name in vars(Router) if not name.startswith("_")} == {
        "connect",
        "connections",
        "counter",
        "gauge",
        "histogram",
        "id",
        "links",
        "log",
        "manage",
        "name",
        "sample_deliveries",
        "started",
        "subscribe",
    }
    assert {name for name in vars(Plugin) if not name.startswith("_")} == {"run", "settings_class"}


def test_what_a_plugin_gets_has_all_that_the_contract_promises() -> None:
    for name, promised in vars(Router).items():
        if name.startswith("_") or isinstance(promised, property):
            continue
        kept = getattr(Handle, name)
        assert list(inspect.signature(kept).parameters) == list(
            inspect.signature(promised).parameters
        )


def test_a_plugin_has_to_run() -> None:
    class Idle(Plugin):
        api_version = (1, 0)

    with pytest.raises(TypeError, match="run"):
        Idle(NoSettings())  # type: ignore[abstract]


def test_a_plugin_without_settings() -> None:
    assert Plugin.settings_class is NoSettings
    assert attrs.fields(NoSettings) == ()
