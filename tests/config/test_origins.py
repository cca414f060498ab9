"""Origins of web pages, and paths of WebSockets."""

from __future__ import annotations

import pytest

from router.config.kinds import ValueNotAllowed
from router.config.origins import MOST_ORIGINS, origins, web_socket_path


@pytest.mark.parametrize(
    "origin",
    ["*", "null", "https://a.example", "http://[::1]:8080", "file://", "capacitor://localhost"],
)
def test_origins(origin: str) -> None:
    assert origins().read([origin]) == (origin,)


@pytest.mark.parametrize(
    "value",
    [
        "https://a.example",
        ["a.example"],
        ["https://a.example/"],
        ["https://a b"],
        ["https://a:x"],
        ["https://a", "HTTPS://A"],
        [1],
        [f"https://a{number}" for number in range(MOST_ORIGINS + 1)],
    ],
    ids=["text", "host", "path", "space", "port", "twice", "number", "many"],
)
def test_no_origins(value: object) -> None:
    with pytest.raises(ValueNotAllowed):
        origins().read(value)


@pytest.mark.parametrize("path", ["/", "/$servicebus/websocket", "/a?b=c&d=%20"])
def test_paths(path: str) -> None:
    assert web_socket_path().read(path) == path


@pytest.mark.parametrize("path", ["", "a", "/a b", "/a\r\nb", "/ä", "/a#b", "/" * 2049, 1, None])
def test_no_paths(path: object) -> None:
    with pytest.raises(ValueNotAllowed):
        web_socket_path().read(path)
