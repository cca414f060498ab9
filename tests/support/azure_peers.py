"""Clients of Azure as peers: the SDKs in JavaScript and Java, and configurations that serve them.

The programs are `tests/interop/azure.js` and `tests/interop/azure_java/Peer.java`.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from support.certificates import Authority
from support.configuring import entity
from support.jms import ROOT, require_java
from support.missing_peers import skip_without
from support.rhea_peers import FOLDER, require_rhea
from support.routers import RouterProcess
from support.tls_peers import STORE_PASSWORD, listener, profile, trust_store

PATIENCE_S = 30
KEY = "c2VjcmV0"
KEYS = entity("sharedAccessKey", name="all", keyName="Root", key=KEY)
KEYS += entity("sharedAccessKey", name="listen", key="listen-key", rights=["Listen"])
KEYS += entity("claims", name="tokens", sharedAccessKeys=["all", "listen"])
LISTENERS = listener("plain", claims="tokens") + listener("open")
WEB: dict[str, Any] = {"http": True, "websockets": True}
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


def said_by_node(
    mode: str, text: str, address: str, *more: str, **variables: str
) -> dict[str, Any]:
    """Run a program that uses the JavaScript SDKs; return its results by name.

    Skip without them, or fail where `TRIOUTE_REQUIRE_INTEROP=1`.
    """
    node = require_rhea()
    if not (FOLDER / "node_modules" / "@azure").is_dir():
        skip_without("THE SDKS OF AZURE IN JAVASCRIPT ARE MISSING (run `make interop`)")
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


def said_by_java(
    authority: Authority, port: int, *what: str, transport: str = "AMQP", key: str = KEY
) -> list[str]:
    """Return the result of each operation of the SDKs in Java, which use TLS; see `Peer.java`.

    They trust only this authority. Skip without them, or fail where `TRIOUTE_REQUIRE_INTEROP=1`.
    """
    java = require_java(JARS, "AZURE'S SDKS FOR JAVA")
    trust = {"trustStore": trust_store(authority), "trustStorePassword": STORE_PASSWORD}
    command = [java, *(f"-Djavax.net.ssl.{name}={value}" for name, value in trust.items())]
    # it is over before better code would pay off
    command += ["-XX:TieredStopAtLevel=1", "-cp", f"{JARS}/*", str(PEER)]
    command += [f"Endpoint=sb://localhost;SharedAccessKeyName=Root;SharedAccessKey={key}"]
    command += [f"https://localhost:{port}", transport, *what]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(what), done.stdout + done.stderr
    return lines
