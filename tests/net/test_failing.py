"""Hosts from which most connections end before they are open, and peers whose requests fail."""

from __future__ import annotations

import attrs
import pytest
from structlog.testing import capture_logs

from router.net.failing import (
    HALF_LIFE_S,
    MANY,
    MOST_HOSTS,
    SHARE,
    WARN_EVERY_S,
    WEIGHT_OF_LOGIN,
    FailingHosts,
)


@attrs.define
class Watched:
    """Hosts, and the time that their clock shows."""

    now: float = 0.0
    hosts: FailingHosts = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.hosts = FailingHosts(lambda: self.now)

    def fail(self, count: int, host: str = "a") -> None:
        for _ in range(count):
            self.hosts.count_unopened(host)

    def open(self, count: int) -> None:
        for _ in range(count):
            self.hosts.count_opened("a")

    def is_failing(self, host: str = "a") -> bool:
        return self.hosts.is_failing(host)


@pytest.fixture
def watched() -> Watched:
    """Hosts without any connection yet."""
    return Watched()


def test_few_failures_are_nothing(watched: Watched) -> None:
    watched.fail(MANY)
    assert not watched.is_failing()
    watched.fail(1)
    assert watched.is_failing()
    assert not watched.is_failing("b")


def test_a_host_whose_clients_open_connections_does_not_fail(watched: Watched) -> None:
    watched.open(MANY)
    most = round(MANY * SHARE / (1 - SHARE))
    watched.fail(most)
    assert not watched.is_failing()
    watched.fail(1)
    assert watched.is_failing()
    watched.open(1)
    assert not watched.is_failing()


def test_a_failed_login_is_several_failures(watched: Watched) -> None:
    for _ in range(MANY // WEIGHT_OF_LOGIN + 1):
        assert not watched.is_failing()
        watched.hosts.count_failed_login("a")
    assert watched.is_failing()


def test_failures_are_forgotten(watched: Watched) -> None:
    watched.fail(2 * MANY)
    watched.now = HALF_LIFE_S * 0.99
    assert watched.is_failing()
    watched.now = HALF_LIFE_S * 1.02
    assert not watched.is_failing()


def test_a_host_that_fails_slowly_does_not_fail(watched: Watched) -> None:
    for watched.now in range(600):
        watched.fail(4)
        assert not watched.is_failing()
    for watched.now in range(600, 700):
        watched.fail(5)
    assert watched.is_failing()


def test_asking_often_changes_nothing(watched: Watched) -> None:
    watched.fail(2 * MANY)
    for step in range(100):
        watched.now = HALF_LIFE_S * 0.99 * step / 100
        assert watched.is_failing()
    watched.now = HALF_LIFE_S * 1.02
    assert not watched.is_failing()


def test_only_so_many_hosts_are_remembered(watched: Watched) -> None:
    watched.fail(MANY + 1)
    watched.fail(MANY + 1, "b")
    for number in range(MOST_HOSTS - 2):
        watched.fail(1, f"host-{number}")
    # it has failed again, so that the other one is the oldest
    watched.fail(1)
    assert watched.is_failing("b")
    watched.fail(1, "one more")
    assert not watched.is_failing("b")
    assert watched.is_failing()


def test_a_failing_host_is_logged_now_and_then(watched: Watched) -> None:
    with capture_logs() as logs:
        watched.fail(MANY + 10)
        assert [each["host"] for each in logs] == ["a"]
        watched.fail(MANY + 10, "b")
        assert len(logs) == 1
        watched.now = WARN_EVERY_S
        watched.fail(MANY + 10, "b")
        assert [each["host"] for each in logs] == ["a", "b"]
