"""Auto-links are read as they are."""

from __future__ import annotations

from router.metrics.auto_links import AutoLinkReading, read_auto_links

from support.containers import Container, ControlledRouter, plan


def test_what_is_read_of_them() -> None:
    assert read_auto_links(None) == AutoLinkReading()
    router = ControlledRouter()
    assert read_auto_links(router.auto_links) == AutoLinkReading()
    container = Container(router)
    container.refuses["no"] = "amqp:not-found"
    router.configure(plan("q"), plan("no"), plan("far", container_id="another"))
    router.wait(0.25)
    reading = read_auto_links(router.auto_links)
    assert (reading.configured, reading.attempts, reading.failures) == (3, 2, 1)
    assert reading.by_status == {
        "active": 1,
        "attaching": 0,
        "failed": 1,
        "inactive": 1,
        "quiescing": 0,
        "idle": 0,
    }
    router.configure()
    reading = read_auto_links(router.auto_links)
    assert (reading.configured, reading.by_status["quiescing"]) == (0, 1)
