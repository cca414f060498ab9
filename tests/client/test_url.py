"""Where to connect, as people write it."""

from __future__ import annotations

import pytest

from router.client.url import Url, parse_url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("amqp://there", Url("there")),
        ("amqp://there/", Url("there")),
        ("AMQP://there:1/a", Url("there", 1, "a")),
        ("there", Url("there")),
        ("there:5671/a/b.c", Url("there", 5671, "a/b.c")),
        ("amqps://there/a", Url("there", 5671, "a", is_encrypted=True)),
        ("AMQPS://ada@there:7", Url("there", 7, "", "ada", is_encrypted=True)),
        ("there//a", Url("there", 5672, "/a")),
        ("there/a?b#c", Url("there", 5672, "a?b#c")),
        ("there/a%20b%2fc", Url("there", 5672, "a b/c")),
        ("there/http://other/x", Url("there", 5672, "http://other/x")),
        ("[::1]/a", Url("::1", 5672, "a")),
        ("amqp://[::1]:7/a", Url("::1", 7, "a")),
        ("ada@there/a", Url("there", 5672, "a", "ada")),
        ("amqp://ada:@there", Url("there", user="ada", password="")),
        ("amqp://a%40b:p%3a%2fw:x@there:7/q", Url("there", 7, "q", "a@b", "p:/w:x")),
    ],
)
def test_what_is_read(text: str, url: Url) -> None:
    assert parse_url(text) == url


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the host is missing"),
        ("amqp:///a", "the host is missing"),
        ("amqp://:5672/a", "the host is missing"),
        ("amqp://:secret@there", "the user name before the @ is missing"),
        ("http://there/a", "http:// is not supported here: only amqp:// and amqps:// are"),
        ("wss://there/a", "wss:// is not supported here: only amqp:// and amqps:// are"),
        ("there:0/a", "'0' is not a port number (1 to 65535)"),
        ("there:65536", "'65536' is not a port number (1 to 65535)"),
        ("there:x", "'x' is not a port number (1 to 65535)"),
        ("there:٣", "'٣' is not a port number (1 to 65535)"),
        ("[::1/a", "'[::1' is not of the form [address]:port"),
        ("[::1]5/a", "'[::1]5' is not of the form [address]:port"),
    ],
)
def test_what_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_url(text)
    assert str(refused.value) == reason


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(parse_url("amqp://ada:secret@there"))
    with pytest.raises(ValueError) as refused:
        parse_url("amqp://ada:secret@there:x")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "text", ["amqp://ada:secret/x@there", "ada:secret://there", "a@secret://x"]
)
def test_a_password_with_a_slash_is_not_shown(text: str) -> None:
    with pytest.raises(ValueError, match=r"%2F|its scheme is not supported here") as refused:
        parse_url(text)
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None
