"""Info maps of redirects: written as they are read, and read whatever a peer makes of them."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.composite import decode_composite, encode_composite
from router.amqp.performatives import Error
from router.amqp.redirects import Redirect, read_redirect, redirect_of
from router.amqp.types import Int, Map, Symbol, UInt, UShort

LINK = "amqp:link:redirect"
CONNECTION = "amqp:connection:redirect"
WHOLE = Redirect("eu.example.org", "10.0.0.2", 5673, "orders")
WEB = Redirect("eu.example.org", "10.0.0.2", 443, "orders", "wss", "/amqp")


def test_the_info_map_has_symbols_for_keys_and_an_int_for_the_port() -> None:
    info = WHOLE.info()
    assert info == {
        "hostname": "eu.example.org",
        "network-host": "10.0.0.2",
        "port": 5673,
        "address": "orders",
    }
    assert {type(key) for key in info} == {Symbol}
    assert [type(value) for value in info.values()] == [str, str, Int, str]
    assert Redirect(network_host="h").info() == {"network-host": "h"}


@pytest.mark.parametrize("redirect", [WHOLE, WEB, Redirect("h", "h", 1), Redirect()])
@pytest.mark.parametrize("condition", [LINK, CONNECTION])
def test_what_was_written_is_read_again(redirect: Redirect, condition: str) -> None:
    error, _ = decode_composite(encode_composite(Error(Symbol(condition), info=redirect.info())))
    assert isinstance(error, Error)
    assert redirect_of(error) == redirect


def test_an_error_that_is_no_redirect_leads_nowhere() -> None:
    assert redirect_of(None) is None
    assert redirect_of(Error(Symbol("amqp:not-found"), info=WHOLE.info())) is None


@pytest.mark.parametrize(
    ("info", "redirect"),
    [
        (None, Redirect()),
        ({}, Redirect()),
        (Map(()), Redirect()),
        ({Symbol("network-host"): Symbol("h"), Symbol("port"): UShort(7)}, Redirect(None, "h", 7)),
        ({"hostname": "h", "port": UInt(65535)}, Redirect("h", None, 65535)),
        ({"hostname": "h", "port": "5671"}, Redirect("h", None, 5671)),
        ({"port": "x"}, Redirect()),
        ({"port": "99999"}, Redirect()),
        ({"port": "٣"}, Redirect()),
        ({"port": 0}, Redirect()),
        ({"port": 65536}, Redirect()),
        ({"port": -1}, Redirect()),
        ({"port": True}, Redirect()),
        ({"port": 5672.0}, Redirect()),
        ({"hostname": 5, "network-host": b"h", "address": None}, Redirect()),
        ({"hostname": "", "network-host": "a b", "address": "a\nb"}, Redirect()),
        ({"network-host": "h" * 256, "hostname": "h" * 255}, Redirect("h" * 255)),
        ({"scheme": Symbol("ws"), "path": Symbol("a")}, Redirect(scheme="ws", path="/a")),
        ({"path": "/a HTTP/1.1"}, Redirect()),
        ({"path": "/a\r\nX: y", "scheme": "ws\n"}, Redirect()),
        ({"path": "/a#b"}, Redirect()),
        ({"path": "/" + 2048 * "a", "scheme": 1}, Redirect()),
    ],
)
def test_what_means_nothing_is_missing(info: Any, redirect: Redirect) -> None:
    assert read_redirect(LINK, info) == redirect


def test_one_connects_to_the_network_host_or_else_the_hostname() -> None:
    assert Redirect("a", "b").host == "b"
    assert Redirect("a").host == "a"
    assert Redirect().host is None


@pytest.mark.parametrize(
    ("redirect", "text"),
    [
        (WHOLE, "amqp://10.0.0.2:5673/orders (hostname eu.example.org)"),
        (WEB, "wss://10.0.0.2:443/orders (path /amqp, hostname eu.example.org)"),
        (Redirect("h", "h", 1, "/a"), "amqp://h:1/a"),
        (Redirect("h"), "amqp://h"),
        (Redirect(None, "::1", 5672), "amqp://[::1]:5672"),
        (Redirect(address="a"), "'a'"),
        (Redirect(), "an unnamed place"),
    ],
)
def test_a_place_is_told_to_people(redirect: Redirect, text: str) -> None:
    assert str(redirect) == text
