"""Places to fail over to as a file has them, for clients of a listener and for a connector."""

from __future__ import annotations

import pytest

from router.config.load import parse_configuration
from router.config.mistakes import InvalidConfiguration


def test_a_connector_stays_with_its_host_unless_told() -> None:
    (connector,) = parse_configuration("[[connector]]", source="f").connectors
    assert connector.backup_urls == connector.failover_hosts == ()


def test_places_are_taken_as_a_list_or_as_text() -> None:
    text = """
        [[listener]]
        failoverUrls = "second-host:25000, amqps://third-host:5671"
        [[connector]]
        backupUrls = ["amqp://b", "c:1"]
        failoverHosts = ["*"]
        """
    configuration = parse_configuration(text, source="f")
    (listener,), (connector,) = configuration.listeners, configuration.connectors
    assert listener.failover_urls == ("second-host:25000", "amqps://third-host:5671")
    assert connector.backup_urls == ("amqp://b", "c:1")
    assert connector.failover_hosts == ("*",)


@pytest.mark.parametrize(
    "line", ['backupUrls = ["amqps://b"]', 'failoverHosts = ["*.b"]', 'failoverHosts = ["b:1"]']
)
def test_a_connector_goes_to_no_place_that_it_cannot(line: str) -> None:
    with pytest.raises(InvalidConfiguration, match=line.split()[0]):
        parse_configuration(f"[[connector]]\n{line}\n", source="f")
