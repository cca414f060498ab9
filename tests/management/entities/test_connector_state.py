"""State attributes of a connector, beside its settings."""

from __future__ import annotations

from router.config.connectors import ConnectorSettings
from router.engine.failures import Failure
from router.management.entities.configured import CONNECTOR
from router.management.schema import LiveEntity
from router.management.views import ConnectorView
from router.net.connector_status import ConnectorStatus
from router.net.places import Place

HOME, OTHER = Place("a", 1, "a"), Place("::1", 2, "b")
SETTINGS = ConnectorSettings(host="a", port=1, name="c")


def told(status: ConnectorStatus | None, now: float = 30.0) -> dict[str, object]:
    """Return the attributes of the connector that have a value."""
    entity = LiveEntity(SETTINGS, status and ConnectorView(status, now))
    values = {each.name: each.read(entity) for each in CONNECTOR.attributes}
    return {name: value for name, value in values.items() if value is not None}


def test_a_connector_that_does_not_run_has_nothing_but_its_settings() -> None:
    assert told(None)["name"] == "c"
    assert "connectionStatus" not in told(None)


def test_one_that_waits_tells_why_and_for_how_long() -> None:
    status = ConnectorStatus((HOME, OTHER), 10.0)
    status.attempt_started(HOME)
    status.failed(25.5, Failure("unreachable", "Connection refused"))
    status.next_at = 31.2
    found = told(status)
    assert found["connectionStatus"] == "CONNECTING"
    assert found["failoverUrls"] == "amqp://a:1, amqp://[::1]:2"
    assert (found["lastError"], found["lastErrorKind"]) == ("Connection refused", "unreachable")
    seconds = found["statusSeconds"], found["lastErrorSeconds"], found["nextAttemptSeconds"]
    assert seconds == (20, 4, 2)
    assert (found["failedAttempts"], found["attempts"]) == (1, 1)
    assert "container" not in found


def test_one_that_is_connected_tells_with_whom() -> None:
    status = ConnectorStatus((HOME,), 10.0)
    status.attempt_started(HOME)
    status.opened(12.0, "broker", 7)
    found = told(status)
    assert (found["connectionStatus"], found["statusSeconds"]) == ("SUCCESS", 18)
    assert (found["container"], found["connectionId"]) == ("broker", "7")
    assert found["connectedTo"] == "amqp://a:1"
    assert "lastError" not in found
    assert "nextAttemptSeconds" not in found


def test_what_the_router_tells_cannot_be_given() -> None:
    for name in ("failoverUrls", "connectionStatus", "lastError"):
        attribute = CONNECTOR.attribute(name)
        assert attribute is not None
        assert not attribute.can_be_created_with
        assert not attribute.can_be_updated
