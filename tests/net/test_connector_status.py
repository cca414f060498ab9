"""The status of a connector: a word, a sentence, and a time."""

from __future__ import annotations

from router.engine.failures import FAILURES, LONGEST_REASON, Failure
from router.net.connector_status import CONNECTING, FAILED, SUCCESS, ConnectorStatus
from router.net.places import Place

HOME, OTHER = Place("a", 1, "a"), Place("b", 2, "b")


def told(status: ConnectorStatus) -> tuple[str, Place, float]:
    """Its state, where it is, and since when that is so."""
    return status.state, status.at, status.since


def test_a_connector_is_told_of_from_its_first_attempt_on() -> None:
    status = ConnectorStatus((HOME, OTHER), 10.0)
    assert told(status) == (CONNECTING, HOME, 10)
    assert status.message == ""
    status.attempt_started(HOME)
    status.failed(11.0, Failure("unreachable", "Connection refused"))
    assert told(status) == (CONNECTING, HOME, 10)
    assert (status.failed_at, status.failures_since_open) == (11, 1)
    assert status.message == "Connection to amqp://a:1 failed: Connection refused"
    status.attempt_started(OTHER)
    status.opened(13.0, "broker", 4)
    assert told(status) == (SUCCESS, OTHER, 13)
    assert (status.failures_since_open, status.counts.attempts) == (0, 2)
    assert status.message == "[C4] Connection Opened: dir=out host=amqp://b:2 container_id=broker"
    # what was wrong before stays told
    assert status.failure == Failure("unreachable", "Connection refused")
    status.failed(20.0, Failure("unauthorized", "no"), 4)
    assert told(status) == (FAILED, OTHER, 20)
    assert status.connection is None
    assert status.message == "[C4] Connection to amqp://b:2 failed: no"
    assert status.counts.failures == {
        **dict.fromkeys(FAILURES, 0),
        "unreachable": 1,
        "unauthorized": 1,
    }


def test_the_next_attempt_is_told_until_it_is_made() -> None:
    status = ConnectorStatus((HOME,), 10.0)
    status.next_at = 12.0
    status.attempt_started(HOME)
    assert status.next_at is None


def test_a_peer_with_a_very_long_name_is_not_kept_whole() -> None:
    status = ConnectorStatus((HOME,), 10.0)
    status.opened(11.0, "x" * 50_000, 1)
    assert status.container is not None
    assert len(status.container) == LONGEST_REASON
    assert len(status.message) < 2 * LONGEST_REASON


def test_who_is_sent_on_has_not_failed() -> None:
    status = ConnectorStatus((HOME,), 10.0)
    status.opened(11.0, "broker", 1)
    status.ended(12.0)
    assert (status.state, status.since, status.failure) == (CONNECTING, 12, None)


def test_how_long_it_has_been_away() -> None:
    status = ConnectorStatus((HOME,), 10.0)
    assert status.disconnected_s(12.0) == 2
    status.opened(13.0, "broker", 1)
    assert status.disconnected_s(20.0) == 0
    status.ended(21.0)
    assert status.disconnected_s(24.0) == 3
