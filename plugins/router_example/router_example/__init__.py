"""Find containers that connect again and again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import ClassVar

import attrs

from router import plugin

MINUTE_S = 60.0
MOST_CONTAINERS = 1000


@attrs.frozen(kw_only=True, field_transformer=plugin.checked)
class Settings:
    """The settings of the plugin, as they stand in the router's configuration."""

    limit_per_minute: int = attrs.field(
        default=10,
        metadata=plugin.setting(
            plugin.whole_number(1, 10_000, "connections"),
            "How often a container may connect within a minute before it is reported.",
        ),
    )


class Example(plugin.Plugin):
    """Counts the connections of each container within the last minute."""

    api_version = (1, 0)
    settings_class: ClassVar[type[attrs.AttrsInstance]] = Settings

    def __init__(self, settings: Settings) -> None:
        self.limit = settings.limit_per_minute
        self.opened: dict[str, deque[float]] = {}

    async def run(self, router: plugin.Router) -> None:
        """Look at each connection that is opened."""
        warnings = router.counter("warnings", "Containers reported for connecting too often.")
        router.manage(
            plugin.ManagedType(
                "container",
                "A container that connected within the last minute.",
                (
                    plugin.ManagedAttribute("name", "string", "Its container-id."),
                    plugin.ManagedAttribute("connections", "integer", "How often it connected."),
                ),
                self.containers,
            )
        )
        events = router.subscribe(plugin.ConnectionOpened)
        router.started()
        async for event in events:
            assert isinstance(event, plugin.ConnectionOpened)
            container = event.connection.container
            count = self.count(container, event.time)
            if count == self.limit + 1:
                warnings.inc()
                router.log.warning(
                    "container reconnects", container=container, within_a_minute=count
                )

    def count(self, container: str, now: float) -> int:
        """Count a connection; return how many there were within the last minute."""
        times = self.opened.pop(container, deque())
        while times and times[0] <= now - MINUTE_S:
            times.popleft()
        times.append(now)
        if len(times) > self.limit + 1:
            times.popleft()
        # the container that connected last is the last one
        self.opened[container] = times
        if len(self.opened) > MOST_CONTAINERS:
            del self.opened[next(iter(self.opened))]
        return len(times)

    def containers(self) -> Iterator[Mapping[str, plugin.ManagedValue]]:
        """Yield what management clients see of each container."""
        for container, times in list(self.opened.items()):
            yield {"name": container, "connections": len(times)}
