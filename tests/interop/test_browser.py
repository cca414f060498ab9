"""AMQP in a web page: rhea in Chromium, over a WebSocket."""

from __future__ import annotations

from pathlib import Path

from support.browsers import Browser
from support.routers import StartRouter
from support.tls_peers import listener

COUNT = 200


def test_a_page_sends_and_receives(routers: StartRouter, tmp_path: Path, address: str) -> None:
    with Browser(tmp_path) as browser:
        router = routers(
            listener("tcp")
            + listener("web", http=True, websockets=True, allowedOrigins=[browser.origin])
        )
        port = router.http_addresses[0][1]
        found = browser.show(url=f"ws://127.0.0.1:{port}/", address=address, count=COUNT)
        assert found == {
            "lengths": [number * 1000 for number in range(COUNT)],
            "origin": browser.origin,
        }


def test_a_page_of_another_server_is_refused(
    routers: StartRouter, tmp_path: Path, address: str
) -> None:
    with Browser(tmp_path) as browser:
        router = routers(listener("tcp") + listener("web", http=True, websockets=True))
        port = router.http_addresses[0][1]
        found = browser.show(url=f"ws://127.0.0.1:{port}/", address=address, count=1)
        assert found == {"lost": True}
        assert f"its Origin '{browser.origin}'" in router.log_text()
