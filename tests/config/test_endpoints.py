"""Settings that listeners and connectors share have the same meaning and defaults for both."""

from __future__ import annotations

import attrs
import pytest

from router.config import endpoints
from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.load import parse_configuration
from router.config.mistakes import InvalidConfiguration

SHARED = [name.lower() for name, value in vars(endpoints).items() if hasattr(value, "metadata")]


def test_listeners_and_connectors_share_them() -> None:
    assert "strip_annotations" in SHARED
    listener = attrs.fields_dict(ListenerSettings)
    connector = attrs.fields_dict(ConnectorSettings)
    # the default at a listener depends on multiTenant
    for name in set(SHARED) - {"management"}:
        assert listener[name].metadata == connector[name].metadata
        assert listener[name].default == connector[name].default


@pytest.mark.parametrize("entity", ["listener", "connector"])
def test_annotations_are_stripped_both_ways_unless_it_is_said(entity: str) -> None:
    def read(text: str) -> str:
        configuration = parse_configuration(f"[[{entity}]]\n{text}", source="f")
        (one,) = configuration.listeners or configuration.connectors
        return one.strip_annotations

    assert read("") == "both"
    for value in ("in", "out", "both", "no"):
        assert read(f'stripAnnotations = "{value}"') == value
    for wrong in ('"yes"', "false", '"IN"'):
        with pytest.raises(InvalidConfiguration, match="stripAnnotations"):
            read(f"stripAnnotations = {wrong}")
