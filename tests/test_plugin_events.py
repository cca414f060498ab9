"""The events of the plugin contract."""

from __future__ import annotations

import attrs
import pytest

from router import plugin, plugin_events
from router.plugin_events import Event


@pytest.mark.parametrize("event", Event.__subclasses__(), ids=lambda event: event.__name__)
def test_an_event_has_a_time_first_and_cannot_be_changed(event: type[Event]) -> None:
    fields = [field.name for field in attrs.fields(event)]
    assert fields[0] == "time"
    made = event(1.0, *(None for _ in fields[1:]))
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        made.time = 2.0  # type: ignore[misc]


def test_all_of_them_are_part_of_the_contract() -> None:
    names = {
        name
        for name, value in vars(plugin_events).items()
        if isinstance(value, type) and value.__module__ == plugin_events.__name__
    }
    assert names <= set(plugin.__all__)
