"""URLs of places: what is taken, what they mean, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from router.config.kinds import ValueNotAllowed
from router.config.urls import (
    DEFAULT_PORTS,
    MAX_URLS,
    ServerUrl,
    names_this_host,
    parse_server_url,
    urls,
)

read = urls("amqp", "amqps").read


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("b", ServerUrl(None, "b", 5672)),
        ("b:1", ServerUrl(None, "b", 1)),
        ("amqp://b.example.org", ServerUrl("amqp", "b.example.org", 5672)),
        ("amqps://10.0.0.1", ServerUrl("amqps", "10.0.0.1", 5671)),
        ("ws://b", ServerUrl("ws", "b", 80)),
        ("wss://b:444", ServerUrl("wss", "b", 444)),
        ("[::1]", ServerUrl(None, "::1", 5672)),
        ("amqp://[::1]:65535", ServerUrl("amqp", "::1", 65535)),
    ],
)
def test_a_place_is_read(text: str, url: ServerUrl) -> None:
    assert parse_server_url(text) == url


@pytest.mark.parametrize(
    "text",
    [
        *("", ":1", "b:", "b:0", "b:65536", "b:x", "b:1:2", "::1", "[b]", "[::1", "[::1]x", "b c"),
        *("http://b", "://b", "AMQP://b", "amqp://", "amqp://b/q", "amqp://u:p@b", "b:٣", "amqp:b"),
    ],
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(unknown scheme|invalid (host|port|host and port)) '"):
        parse_server_url(text)
    with pytest.raises(ValueNotAllowed):
        read([text])


def test_a_list_may_be_one_text_with_commas() -> None:
    assert read("b:25000, amqps://c:5671") == ("b:25000", "amqps://c:5671")
    assert read(["b:25000", "amqps://c:5671"]) == ("b:25000", "amqps://c:5671")
    assert read([]) == ()


@pytest.mark.parametrize(
    "value",
    [None, 7, ["ws://b"], ["b", "b"], ["b", "b:5672"], [7], "b,", [str(i) for i in range(17)]],
)
def test_a_list_has_its_rules(value: object) -> None:
    with pytest.raises(ValueNotAllowed):
        read(value)
    assert MAX_URLS == 16


@given(
    st.sampled_from([None, *DEFAULT_PORTS]),
    st.from_regex(r"[a-z0-9][a-z0-9.-]{0,20}", fullmatch=True) | st.just("::1"),
    st.integers(1, 65535),
)
def test_what_is_written_whole_is_read_again(scheme: str | None, host: str, port: int) -> None:
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    text = f"{scheme}://{place}" if scheme else place
    assert parse_server_url(text) == ServerUrl(scheme, host, port)


@given(st.text(max_size=20))
def test_no_text_does_any_harm(text: str) -> None:
    try:
        url = parse_server_url(text)
    except ValueError:
        return
    assert url.host
    assert 1 <= url.port <= 65535


@pytest.mark.parametrize(
    ("host", "is_this"),
    [
        *((host, True) for host in ("127.0.0.1", "127.8.9.1", "::1", "localhost", "LocalHost.")),
        *((host, False) for host in ("10.0.0.1", "b", "localhost.example", "", "0.0.0.0")),
    ],
)
def test_which_host_is_this_one(host: str, is_this: bool) -> None:
    assert names_this_host(host) is is_this
