"""Find containers that connect again and again."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import ClassVar

import attrs

from router import plugin

MINUTE_S = 60.0
# Bounds the memory that peers can make the plugin use.
MOST_CONTAINERS = 1000
MOST_COUNTED = 10_000


@attrs.frozen(kw_only=True, field_transformer=plugin.checked)
class Settings:
    """Settings of the plugin in the router's configuration."""

    limit_per_minute: int = attrs.field(
        default=10,
        metadata=plugin.setting(
            plugin.whole_number(1, MOST_COUNTED, "connections"),
            "How often a container may connect within a minute before it is reported.",
        ),
    )


class Example(plugin.Plugin):
    """Plugin that reports containers that connect again and again."""

    api_version = (1, 0)
    settings_class: ClassVar[type[attrs.AttrsInstance]] = Settings

    def __init__(self, settings: Settings) -> None:
        self.limit = settings.limit_per_minute
        # By container, the times of its connections within the last minute; the container that
        # connected last is at the end.
        self.opened: dict[str, deque[float]] = {}

    async def run(self, router: plugin.Router) -> None:
        """Count the connections of each container, until cancelled."""
        reports = router.counter("reports", "Times that a container began to connect too often.")
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
            before = self.recent(container, event.time)
            self.count(container, event.time)
            if before == self.limit:
                reports.inc()
                router.log.warning("container reconnects", container=container)

    def recent(self, container: str, now: float) -> int:
        """Return how often a container has connected within the minute before `now`."""
        times = self.opened.get(container, deque())
        while times and times[0] <= now - MINUTE_S:
            times.popleft()
        return len(times)

    def count(self, container: str, now: float) -> None:
        """Count a connection that a container has opened at the time `now`."""
        times = self.opened.pop(container, deque[float](maxlen=MOST_COUNTED + 1))
        times.append(now)
        self.opened[container] = times
        if len(self.opened) > MOST_CONTAINERS:
            del self.opened[next(iter(self.opened))]

    def containers(self) -> Iterator[Mapping[str, plugin.ManagedValue]]:
        """Yield management attributes of the containers that connected within a minute."""
        now = time.time()
        for container in list(self.opened):
            count = self.recent(container, now)
            if count:
                yield {"name": container, "connections": count}
