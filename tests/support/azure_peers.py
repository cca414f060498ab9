"""Clients of Azure as peers: the SDKs in JavaScript and Java, and configurations that serve them.

The programs are `tests/interop/azure.js` and `tests/interop/azure_java/Peer.java`.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import attrs

from support.certificates import Authority
from support.configuring import entity
from support.jms import ROOT, require_java
from support.missing_peers import skip_without
from support.rhea_peers import FOLDER, require_rhea
from support.routers import RouterProcess, StartRouter
from support.tls_peers import STORE_PASSWORD, listener, profile, trust_store

PATIENCE_S = 30
KEY = "c2VjcmV0"
KEYS = entity("sharedAccessKey", name="all", keyName="Root", key=KEY)
KEYS += entity("sharedAccessKey", name="listen", key="listen-key", rights=["Listen"])
KEYS += entity("claims", name="tokens", sharedAccessKeys=["all", "listen"])
LISTENERS = listener("plain", claims="tokens") + listener("open")
# An event hub with one consumer group.
HUB = entity("exchange", name="hub", address="hub")
HUB += entity(
    "binding",
    exchangeName="hub",
    bindingKey="#",
    nextHopAddress="hub/ConsumerGroups/$Default/Partitions/0",
)
WEB: dict[str, Any] = {"http": True, "websockets": True}
# How clients connect.
TRANSPORTS = ("tcp", "tls", "ws", "wss")
JARS = ROOT / ".azure"
PEER = FOLDER / "azure_java" / "Peer.java"


def text_for(router: RouterProcess, *, name: str = "Root", key: str = KEY) -> str:
    """Return a connection string for a router without TLS."""
    host, port = router.addresses[0]
    return (
        f"Endpoint=sb://{host}:{port};SharedAccessKeyName={name};SharedAccessKey={key};"
        "UseDevelopmentEmulator=true"
    )


def secured(authority: Authority, name: str = "secured", **more: Any) -> str:
    """Return a listener with TLS and claims."""
    own = profile(f"{name}-own", authority.issue("localhost", "127.0.0.1"))
    return own + listener(name, claims="tokens", sslProfile=f"{name}-own", **more)


@attrs.frozen
class Place:
    """Port of a listener on localhost with claims, and the transport of its clients."""

    port: int
    transport: str

    @property
    def encrypted(self) -> bool:
        """Whether it has TLS."""
        return self.transport in ("tls", "wss")

    @property
    def web(self) -> bool:
        """Whether its clients use WebSockets."""
        return self.transport in ("ws", "wss")

    def text(self, key: str = KEY, *, port: bool = True) -> str:
        """Return a connection string, with the port or without it."""
        host = f"localhost:{self.port}" if port else "localhost"
        text = f"Endpoint=sb://{host};SharedAccessKeyName=Root;SharedAccessKey={key}"
        # which is the clients' word for: no TLS
        return text if self.encrypted else f"{text};UseDevelopmentEmulator=true"


def serve(
    routers: StartRouter, authority: Authority, transport: str, more: str = ""
) -> tuple[RouterProcess, Place]:
    """Start a router with `LISTENERS`, and one for a transport; return it with the place of that.

    `more` is configured, too.
    """
    web = WEB if transport in ("ws", "wss") else {}
    if transport in ("tls", "wss"):
        served = secured(authority, **web)
    else:
        served = listener("served", claims="tokens", **web)
    router = routers(KEYS + LISTENERS + served + more)
    _, port = router.http_addresses[0] if web else router.addresses[2]
    return router, Place(port, transport)


def said_by_node(
    mode: str,
    text: str,
    address: str,
    *more: str,
    place: Place | None = None,
    authority: Authority | None = None,
    **variables: str,
) -> dict[str, Any]:
    """Run a program that uses the JavaScript SDKs; return its results by name.

    `variables` are those of its environment. It trusts only this authority. With a `place` it uses
    its transport, otherwise TCP or TLS, as the text says. Skip without them, or fail where
    `TRIOUTE_REQUIRE_INTEROP=1`.
    """
    node = require_rhea()
    if not (FOLDER / "node_modules" / "@azure").is_dir():
        skip_without("THE SDKS OF AZURE IN JAVASCRIPT ARE MISSING (run `make interop`)")
    if authority is not None:
        variables["NODE_EXTRA_CA_CERTS"] = str(authority.ca_file)
    if place is not None and place.web:
        variables["OVER_WEBSOCKET"] = place.transport
    done = subprocess.run(
        [node, "azure.js", mode, text, address, *more],
        cwd=FOLDER,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=True,
    )
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {each["what"]: each["value"] for each in told}


def said_by_java(authority: Authority, place: Place, *what: str, key: str = KEY) -> list[str]:
    """Return the result of each operation of the SDKs in Java; see `Peer.java`.

    They trust only this authority. Skip without them, or fail where `TRIOUTE_REQUIRE_INTEROP=1`.
    """
    java = require_java(JARS, "AZURE'S SDKS FOR JAVA")
    command = [java]
    if place.encrypted:
        trust = {"trustStore": trust_store(authority), "trustStorePassword": STORE_PASSWORD}
        command += [f"-Djavax.net.ssl.{name}={value}" for name, value in trust.items()]
    # it is over before better code would pay off
    command += ["-XX:TieredStopAtLevel=1", "-cp", f"{JARS}/*", str(PEER)]
    command += [place.text(key, port=False), f"https://localhost:{place.port}"]
    command += ["AMQP_WEB_SOCKETS" if place.web else "AMQP", *what]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(what), done.stdout + done.stderr
    return lines
