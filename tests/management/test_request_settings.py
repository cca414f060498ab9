"""Attributes as tools send them become settings, or are refused with what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from router.amqp.types import Int, Symbol, ULong
from router.config.auto_links import AutoLinkSettings
from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.model import AddressSettings
from router.config.redirects import RedirectSettings
from router.config.router_settings import RouterSettings
from router.config.secret import Secret
from router.management.entities.configured import (
    CONFIGURED_ADDRESS,
    CONFIGURED_AUTO_LINK,
    CONFIGURED_LINK_ROUTE,
    CONFIGURED_REDIRECT,
    CONNECTOR,
    LISTENER,
)
from router.management.entities.router import ROUTER
from router.management.request_settings import changed_settings, new_settings
from router.management.requests import BAD_REQUEST, Refused
from router.management.schema import AnyEntityType


@pytest.mark.spec("M2-2")
@pytest.mark.parametrize(
    ("entity_type", "given", "made"),
    [
        (LISTENER, {}, ListenerSettings()),
        (
            LISTENER,
            {"type": "listener", "name": "l", "port": "0", "authenticatePeer": "no", "host": "::1"},
            ListenerSettings(name="l", port=0, authenticate_peer=False, host="::1"),
        ),
        (LISTENER, {"port": "amqp", "http": 0}, ListenerSettings()),
        (LISTENER, {"port": "5"}, ListenerSettings(port=5)),
        (
            LISTENER,
            {"port": ULong(5), "maxSessions": "7"},
            ListenerSettings(port=5, max_sessions=7),
        ),
        (LISTENER, {"idleTimeoutSeconds": "1.5"}, ListenerSettings(idle_timeout_seconds=1.5)),
        (LISTENER, {"idleTimeoutSeconds": 3}, ListenerSettings(idle_timeout_seconds=3.0)),
        (LISTENER, {"maxFrameSize": 1024.0}, ListenerSettings(max_frame_size=1024)),
        (LISTENER, {"maxFrameSize": None, "name": None}, ListenerSettings()),
        (LISTENER, {"": None}, ListenerSettings()),
        (LISTENER, {"name": 5}, ListenerSettings(name="5")),
        (
            CONFIGURED_AUTO_LINK,
            {"addr": "q", "dir": "in", "externalAddr": "e", "fallback": "no", "phase": "4"},
            AutoLinkSettings(address="q", direction="in", external_address="e", phase=4),
        ),
        (
            LISTENER,
            {"openProperties": {Symbol("site"): Symbol("berlin"), "n": Int(4)}},
            ListenerSettings(open_properties={"site": "berlin", "n": 4}),
        ),
        (LISTENER, {"http": "Yes", "metrics": 1, "port": 1}, ListenerSettings(http=True, port=1)),
        (
            CONNECTOR,
            {"saslUsername": "u", "saslPassword": "p", "saslMechanisms": "PLAIN"},
            ConnectorSettings(
                sasl_username="u",
                sasl_password=Secret("literal", "p"),
                sasl_mechanisms=("PLAIN",),
            ),
        ),
        (
            CONNECTOR,
            {"allowRedirect": "true", "redirectHosts": "a b"},
            ConnectorSettings(allow_redirect=True, redirect_hosts=("a", "b")),
        ),
        (
            CONFIGURED_ADDRESS,
            {"prefix": Symbol("a.b"), "distribution": "multicast"},
            AddressSettings(prefix="a.b", distribution="multicast"),
        ),
        (
            CONFIGURED_REDIRECT,
            {"prefix": "a", "toNetworkHost": "h", "toPort": "1"},
            RedirectSettings(prefix="a", to_network_host="h", to_port=1),
        ),
    ],
)
def test_new_settings_are_made_of_what_tools_send(
    entity_type: AnyEntityType, given: dict[str, Any], made: Any
) -> None:
    settings = new_settings(entity_type, given)
    assert settings == made
    # nothing of AMQP's own types is left
    assert "ULong" not in repr(settings)
    assert "Symbol" not in repr(settings)


@pytest.mark.parametrize(
    ("entity_type", "given", "told"),
    [
        (LISTENER, {"identity": "x"}, "identity cannot be set"),
        (
            LISTENER,
            {"nosuch": 1},
            "listener has no attribute 'nosuch'; its attributes are name, host, port",
        ),
        (LISTENER, {"x" * 10_000: 1}, "listener has no attribute 'xxx"),
        (
            LISTENER,
            {"saslPlugin": 1},
            "this router does not support Dispatch's attribute saslPlugin",
        ),
        (LISTENER, {"port": "x"}, 'port: "x" is not allowed; give a whole number from 0'),
        (LISTENER, {"port": 65536}, "port: 65536 is not allowed"),
        (LISTENER, {"port": "9" * 5000}, "port: "),
        (LISTENER, {"port": 2**70}, "port: "),
        (LISTENER, {"port": True}, "port: true is not allowed"),
        (LISTENER, {"port": b"1"}, "port: a value of type bytes is not allowed"),
        (LISTENER, {"http": "maybe"}, 'http: "maybe" is not allowed; give true or false'),
        (LISTENER, {"http": 2}, "http: 2 is not allowed"),
        (LISTENER, {"http": [[]]}, "http: a list is not allowed"),
        (LISTENER, {"role": "inner"}, 'role: "inner" is not allowed; give "normal"'),
        (LISTENER, {"host": ""}, "host: "),
        (LISTENER, {"name": "a\nb"}, "name: "),
        (LISTENER, {"name": {}}, "name: a table is not allowed"),
        (
            LISTENER,
            {"usersFile": "users"},
            "usersFile must be an absolute path, which begins with /",
        ),
        (LISTENER, {"openProperties": [1]}, "openProperties: "),
        (LISTENER, {"openProperties": {1: 2}}, "openProperties: "),
        (LISTENER, {"idleTimeoutSeconds": "nan"}, "idleTimeoutSeconds: "),
        (LISTENER, {"idleTimeoutSeconds": float("inf")}, "idleTimeoutSeconds: "),
        (CONNECTOR, {"saslPassword": "file:secret"}, "saslPassword must be an absolute path"),
        (CONNECTOR, {"saslPassword": ["hidden"]}, "saslPassword: a secret is not allowed"),
        (CONFIGURED_ADDRESS, {"pattern": 666}, "pattern: 666 is not allowed"),
        (CONFIGURED_LINK_ROUTE, {"prefix": 666, "direction": "in"}, "prefix: 666 is not allowed"),
        (ROUTER, {"uptimeSeconds": 1}, "uptimeSeconds cannot be set: it is read-only"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(
    entity_type: AnyEntityType, given: dict[str, Any], told: str
) -> None:
    with pytest.raises(Refused) as refused:
        new_settings(entity_type, given)
    assert refused.value.status == BAD_REQUEST
    assert refused.value.description.startswith(told)
    assert len(refused.value.description) < 1000
    assert "hidden" not in refused.value.description


def test_settings_become_others() -> None:
    old = ListenerSettings(name="l", port=5, users_file=Path("/users"), max_frame_size=1024)
    assert changed_settings(LISTENER, old, {}) == old
    # what stays the same may be said, in whatever form
    assert changed_settings(LISTENER, old, {"name": "l", "port": "5"}) == old
    new = changed_settings(LISTENER, old, {"port": "6", "maxFrameSize": None, "usersFile": None})
    assert new == ListenerSettings(name="l", port=6)
    with pytest.raises(Refused, match="name cannot be changed: it identifies the entity"):
        changed_settings(LISTENER, old, {"name": "m"})
    with pytest.raises(Refused, match="type cannot be changed: it is read-only"):
        changed_settings(LISTENER, old, {"type": "connector"})


def test_a_default_that_follows_from_others_follows_again() -> None:
    old = ConnectorSettings(sasl_username="u", sasl_password=Secret("literal", "p"))
    again = changed_settings(CONNECTOR, old, {"saslMechanisms": None})
    assert isinstance(again, ConnectorSettings)
    assert again.sasl_mechanisms == ConnectorSettings(sasl_username="u").sasl_mechanisms


def test_the_router_s_id_stays() -> None:
    old = RouterSettings(id="solo")
    with pytest.raises(Refused, match="id cannot be changed: "):
        changed_settings(ROUTER, old, {"id": "other"})
    new = changed_settings(ROUTER, old, {"linkStealing": "any", "id": "solo"})
    assert new == RouterSettings(id="solo", link_stealing="any")
