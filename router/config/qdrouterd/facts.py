"""Facts about Dispatch 1.19: the entities, attributes, kinds and defaults of its configuration.

They describe Dispatch, not this router. Whether this router supports an attribute depends on its
own model, which uses Dispatch's names. If the model lacks an attribute, `fate` and `meaning` say
what is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import attrs

from router.config.log_levels import MODULES

Fate = Literal["harmless", "missing", "guard"]
"""Effect of losing an attribute: none that anybody would notice (harmless); its function is lost
(missing); or there is less security than was asked for (guard).
"""
Kind = Literal["text", "integer", "boolean", "table"] | tuple[str, ...]


@attrs.frozen
class Attribute:
    """Attribute of a Dispatch entity.

    A tuple as `kind` lists the allowed words; a file may also give the index of a word. `default`
    is the default in Dispatch, or None. `fate` is the effect of losing the attribute, and `meaning`
    explains that effect in the report. `old` is a former name of the attribute. With
    `had_no_effect`, the attribute has no effect in Dispatch.
    """

    kind: Kind = "text"
    default: object = None
    fate: Fate = "missing"
    meaning: str = ""
    old: str = ""
    had_no_effect: bool = False


@attrs.frozen
class Entity:
    """Entity of Dispatch; `fate` and `meaning` say what is lost if the model lacks the entity."""

    attributes: Mapping[str, Attribute]
    fate: Fate = "missing"
    meaning: str = ""
    repeated: bool = True


_BY_NEIGHBOURS: Final = "neighbours report changes to each other immediately"
_NAME: Final = Attribute(fate="harmless", meaning="the name is not used here")
_ROLES: Final = ("normal", "inter-router", "route-container", "edge")
_FAMILIES: Final = ("IPv4", "IPv6")
_DISTRIBUTIONS: Final = ("multicast", "closest", "balanced", "unavailable")
_DIRECTIONS: Final = ("in", "out")
_MOST: Final = 2**31 - 1
_PROFILES: Final = Entity(
    {
        "name": Attribute(),
        "ciphers": Attribute(),
        "protocols": Attribute(),
        "caCertFile": Attribute(old="certDb"),
        "certFile": Attribute(),
        "privateKeyFile": Attribute(old="keyFile"),
        "passwordFile": Attribute(meaning="password is used instead"),
        "password": Attribute(),
        "uidFormat": Attribute(),
        "uidNameMappingFile": Attribute(old="displayNameFile"),
    },
)

_ENDPOINT: Final[Mapping[str, Attribute]] = {
    "name": Attribute(),
    "host": Attribute(default="127.0.0.1", old="addr"),
    "port": Attribute(default="amqp"),
    "socketAddressFamily": Attribute(
        _FAMILIES,
        meaning="the addresses of all families that the host has are tried",
    ),
    "role": Attribute(_ROLES, "normal"),
    "cost": Attribute("integer", 1),
    "sslProfile": Attribute(),
    "saslMechanisms": Attribute(),
    "maxFrameSize": Attribute("integer", 16384),
    "maxSessions": Attribute("integer", 32768),
    "maxSessionFrames": Attribute("integer", _MOST),
    "idleTimeoutSeconds": Attribute("integer", 16),
    "stripAnnotations": Attribute(("in", "out", "both", "no"), "both"),
    "linkCapacity": Attribute("integer", 250),
    "messageLoggingComponents": Attribute(
        default="none",
        meaning="messages are not written to the log; `trioute trace` shows them",
        old="logMessage",
    ),
    "policyVhost": Attribute(),
    "openProperties": Attribute("table"),
}

ENTITIES: Final[Mapping[str, Entity]] = {
    "router": Entity(
        {
            "name": _NAME,
            "id": Attribute(old="routerId"),
            "mode": Attribute(("standalone", "interior", "edge"), "standalone"),
            "area": Attribute(default="0", fate="harmless", meaning="there is one area"),
            "helloIntervalSeconds": Attribute("integer", 1, old="helloInterval"),
            "helloMaxAgeSeconds": Attribute("integer", 3, old="helloMaxAge"),
            "raIntervalSeconds": Attribute("integer", 30, old="raInterval"),
            "raIntervalFluxSeconds": Attribute(
                "integer", 4, "harmless", _BY_NEIGHBOURS, "raIntervalFlux"
            ),
            "remoteLsMaxAgeSeconds": Attribute(
                "integer",
                60,
                "harmless",
                "routers without a route are removed immediately",
                "remoteLsMaxAge",
            ),
            "workerThreads": Attribute("integer", 4, "harmless", "one thread does all the work"),
            "debugDumpFile": Attribute(
                fate="harmless", meaning="there is nothing to dump", old="debugDump"
            ),
            "saslConfigDir": Attribute(
                meaning="it leads to no users that can be read; see the remarks on the listeners",
                old="saslConfigPath",
            ),
            "saslConfigName": Attribute(
                default="qdrouterd", fate="harmless", meaning="Cyrus SASL is not used"
            ),
            "allowResumableLinkRoute": Attribute(
                "boolean", True, meaning="termini that outlive their links are not refused"
            ),
            "timestampsInUTC": Attribute(
                "boolean", fate="harmless", meaning="the log has its times in UTC"
            ),
            "timestampFormat": Attribute(
                meaning="times in the log always have the format of ISO 8601"
            ),
            "allowUnsettledMulticast": Attribute(
                "boolean", False, "harmless", "unsettled messages may always be multicast"
            ),
            "defaultDistribution": Attribute(_DISTRIBUTIONS, "balanced"),
            "metadata": Attribute(),
        },
        repeated=False,
    ),
    "sslProfile": _PROFILES,
    "authServicePlugin": Entity(
        {
            "name": _NAME,
            "authService": Attribute(),
            "host": Attribute(),
            "port": Attribute(default="amqp"),
            "realm": Attribute(old="saslInitHostname"),
            "sslProfile": Attribute(old="authSslProfile"),
        },
        meaning="it does not authenticate clients; see the remarks on the listeners that use it",
    ),
    "listener": Entity(
        {
            **_ENDPOINT,
            # Dispatch's own default is an empty text, which stands for all addresses of the host
            "host": Attribute(default="0.0.0.0", old="addr"),
            "socketAddressFamily": Attribute(_FAMILIES, old="protocolFamily"),
            "authenticatePeer": Attribute("boolean", False, old="requirePeerAuth"),
            "saslPlugin": Attribute(fate="guard", meaning="the authentication service is not used"),
            "requireEncryption": Attribute("boolean", False),
            "requireSsl": Attribute("boolean", False),
            "trustedCertsFile": Attribute(old="trustedCerts", had_no_effect=True),
            "initialHandshakeTimeoutSeconds": Attribute("integer", 0),
            "multiTenant": Attribute("boolean", False),
            "failoverUrls": Attribute(old="failoverList"),
            "http": Attribute("boolean", False),
            "healthz": Attribute("boolean", True),
            "metrics": Attribute("boolean", True),
            "websockets": Attribute("boolean", True),
            "httpRootDir": Attribute(
                meaning="no files are served, and so no console", old="httpRoot"
            ),
        }
    ),
    "connector": Entity(
        {
            **{key: each for key, each in _ENDPOINT.items() if key != "socketAddressFamily"},
            "protocolFamily": _ENDPOINT["socketAddressFamily"],
            "allowRedirect": Attribute("boolean", True, had_no_effect=True),
            "verifyHostname": Attribute("boolean", True, old="verifyHostName"),
            "saslUsername": Attribute(),
            "saslPassword": Attribute(),
        }
    ),
    "log": Entity(
        {
            "name": _NAME,
            "module": Attribute(MODULES),
            "enable": Attribute(old="level"),
            "includeTimestamp": Attribute(
                "boolean", fate="harmless", meaning="lines always contain the time", old="timestamp"
            ),
            "includeSource": Attribute(
                "boolean",
                fate="harmless",
                meaning="lines name their module, not a place in the sources",
                old="source",
            ),
            "outputFile": Attribute(
                meaning="the log goes to standard error or, with `trioute-qdrouterd`, to the "
                "outputFile of DEFAULT",
                old="output",
            ),
        }
    ),
    "address": Entity(
        {
            "name": Attribute(),
            "prefix": Attribute(),
            "pattern": Attribute(),
            "distribution": Attribute(_DISTRIBUTIONS, "balanced"),
            "waypoint": Attribute(
                "boolean", False, meaning="messages do not pass through a broker on their way"
            ),
            "ingressPhase": Attribute("integer", meaning="addresses have only one phase"),
            "egressPhase": Attribute("integer", meaning="addresses have only one phase"),
            "priority": Attribute("integer", meaning="messages have the priority in their header"),
            "enableFallback": Attribute(
                "boolean", False, meaning="messages without a receiver are released"
            ),
        }
    ),
    "linkRoute": Entity(
        {
            "name": Attribute(),
            "prefix": Attribute(),
            "pattern": Attribute(),
            "addExternalPrefix": Attribute(),
            "delExternalPrefix": Attribute(),
            "containerId": Attribute(),
            "connection": Attribute(),
            "distribution": Attribute(
                ("linkBalanced",), "linkBalanced", "harmless", "links are always balanced"
            ),
            "direction": Attribute(_DIRECTIONS, old="dir"),
        },
        meaning="links to these addresses end at this router, and do not reach the container",
    ),
    "autoLink": Entity(
        {
            "name": Attribute(),
            "address": Attribute(old="addr"),
            "direction": Attribute(_DIRECTIONS, old="dir"),
            "phase": Attribute("integer"),
            "containerId": Attribute(),
            "connection": Attribute(),
            "externalAddress": Attribute(old="externalAddr"),
            "fallback": Attribute("boolean", False),
        },
        meaning="no link is attached to the container, and its messages do not move",
    ),
    "exchange": Entity(
        {
            "name": Attribute(),
            "address": Attribute(),
            "phase": Attribute("integer"),
            "alternateAddress": Attribute(),
            "alternatePhase": Attribute("integer"),
            "matchMethod": Attribute(("amqp", "mqtt"), "amqp"),
        },
        meaning="its address is an ordinary one, and nothing is routed by subject",
    ),
    "binding": Entity(
        {
            "name": Attribute(),
            "exchangeName": Attribute(),
            "bindingKey": Attribute(),
            "nextHopAddress": Attribute(),
            "nextHopPhase": Attribute("integer"),
        },
        meaning="nothing is routed by subject",
    ),
    "policy": Entity(
        {
            "name": _NAME,
            "maxConnections": Attribute("integer", 65535),
            "maxMessageSize": Attribute("integer", 0),
            "enableVhostPolicy": Attribute("boolean", False),
            "enableVhostNamePatterns": Attribute("boolean", False),
            "policyDir": Attribute(
                meaning="the vhosts in its files are read, as if they were in this file"
            ),
            "defaultVhost": Attribute(default="$default"),
        },
        repeated=False,
    ),
    "vhost": Entity(
        {
            "name": _NAME,
            "hostname": Attribute(old="id"),
            "aliases": Attribute(),
            "maxConnections": Attribute("integer", 65535),
            "maxConnectionsPerUser": Attribute("integer", 65535),
            "maxConnectionsPerHost": Attribute("integer", 65535),
            "maxMessageSize": Attribute("integer"),
            "allowUnknownUser": Attribute("boolean", False),
            "groups": Attribute("table"),
        },
    ),
    "console": Entity(
        {
            "name": _NAME,
            "wsport": Attribute("integer", 5673),
            "proxy": Attribute(),
            "home": Attribute(),
        },
        repeated=False,
        meaning="there is no console; Dispatch 1.19 has none either",
    ),
}

OWN_DEFAULTS: Final[Mapping[str, Mapping[str, object]]] = {
    "router": {
        "linkStealing": "off",
        "unsupportedFilters": "ignore",
        "durableSubscriptions": "ignore",
    }
}
"""Behaviour of Dispatch, in terms of attributes that exist only here."""
