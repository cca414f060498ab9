"""Azure's SDKs for Java, unmodified, over TLS, with tokens at `$cbs`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from support.azure_peers import said_by_java, serve
from support.certificates import Authority
from support.proton_peers import ProtonPeers
from support.routers import StartRouter

# The number of the listener that needs no token.
OPEN = 1


@pytest.mark.spec("G1.3-2", "G1.3-3", "G3.2-1")
def test_service_bus_and_event_hubs_in_java(
    routers: StartRouter, authority: Authority, proton: ProtonPeers
) -> None:
    router, place = serve(routers, authority, "tls")
    receiver = proton.connect(router.url(listener=OPEN)).receiver("hub", 10)
    others = proton.connect(router.url(listener=OPEN)).receiver("batches", 10)
    # it asks for properties before it has put a token
    what = ["properties:hub", "event:hub:text", "complete:a", "abandon:b", "defer:c"]
    what += ["dead-letter:d", "again:e", "batch:batches", "peek:f"]
    with ThreadPoolExecutor() as pool:
        saying = pool.submit(said_by_java, authority, place, *what)
        proton.until(saying.done, "the program is done")
    said = dict(zip(what, saying.result(), strict=True))
    assert said["properties:hub"] == "[0], empty: true"
    assert (said["event:hub:text"], receiver.bodies()) == (
        "sent",
        [b"text", b"one", b"two"],
    )
    assert said["complete:a"] == "blue"
    assert said["abandon:b"].startswith("AmqpException: Modified{deliveryFailed=null")
    assert "undeliverableHere=true" in said["defer:c"]
    assert said["dead-letter:d"].startswith(
        "AmqpException: errorCondition[com.microsoft:dead-letter]"
    )
    assert said["again:e"] == "2 deliveries to 2 receivers"
    assert said["batch:batches"] == "sent"
    assert others.received
    assert "com.microsoft:peek-message is not implemented" in said["peek:f"]


def test_a_wrong_key_in_java(routers: StartRouter, authority: Authority) -> None:
    router, place = serve(routers, authority, "tls")
    put, brought = said_by_java(authority, place, "complete:a", "properties:a", key="wrong")
    assert "401, status-description: the SAS token is not signed with a key" in put
    # this one comes with the request
    assert "403, status-description: neither a valid token of the connection" in brought
    assert "wrong" not in router.log_text()
